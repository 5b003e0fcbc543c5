"""The records that the git domain speaks in; JSON names are the REST contract's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from pydantic import BaseModel

Progress = Callable[[str, "float | None"], None]
"""Called with a short sentence and, where it is known, the fraction that is done (0–1)."""
State = Literal["ok", "missing", "moved", "not_a_worktree"]
Merged = Literal["yes", "squashed", "no", "unknown"]


class Base(BaseModel):
    """The commit that a branch starts from."""

    ref: str
    sha: str
    age_seconds: float | None = None
    """Age of the commit."""


class Changes(BaseModel):
    """How many files differ from the last commit."""

    modified: int
    untracked: int
    conflicted: int


class Worktree(BaseModel):
    """A linked worktree, the main checkout, or a plain folder among our worktrees."""

    path: str
    name: str
    branch: str | None
    head: str | None
    is_main: bool
    state: State
    prunable: bool
    detached: bool
    locked: bool
    lock_reason: str | None
    made_by_ocman: bool
    base: Base | None
    changes: Changes | None
    ahead: int | None
    behind: int | None
    merged: Merged
    operation: str | None
    last_activity: str | None


FileStatus = Literal["added", "modified", "deleted", "renamed", "untracked", "conflicted"]


class CellChange(BaseModel):
    """A cell of a notebook that came, went, or is not the same any more."""

    kind: Literal["added", "deleted", "modified"]
    cell_type: str
    index: int
    """From 0: where it is in the new notebook; of a deleted cell where it was in the old one."""
    source_patch: str | None
    """Unified; ``None`` where the source is the same, or too large to be told."""
    outputs_changed: bool
    """Execution counts are not looked at."""
    metadata_changed: bool
    """Also when its type is another one."""


class FileDiff(BaseModel):
    """A file that differs."""

    path: str
    """Below the top of the worktree; of an untracked repository in it, its folder with a slash."""
    old_path: str | None = None
    """Before it was renamed."""
    status: FileStatus
    additions: int | None
    """Lines; ``None`` where they were not counted."""
    deletions: int | None
    binary: bool
    notebook: bool
    patch: str | None
    """Unified, as git writes it; ``None`` when it is binary, too large, or beyond what is told at once."""
    notebook_diff: list[CellChange] | None = None
    """``None`` when it is no notebook, or not one that can be read on both sides."""


class Against(BaseModel):
    """What a worktree was compared with."""

    ref: str
    sha: str
    """The commit that the patches start from: where the two parted.  Before the first commit: the empty tree."""


class Diff(BaseModel):
    """The files of a worktree (committed since, uncommitted, and untracked ones) that differ."""

    files: list[FileDiff]
    """By path."""
    truncated: bool
    """There are more files, or more patches, than are told."""
    against: Against


class Warned(NamedTuple):
    """Something that a person should know although the work went on."""

    code: str
    message: str


class Carried(BaseModel):
    """An ignored file that came, or would come, from the main checkout; or all of a folder."""

    path: str
    """Below the top of the worktree; of a folder with a slash where only the files in it are meant."""
    bytes: int
    how: Literal["copy", "link"]


def _nothing_carried() -> None:
    pass


@dataclass(frozen=True)
class Plan:
    """What ``add`` would do."""

    worktree_path: str
    branch: str
    base: Base | None
    """Where a new branch starts, or where a reused worktree's started; ``None`` for an existing branch."""
    reused: bool
    branch_existed: bool
    recreate: bool = False
    """A missing worktree of the branch is made again."""
    began: float | None = None
    """When (Unix time) an earlier call of ours began that made the branch and was cut short."""
    warnings: list[Warned] = field(default_factory=list)
    carry: list[Carried] = field(default_factory=list)

    @property
    def resumes(self) -> bool:
        """The branch is there already: that earlier call made it."""
        return self.began is not None


@dataclass(frozen=True)
class Added:
    """What ``add`` did."""

    path: str
    branch: str
    base: Base | None
    reused: bool
    branch_existed: bool
    recreated: bool = False
    stamp: tuple[object, ...] | None = None
    """``links.link_stamp`` of a worktree that was made and read back just now."""
    warnings: list[Warned] = field(default_factory=list)
    carried: list[Carried] = field(default_factory=list)
    take_back_carried: Callable[[], None] = _nothing_carried
    """Deletes what was carried just now and is still as it was made."""


class Item(NamedTuple):
    """Something that removing a worktree would lose."""

    path: str
    bytes: int | None


class Reason(NamedTuple):
    """One reason why removing a worktree would lose something."""

    code: str
    message: str
    items: list[Item]
    total_bytes: int


class Rescued(NamedTuple):
    """A file that was copied out before its worktree was removed."""

    path: str
    to: str
    bytes: int
