"""Tables for people: in columns, and whole in a pipe too."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sonic_eks.errors import one_line

_FIGURE = re.compile(r"[\d,.]*")


def print_section(
    title: str, rows: Sequence[tuple[str, ...]], *, headings: tuple[str, ...] = ()
) -> None:
    """Print rows in columns, as wide as their longest cell: nothing is cut in a pipe.

    Parameters
    ----------
    title : str
        The line above them.
    rows : sequence of tuple of str
        Cells, as many in each. Columns that hold figures alone are aligned to the right.
    headings : tuple of str
        Names of the columns; empty: none.
    """
    rows = [tuple(one_line(cell) for cell in row) for row in rows]
    lines = [headings, *rows] if headings else rows
    widths = [max(len(cell) for cell in column) for column in zip(*lines, strict=True)]
    to_the_right = [
        bool(headings) and all(_FIGURE.fullmatch(cell) for cell in column)
        for column in zip(*rows, strict=True)
    ]
    print(title)
    for line in lines:
        cells = (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, to_the_right, strict=True)
        )
        print(f"  {'  '.join(cells)}".rstrip())
