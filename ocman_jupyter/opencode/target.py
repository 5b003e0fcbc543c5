"""What the process side of OpenCode needs to know of a repository; who asks for an instance says it."""

from __future__ import annotations

from dataclasses import dataclass, field

from .discovery import Belongs


@dataclass(frozen=True)
class Target:
    """A repository, as far as its OpenCode is concerned."""

    identity: str
    """Real path of the git common dir."""
    root: str
    """The main checkout; of a bare repository the bare folder."""
    cwd: str
    """Where its OpenCode runs: the main checkout; of a bare repository the worktree that was asked from."""
    worktrees_root: str
    """Real path of the folder that ocman makes this repository's worktrees in."""
    belongs: Belongs = field(compare=False)
    """Whether a directory is in this repository (its checkouts and their subfolders)."""
