"""The two links of a worktree: its ``.git`` file and, in its admin folder, ``gitdir``."""

from __future__ import annotations

import os

from ocman_jupyter.git.paths import is_within


def read_line(path: str) -> str | None:
    """The content of a small file of git's without its last newline, or ``None``."""
    try:
        with open(path, "rb") as file:
            return os.fsdecode(file.read(8192)).removesuffix("\n").removesuffix("\r")
    except OSError:
        return None


def dot_git(path: str) -> str | None:
    """Where the ``.git`` file of the worktree at ``path`` points, as it says; ``None`` when there is no such file."""
    line = read_line(os.path.join(path, ".git"))
    if line is None or not line.startswith("gitdir: "):
        return None
    return os.path.join(path, line[len("gitdir: ") :])


def link_of(path: str) -> str | None:
    """:func:`dot_git` as a real path."""
    link = dot_git(path)
    return None if link is None else os.path.realpath(link)


def link_stamp(path: str) -> tuple[object, ...] | None:
    """Facts that change when the checkout at ``path`` is not the same any more; ``None`` when it is none."""
    file = os.path.join(path, ".git")
    try:
        here, info = os.stat(path), os.lstat(file)
        link = link_of(path)
        back: object = None
        if link is not None:
            back = read_line(os.path.join(link, "gitdir"))
            if back is None or not is_within(os.path.realpath(file), os.path.realpath(path)):
                return None
    except (OSError, ValueError):
        return None
    return (here.st_dev, here.st_ino, info.st_ino, info.st_mtime_ns, link, back)
