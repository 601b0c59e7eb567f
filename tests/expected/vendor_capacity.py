"""What the vendor publishes about GPUs, typed from its page on hardware selection.

docs.cartesia.ai, Self-hosted, Hardware selection; Sonic 3.5, releases from sonic-20260503; read on
2026-11-30. Rows: concurrency, time to first audio p50 and p95 in ms, real-time factor p50 and p95,
characters a second.
"""

from __future__ import annotations

RECOMMENDED = {"A10G": 4, "L40S": 8, "A100": 8, "H100 MIG": 8, "H100": 16}

TABLES = {
    "H100": [
        (1, 50, 55, 0.10, 0.10, 105),
        (2, 50, 55, 0.10, 0.10, 200),
        (4, 80, 115, 0.15, 0.15, 325),
        (8, 120, 165, 0.20, 0.20, 550),
        (12, 125, 225, 0.20, 0.25, 760),
        (16, 195, 300, 0.30, 0.30, 795),
    ],
    "H100 MIG": [
        (1, 60, 65, 0.10, 0.15, 125),
        (2, 65, 100, 0.15, 0.15, 230),
        (4, 110, 150, None, None, None),
    ],
}
