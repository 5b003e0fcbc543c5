"""What the benchmark table stands on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import repositories
from benchmarks.measure import Row, as_json, at_most, at_most_times, interleaved, percentile, table


def test_sides_take_turns_in_a_rotating_order() -> None:
    order: list[str] = []
    breaks: list[int] = []

    def side(name: str):
        return lambda number: order.append(f"{name}{number}") or float(number)

    figures = interleaved(3, {"a": side("a"), "b": side("b")}, lambda: breaks.append(1))
    assert order == ["a0", "b0", "b1", "a1", "a2", "b2"]
    assert figures == {"a": [0, 1, 2], "b": [0, 1, 2]}
    assert len(breaks) == 6


@pytest.mark.parametrize(("share", "wanted"), [(0.99, 99), (0.5, 50), (1.0, 100), (0.0, 1)])
def test_percentile(share: float, wanted: float) -> None:
    assert percentile(list(range(100, 0, -1)), share) == wanted


def test_a_row_holds_or_does_not() -> None:
    assert at_most_times("c", "w", 12, "ms", "plain", 10, 1.25).passed is True
    assert at_most_times("c", "w", 13, "ms", "plain", 10, 1.25).passed is False
    assert at_most("c", "w", 50, "ms", 50).passed is True
    assert Row("c", "w", 1, "MB").passed is None


def test_the_table_shows_ratio_target_and_what_fails() -> None:
    rows = [
        at_most_times("main job", "tiny", 95.4, "ms", "plain way", 80, 1.25, 7),
        at_most("start", "x", 400, "ms", 300),
    ]
    text = table(rows)
    assert "| main job | tiny | 95.4 ms | plain way | 80 ms | 1.19 × | ≤ 1.25 × | yes | 7 |" in text
    assert "| start | x | 400 ms |  |  |  | ≤ 300 ms | **no** | 1 |" in text
    assert json.loads(as_json(rows))[0]["ratio"] == pytest.approx(1.1925)


def test_repositories_are_as_big_as_they_say(tmp_path: Path) -> None:
    root = tmp_path / "files"
    root.mkdir()
    repositories._fill_files(root, 40, 80_000)
    files = [path for path in root.rglob("*") if path.is_file()]
    assert len(files) == 40
    assert sum(path.stat().st_size for path in files) == 80_000
    notebook = json.loads(repositories._notebook(__import__("random").Random(1), 200_000))
    assert 150_000 < len(json.dumps(notebook)) < 300_000
