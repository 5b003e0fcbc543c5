"""Text for people: nothing in it drives a terminal or a page."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from ocman_jupyter.notebook.text import age, clean, duration, escape, html_table, one_line, size, table


@pytest.mark.parametrize(
    ("hostile", "harmless"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b[2J\x1b[Hgone", "gone"),
        ("a\x9b31mb", "a31mb"),
        ("back\x08\x08\rspace\x7f", "backspace"),
        ("abc\u202egnp.exe", "abcgnp.exe"),
        ("\x1bPq#0\x1b\\sixel", "sixel"),
        ("lone \udc80 surrogate", "lone  surrogate"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
    ],
)
def test_no_escape_reaches_the_terminal(hostile: str, harmless: str) -> None:
    assert clean(hostile) == harmless


def test_html_is_escaped_also_for_attributes() -> None:
    assert escape("<script>\"'&") == "&lt;script&gt;&quot;&#x27;&amp;"
    assert "<img" not in html_table(["<img src=x>"], [["<img src=x onerror=alert(1)>"]], caption="<img>")


def test_one_line_cuts_and_joins() -> None:
    assert one_line("a\n  b") == "a b"
    assert one_line("x" * 20, 10) == "x" * 9 + "…"


def test_ages_and_sizes_are_short() -> None:
    at = datetime(2026, 1, 2, 3, 0, tzinfo=timezone.utc)
    assert age("2026-01-02T02:57:00Z", at) == "3 min"
    assert age("not a time") == age(None) == ""
    assert [duration(s) for s in (1, 40, 7200, 400_000)] == ["now", "40 s", "2 h", "4 d"]
    assert [size(n) for n in (None, 5, 1500, 2_000_000, 3_500_000_000)] == [
        "",
        "5 B",
        "1.5 KB",
        "2.0 MB",
        "3.5 GB",
    ]


def test_a_table_keeps_its_columns_whatever_is_in_them() -> None:
    lines = table(("a", "b"), [("x\ny", "1"), ("\x1b[1mlonger", "2")]).splitlines()
    assert lines == ["a       b", "x y     1", "longer  2"]
