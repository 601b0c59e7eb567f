"""Copy the secret SOURCE to the file TARGET, unless something is there.

Exit status: 0 the file is there, 1 it cannot be put there, 2 wrong arguments.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from sidecar.license_seed.seed import SeedError, seed


def main(arguments: Sequence[str]) -> int:
    """Run with the arguments SOURCE and TARGET and return the exit status."""
    if len(arguments) != 2 or not all(arguments):
        print("license-seed: two paths are needed: SOURCE TARGET", file=sys.stderr)  # noqa: T201
        return 2
    source, target = map(Path, arguments)
    # The proxy runs as a user of its own, in the group of the volume.
    os.umask(0o007)
    try:
        copied = seed(source, target)
    except SeedError as error:
        print(f"license-seed: {error}", file=sys.stderr)  # noqa: T201
        return 1
    print(f"seeded {target}" if copied else f"kept {target}, which is there already")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
