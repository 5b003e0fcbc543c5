"""The benchmarks of the front end run, small; whether their promises hold is for a quiet machine to say."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import page_start, pages
from benchmarks.scene import Scene, scene

pytest.importorskip("playwright.sync_api")

pytestmark = [pytest.mark.live, pytest.mark.slow, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def stage(
    tmp_path_factory: pytest.TempPathFactory, front_end: Path, newest_opencode: Path, nothing_left_running: None
) -> Iterator[Scene]:
    """One for all, where each case that is measured has one of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(newest_opencode.parent), prepend=os.pathsep)
        with scene(tmp_path_factory.mktemp("bench"), print) as made:
            yield made


def test_the_start_of_a_page(stage: Scene) -> None:
    adds, with_panel, whole, scripts, later, at_start, all_of_it = page_start.page_start(stage, 1)
    assert whole.ours > scripts.ours > 0 and whole.theirs > scripts.theirs > 0
    assert {row.target for row in (adds, with_panel)} == {"≤ 100 ms"} and later.ours >= 0
    assert 0 < at_start.ours <= all_of_it.ours
    assert at_start.passed and all_of_it.passed


def test_a_session_is_opened(stage: Scene) -> None:
    opened, longest = pages.open_session(stage, 1, messages=150)
    assert opened.ours > longest.ours >= 0
    assert "150 messages" in opened.what and opened.target == "≤ 1000 ms"


def test_sessions_stream(stage: Scene) -> None:
    rows = pages.streams(stage, 1, seconds=2)
    assert [row.target for row in rows] == ["≤ 100 ms", "", "", "", "= 0"] * 2
    assert all(0 < row.ours < 100 for row in rows if row.unit == "%")


def test_a_page_is_left_open(stage: Scene) -> None:
    heap, nodes, listeners, lost = pages.heap(stage, 1, minute=3, messages=120, count=2)
    assert heap.ours > 1 and nodes.ours > 1_000 and listeners.ours > 100
    assert {row.target for row in (heap, nodes, listeners)} == {"≤ 1.05 ×"} and lost.target == "= 0"
