"""Names of branches: which are valid, which stand in each other's way, and the folder that one gets."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from ocman_jupyter.errors import InvalidBranch
from ocman_jupyter.git.command import Git

HEADS = "refs/heads/"

_SLUG_BYTES = 96
_COMPONENT_BYTES = 200
_NAME_BYTES = 700
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*(/[A-Za-z0-9_][A-Za-z0-9_-]*)*")
"""Names that no rule of git's touches; about all others git itself is asked."""


def short_hash(text: str) -> str:
    """Eight hex digits of the SHA-256 of ``text``."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:8]


def slug(branch: str) -> str:
    """The folder name for a branch: ``[a-z0-9._-]`` only, at most 96 bytes, never empty."""
    name = re.sub(r"[^a-z0-9._-]+", "-", branch.lower())
    name = re.sub(r"-{2,}", "-", name).strip("-.")
    if not name:
        return f"wt-{short_hash(branch)}"
    if len(name) > _SLUG_BYTES:
        return f"{name[: _SLUG_BYTES - 9].rstrip('-.')}-{short_hash(branch)}"
    return name


def distinct_slug(branch: str) -> str:
    """The folder name when another branch has the plain one."""
    return f"{slug(branch)[: _SLUG_BYTES - 9].rstrip('-.')}-{short_hash(branch)}"


async def check_branch(git: Git, name: str, cwd: str) -> str:
    """``name`` when git takes it, exactly as it stands, for a branch name.

    Raises ``InvalidBranch``.
    """
    details = {"branch": ascii(name) if not name.isprintable() else name}
    try:
        size = len(name.encode("utf-8"))
    except UnicodeEncodeError:
        raise InvalidBranch("A branch name must be valid text.", details=details) from None
    if not name or "\0" in name:
        raise InvalidBranch("A branch name is needed." if not name else None, details=details)
    if size > _NAME_BYTES or any(len(part.encode()) > _COMPONENT_BYTES for part in name.split("/")):
        raise InvalidBranch(
            f"The branch name is too long: at most {_COMPONENT_BYTES} bytes between slashes, "
            f"{_NAME_BYTES} in all.",
            details={"branch": name[:100] + "…"},
        )
    if name == "@":  # valid as a ref, but read as HEAD wherever it is used
        raise InvalidBranch("'@' is not a valid branch name.", details=details)
    if name != "HEAD" and _PLAIN.fullmatch(name):
        return name
    done = await git.run("check-ref-format", "--branch", name, cwd=cwd, ok=(0, 1, 128))
    if done.code != 0 or done.out != name.encode() + b"\n":  # `@{-1}` would be another branch
        raise InvalidBranch(f"{details['branch']!r} is not a valid branch name.", details=details)
    return name


def conflict(branch: str, branches: Iterable[str], ignore_case: bool) -> str | None:
    """An existing branch that cannot exist beside a new one called ``branch``, or ``None``.

    git cannot hold both ``a`` and ``a/b``; where the file system folds case nor ``A`` beside ``a``.
    """
    wanted = branch.lower() if ignore_case else branch
    for existing in branches:
        if existing == branch:
            continue
        other = existing.lower() if ignore_case else existing
        if other == wanted or other.startswith(wanted + "/") or wanted.startswith(other + "/"):
            return existing
    return None
