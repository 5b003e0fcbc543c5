"""What a user means by a word."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ocman_jupyter.errors import InvalidRequest, NoSuchSession, NoSuchWorktree, NotFound
from ocman_jupyter.notebook import choose


def s(key: str, title: str, created: str = "2026-01-01T00:00:00Z", directory: str = "/w") -> dict[str, Any]:
    return {"id": key, "title": title, "created": created, "directory": directory}


@pytest.fixture
def listing(tmp_path: Path) -> dict[str, Any]:
    tree = tmp_path / "fix-loader"
    tree.mkdir()
    (tmp_path / "link").symlink_to(tree)
    return {
        "worktrees": [
            {
                "path": str(tmp_path),
                "name": "main",
                "branch": "main",
                "sessions": [s("ses_m1", "Explore data")],
            },
            {
                "path": str(tree),
                "name": "fix-loader",
                "branch": "fix/loader",
                "sessions": [s("ses_a1", "Fix it")],
            },
            {
                "path": "/w/fix-plots",
                "name": "fix-plots",
                "branch": "fix-plots",
                "sessions": [s("ses_b1", "Plots"), s("ses_b2", "Plots again", "2026-01-02T00:00:00Z")],
            },
            {"path": "/w/none", "name": "none", "branch": "none", "sessions": []},
        ],
        "sessions_elsewhere": [s("ses_e1", "Old one", directory="/gone")],
    }


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("ses_a1", "ses_a1"),
        ("ses_e", "ses_e1"),
        ("Fix it", "ses_a1"),
        ("fix/loader", "ses_a1"),
        ("fix-loader", "ses_a1"),
        ("fix/l", "ses_a1"),
        ("old", "ses_e1"),
        ("Plots", "ses_b1"),
        ("main", "ses_m1"),
    ],
)
def test_session_by_id_title_branch_folder_or_their_beginning(
    listing: dict[str, Any], text: str, wanted: str
) -> None:
    assert choose.session(listing, text)["id"] == wanted


def test_session_by_path_also_through_a_link(listing: dict[str, Any], tmp_path: Path) -> None:
    assert choose.session(listing, str(tmp_path / "link"))["id"] == "ses_a1"
    assert choose.worktree(listing, str(tmp_path / "link"))["branch"] == "fix/loader"


def test_several_are_listed_and_none_is_taken(listing: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest) as caught:
        choose.session(listing, "fix-plots")
    assert len(caught.value.details["candidates"]) == 2
    assert "ses_b1" in caught.value.message and "ses_b2" in caught.value.message


def test_the_last_one_made_decides_within_a_worktree(listing: dict[str, Any]) -> None:
    assert choose.session(listing, "fix-plots", prefer="ses_b1")["id"] == "ses_b1"


def test_nothing_by_that_name(listing: dict[str, Any]) -> None:
    with pytest.raises(NoSuchSession):
        choose.session(listing, "none")
    with pytest.raises(NoSuchWorktree):
        choose.worktree(listing, "zzz")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("fix/loader", "fix/loader"),
        ("fix-loader", "fix/loader"),
        ("NON", "none"),
        ("ses_a1", "fix/loader"),
        ("Plots again", "fix-plots"),
        ("/w/none", "none"),
    ],
)
def test_worktree_by_branch_folder_path_or_session(listing: dict[str, Any], text: str, wanted: str) -> None:
    assert choose.worktree(listing, text)["branch"] == wanted


def test_an_ambiguous_worktree_is_never_guessed(listing: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        choose.worktree(listing, "fix")


def test_newest_session(listing: dict[str, Any]) -> None:
    newest = choose.newest(choose.all_sessions(listing))
    assert newest is not None and newest["id"] == "ses_b2"
    assert choose.newest([]) is None


def test_the_only_ask_of_a_repository_needs_no_name() -> None:
    one = {"id": "per_1", "session_id": "ses_1", "title": "t", "kind": "permission"}
    two = {**one, "id": "per_2"}
    assert choose.ask([one, two], "per_2") is two
    assert choose.ask_here([one, two], "/repo", {"per_1": "/other", "per_2": "/repo"}) is two
    with pytest.raises(InvalidRequest):
        choose.ask_here([one, two], "/repo", {"per_1": "/repo", "per_2": "/repo"})
    for here, roots in ((None, {}), ("/repo", {}), ("/repo", {"per_1": "/other"})):
        with pytest.raises(NotFound):
            choose.ask_here([one], here, roots)
    with pytest.raises(NotFound):
        choose.ask_here([], "/repo", {})
