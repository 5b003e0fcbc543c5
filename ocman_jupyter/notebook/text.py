"""Text for people: made harmless for a terminal or a page, ages, sizes and plain tables."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone

# Whole escape sequences first (CSI, OSC … until BEL or ST, two-byte ones), then single control characters
# (C0 but for newline and tab, DEL, C1), the direction overrides that make text read other than it is, and
# lone surrogates.
_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]")
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def clean(text: object) -> str:
    """``text`` without terminal escapes, controls and direction overrides; newlines and tabs stay."""
    return _CONTROLS.sub("", _ESCAPES.sub("", str(text)))


def one_line(text: object, width: int = 100) -> str:
    """``text`` cleaned, on one line, cut to ``width`` characters."""
    line = " ".join(clean(text).split())
    return line if len(line) <= width else line[: width - 1] + "…"


def escape(text: object) -> str:
    """``text`` cleaned and safe between HTML tags and inside attributes."""
    return html.escape(clean(text), quote=True)


def age(when: str | None, now: datetime | None = None) -> str:
    """How long ago an RFC 3339 time was, in a short word; empty when it is not known."""
    if not when:
        return ""
    try:
        then = datetime.fromisoformat(when.replace("Z", "+00:00"))
    except ValueError:
        return ""
    if then.tzinfo is None:
        then = then.replace(tzinfo=timezone.utc)
    return duration(((now or datetime.now(timezone.utc)) - then).total_seconds())


def duration(seconds: float) -> str:
    """``seconds`` in a short word: now, 40 s, 3 min, 2 h, 5 d."""
    if seconds < 5:
        return "now"
    for limit, unit, word in ((60, 1, "s"), (3600, 60, "min"), (86400, 3600, "h")):
        if seconds < limit:
            return f"{int(seconds // unit)} {word}"
    return f"{int(seconds // 86400)} d"


def size(count: int | None) -> str:
    """``count`` bytes in a short word; empty when it is not known."""
    if count is None:
        return ""
    value = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            return f"{value:.0f} {unit}" if unit == "B" or value >= 10 else f"{value:.1f} {unit}"
        value /= 1000
    return ""


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A plain table; every cell is cleaned and on one line, all but those of the last column are cut."""
    last = len(head) - 1
    lines = [list(head)] + [
        [one_line(cell, 500 if i == last else 60) for i, cell in enumerate(row)] for row in rows
    ]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


_LEFT = ' style="text-align:left"'
"""Words, in a page that puts all cells of a table to the right."""


def html_table(head: Sequence[str], rows: Iterable[Sequence[object]], caption: str = "") -> str:
    """The same as HTML, all text escaped; readable without any style sheet."""
    parts = ["<table>"]
    if caption:
        parts.append(f"<caption>{escape(caption)}</caption>")
    parts.append(
        "<thead><tr>" + "".join(f"<th{_LEFT}>{escape(cell)}</th>" for cell in head) + "</tr></thead><tbody>"
    )
    for row in rows:
        parts.append("<tr>" + "".join(f"<td{_LEFT}>{escape(cell)}</td>" for cell in row) + "</tr>")
    parts.append("</tbody></table>")
    return "".join(parts)
