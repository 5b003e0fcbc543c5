"""How states are called: the words, marks and order of sessions and worktrees, the same in text and on a page."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

WORST = ["idle", "unknown", "directory_missing", "busy", "error", "needs_you"]
"""The states of a session; later ones are shown before earlier ones."""

RESTING = {"idle", "error", "directory_missing", "unknown"}
"""The states in which a session works on nothing and waits for nobody."""

GLYPHS = {"idle": "·", "busy": "▶", "needs_you": "!", "error": "✗", "directory_missing": "∅", "unknown": "?"}
"""One sign beside the word, so that a state is seen at a glance and never by its colour alone."""


def status(word: str) -> str:
    """A status as people read it, the same as in JupyterLab."""
    return {"directory_missing": "folder gone", "error": "failed"}.get(word, word.replace("_", " "))


def worst(sessions: list[Json]) -> str:
    """The state that a person should know of first; empty without sessions."""
    return max((str(s.get("status")) for s in sessions), key=urgency, default="")


def urgency(state: str) -> int:
    """Where ``state`` stands in :data:`WORST`."""
    return WORST.index(state) if state in WORST else 0


def changes(worktree: Json) -> str:
    """State and changed files of a worktree, in a few words."""
    if worktree["state"] != "ok":
        return status(worktree["state"])
    marks = [
        mark for mark, there in (("locked", worktree["locked"]), (worktree.get("operation"), True)) if there
    ]
    found = worktree.get("changes")
    if found:
        marks += [f"{count} {word}" for word, count in found.items() if count] or ["clean"]
    return ", ".join(filter(None, marks))


def distance(worktree: Json) -> str:
    """How far a worktree is from its base, and whether its work has arrived there."""
    base = worktree.get("base") or {}
    # A branch without commits of its own is "merged" too, which says nothing.
    has_work = worktree["merged"] == "squashed" or (base.get("sha") and base["sha"] != worktree.get("head"))
    words = [
        f"up {worktree['ahead']}" if worktree.get("ahead") else "",
        f"down {worktree['behind']}" if worktree.get("behind") else "",
        {"yes": "merged", "squashed": "squash-merged"}.get(worktree["merged"], "")
        if has_work and not worktree["is_main"]
        else "",
    ]
    return " ".join(filter(None, words))
