"""A measurement as one HTML file, its plots inside."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from html import escape
from typing import Any

from sonic_eks.bench.table import HEADINGS, capacity_lines, failure_lines, row

_STYLE = """
body { font-family: system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { border-bottom: 1px solid #ccc; padding: .3rem .6rem; text-align: right }
th:first-child, td:first-child { text-align: left }
img { max-width: 100% }
.problem { color: #a00 }
"""

_NOTES = """\
TTFB counts from the moment a generation was due to its first audio. A generation that failed
counts as infinitely late (never) in every percentile.

Stood still: generations in which a listener's playback ran out of audio before the end.

Client lag is how late the measuring client itself was at p99. Above 5 ms a run is not valid, and
neither is one with much fewer generations at a time in the mean than its load says: it stays in the
table and out of the plots.
"""


def html_report(result: dict[str, Any]) -> str:
    """Return the report of a result (`measure.Result.to_dict`)."""
    from sonic_eks.bench.plots import plots  # noqa: PLC0415 (matplotlib takes a second)

    target = result["target"]
    facts = {
        "service": target["url"],
        "protocol": target["protocol"],
        "model": target["model"],
        "audio": f"{target['encoding']}, {target['sample_rate']} Hz",
        "max_buffer_delay_ms": target["buffer_delay_ms"],
        "contexts on a socket": target["contexts_per_socket"],
        "measured": result["begun"],
        "by": f"sonic-eks {result['version']}",
    }
    images = "".join(
        f'<h2>{escape(title)}</h2>\n<img alt="{escape(title)}" '
        f'src="data:image/png;base64,{base64.b64encode(png).decode()}">\n'
        for title, png in plots(result).items()
    )
    notes = _NOTES.split("\n\n")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>Load test of {escape(target['url'])}</title><style>{_STYLE}</style></head><body>\n"
        f"<h1>Load test of {escape(target['url'])}</h1>\n"
        f"{_paragraphs(capacity_lines(result))}"
        f"{_paragraphs(result['problems'], 'problem')}"
        f"{images}<h2>Runs</h2>\n{_table(HEADINGS, map(row, result['runs']))}"
        f"{_list(failure_lines(result))}{_paragraphs(notes)}"
        f"<h2>What was asked</h2>\n{_table(('', ''), facts.items())}</body></html>\n"
    )


def _paragraphs(lines: Iterable[str], kind: str = "") -> str:
    return "".join(f'<p class="{kind}">{escape(line)}</p>\n' for line in lines)


def _list(lines: list[str]) -> str:
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f"<ul>{items}</ul>\n" if lines else ""


def _table(headings: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in cells) + "</tr>\n"
        for cells in rows
    )
    return f"<table><tr>{head}</tr>\n{body}</table>\n"
