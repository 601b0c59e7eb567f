"""A measurement from a file, as a Kubernetes Job runs it: ``python3 -m sonic_eks.bench PLAN``.

Prints the result as JSON and nothing else. The API key is in the environment.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from sonic_eks.bench.inputs import KEY_VARIABLE, api_key
from sonic_eks.bench.measure import Plan, measure
from sonic_eks.errors import PROBLEM_FOUND, SonicEksError


class _Silent:
    """Hears of runs and says nothing."""

    def begin(self, what: str, total: int) -> None:
        """Say nothing."""

    def advance(self, ended: int, failed: int) -> None:
        """Say nothing."""


def main(path: str) -> int:
    """Measure what the file says; return the exit status."""
    try:
        plan = Plan.from_dict(json.loads(Path(path).read_text()), api_key(KEY_VARIABLE, None))
        result = asyncio.run(measure(plan, _Silent()))
    except SonicEksError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_status
    sys.stdout.write(json.dumps(result.to_dict(), indent=2) + "\n")
    return PROBLEM_FOUND if result.problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
