"""Folders that come and go: no event tells what was done to a worktree in a shell, but others contradict what is
known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Json = dict[str, Any]


def doubtful(event: Json, sessions: Iterable[Json], worktrees: Mapping[str, Json]) -> bool:
    """Whether ``event`` says of a folder that it is there, or gone, while what is known of it says otherwise."""
    kind, data = event.get("type"), event.get("data") or {}
    if kind in ("worktree.changed", "worktree.removed"):
        gone = kind == "worktree.removed" or data.get("state") == "missing"
        inside = (session for session in sessions if session.get("directory") == data.get("path"))
        return any((session.get("status") == "directory_missing") != gone for session in inside)
    if kind in ("session.updated", "session.status"):
        worktree = worktrees.get(str(data.get("directory")))
        gone = data.get("status") == "directory_missing"
        return worktree is not None and (worktree.get("state") == "missing") != gone
    return False
