"""Weights: how fast the file system gives them out, and what fits into the time to load."""

from __future__ import annotations

from sonic_eks.plan.sections import Context, Section, section

# Amazon FSx API reference, CreateFileSystemLustreConfiguration, PerUnitStorageThroughput: 2400 GiB
# count as 2.4 TiB.
_GIB_PER_TIB = 1000
_NOT_KNOWN = (
    "the size of the weights is not known here; what is read for the first time comes from the"
    " bucket, and slower; what the file servers hold in memory comes faster"
)


@section("weights", place=70)
def weights(context: Context) -> Section | None:
    """Work out what workers that start together can load in time; a stand-in loads nothing."""
    config = context.config
    if config.standalone.stand_in:
        return None
    settings = config.weights
    mb_per_second = settings.capacity_gib / _GIB_PER_TIB * settings.throughput_mb_per_s_per_tib
    together = config.scaling.scale_up_pods_per_period
    rows = [
        (
            "provisioned throughput",
            f"{mb_per_second:.0f} MB/s",
            "weights.capacityGib / 1000 times throughputMbPerSPerTib, shared by all readers",
        ),
        (
            "time for 1 GB",
            f"{1000 / mb_per_second:.1f} s",
            (
                f"one worker alone; {together} that start together"
                f" (scaling.scaleUpPodsPerPeriod): {together * 1000 / mb_per_second:.1f} s"
            ),
        ),
    ]
    limits = []
    for index, model in enumerate(config.models):
        gigabytes = mb_per_second * model.load_seconds / together / 1000
        limits.append({"model": model.name, "gb": round(gigabytes, 1)})
        rows.append(
            (
                f"most that {model.name} can load",
                f"{gigabytes:.0f} GB",
                (
                    f"{together} workers together within models.{index}.loadSeconds"
                    f" ({model.load_seconds}), if reading were all that they do"
                ),
            )
        )
    return Section(
        title="Weights",
        rows=tuple(rows),
        notes=(_NOT_KNOWN,),
        data={
            "mbPerSecond": round(mb_per_second, 1),
            "secondsForOneGb": round(1000 / mb_per_second, 2),
            "workersTogether": together,
            "loadableTogether": limits,
        },
    )
