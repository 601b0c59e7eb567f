"""What becomes of callers when all workers that there may be are busy, in words."""

from __future__ import annotations

from sonic_eks.config import Configuration

_TEXTS = {
    "queue": "generations beyond maxReplicas wait in a queue, and their first audio comes late",
    "refuse": "generations beyond maxReplicas are refused at once, for their callers to retry",
    None: "whether generations beyond maxReplicas wait or are refused (`sonic-eks verify-drain`)",
}


def over_capacity_text(config: Configuration) -> str:
    """Return what the service does beyond the largest number of workers.

    Parameters
    ----------
    config : Configuration
        The deployment; its `scaling.overCapacity` says what its image does, once that is known.

    Returns
    -------
    str
        A clause without a capital and without a full stop.
    """
    return _TEXTS[config.scaling.over_capacity]
