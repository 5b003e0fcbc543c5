"""Which typed errors each kind of work can end with, as openapi.yaml states them."""

from __future__ import annotations

from .. import errors
from ..errors import OcmanError

Errors = tuple[type[OcmanError], ...]

HOST: Errors = (errors.NoSuchHost, errors.HostUnreachable)
"""Finding the host that does it."""

OPENCODE: Errors = (
    errors.OpenCodeNeedsPassword,
    errors.OpenCodeError,
    errors.OpenCodeUnreachable,
    errors.StateUnusable,
)
"""Asking an OpenCode that runs, which the registry names."""

PLACE: Errors = (
    *HOST,
    *OPENCODE,
    errors.ForbiddenPath,
    errors.InvalidFolder,
    errors.NoSuchDirectory,
    errors.NotARepository,
    errors.GitMissing,
    errors.GitFailed,
    errors.IndexLocked,
)
"""Finding the repository of a directory, and looking at it."""

LAUNCH: Errors = (
    *PLACE,
    errors.NoCommits,
    errors.OpenCodeMissing,
    errors.LaunchFailed,
    errors.LaunchTimeout,
)
"""Finding or launching a repository's OpenCode."""

SESSION: Errors = (*PLACE, errors.NoSuchSession)
"""Something with one session."""

WORK: Errors = (*LAUNCH, errors.NoSuchSession, errors.DirectoryMissing, errors.SessionBusy)
"""Sending work to a session: its instance is launched again where it has to be."""

CREATE: Errors = (
    *WORK,
    errors.NoSuchBranch,
    errors.InvalidBranch,
    errors.NoBase,
    errors.BranchExists,
    errors.BranchCheckedOut,
    errors.BranchNameConflict,
    errors.PathConflict,
    errors.WorktreeLocked,
    errors.WouldLoseWork,
    errors.SessionDirectoryMismatch,
)
"""A worktree with a session."""

DIFF: Errors = (*PLACE, errors.NoSuchWorktree, errors.DirectoryMissing, errors.NoBase)
"""Comparing a worktree."""

REMOVE: Errors = (
    *PLACE,
    errors.NoSuchWorktree,
    errors.MainWorktree,
    errors.WouldLoseWork,
    errors.WorktreeLocked,
    errors.PathConflict,
    errors.SessionBusy,
)
