"""Copies files out of a worktree before it goes: verified, never over something else, links as links."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable, Iterator

from ocman_jupyter.errors import PathConflict
from ocman_jupyter.git.paths import holds_bytes, is_within, same_content, shown
from ocman_jupyter.git.records import Rescued

_SETTLED_NS = 2_000_000_000
"""So long after its last change the times of a file tell the next one, on any file system."""


def target(rescue_to: str, *closed: str) -> str:
    """The real path of the folder to copy to.  Raises ``PathConflict`` when it is in one of the folders ``closed``."""
    try:
        os.fsencode(rescue_to)
        real = os.path.realpath(rescue_to)
    except ValueError:
        raise PathConflict("The folder to rescue to is not a valid path.") from None
    except OSError as error:
        raise PathConflict(
            f"The folder to rescue to cannot be used: {error.strerror or error}.",
            details={"path": shown(rescue_to)},
        ) from error
    if not os.path.isabs(rescue_to) or _is_in_any(real, closed):
        raise PathConflict(
            "The folder to rescue to must be an absolute path outside the worktree and git's own folders.",
            hint="Choose a folder outside the worktree and outside .git.",
            details={"path": shown(rescue_to)},
        )
    return real


def _is_in_any(real: str, folders: Iterable[str]) -> bool:
    return any(is_within(real, os.path.realpath(folder)) for folder in folders)


class Copies:
    """What was copied out of a worktree, and how each file was then."""

    def __init__(self, *closed: str) -> None:
        self._closed = closed
        """Folders that no file may be copied to: the worktree, and git's own."""
        self.rescued: list[Rescued] = []
        self._goals: dict[str, str] = {}
        self._facts: dict[str, tuple[int, ...] | None] = {}

    def copy_out(self, top: str, names: Iterable[str], to: str) -> None:
        """Copy files and folders ``names`` of ``top`` to the same places below ``to``.

        A file of another content that is there already stays; ours gets a number in its name.  Raises
        ``PathConflict`` when a copy cannot be made or is not equal afterwards.
        """
        for name in names:
            for relative in _files(top, name.rstrip("/")):
                source = os.path.join(top, relative)
                try:
                    info = os.lstat(source)
                    if not holds_bytes(info):
                        continue
                    goal = self._copy(source, os.path.join(to, relative))
                    size = os.lstat(goal).st_size
                except OSError as error:
                    raise PathConflict(
                        f"{shown(relative)} could not be rescued: {error.strerror or error}.",
                        hint="Nothing was removed. See the reason, then try again.",
                        details={"path": shown(relative), "rescued": [one._asdict() for one in self.rescued]},
                    ) from error
                self._goals[relative] = goal
                # Written to just now, a file can change once more at the same time of its clock.
                settled = time.time_ns() - info.st_ctime_ns > _SETTLED_NS
                self._facts[relative] = _facts(info) if settled else None
                self.rescued.append(Rescued(shown(relative), shown(goal), size))

    def changed(self, top: str, names: Iterable[str]) -> list[str]:
        """The files of ``names``, which are in ``top`` now, whose copy is not equal to them.  Raises ``OSError``."""
        found = [relative for name in names for relative in _files(top, name.rstrip("/"))]
        return [relative for relative in found if not self._has(os.path.join(top, relative), relative)]

    def _copy(self, source: str, goal: str) -> str:
        # Below the folder that was named a link, or a folder of the same name, can lead back.
        if _is_in_any(os.path.realpath(os.path.dirname(goal)), self._closed):
            raise OSError(f"{shown(goal)} is in the worktree or in git's own folders")
        return _copy(source, goal)

    def _has(self, source: str, relative: str) -> bool:
        info, goal = os.lstat(source), self._goals.get(relative)
        if not holds_bytes(info):
            return True
        return goal is not None and (_facts(info) == self._facts[relative] or _same(source, goal))


def write_out(content: bytes, to: str) -> str:
    """Write a file at ``to``, or beside it when there is another; returns where."""
    os.makedirs(os.path.dirname(to), exist_ok=True)
    goal = _free(to)
    with open(goal, "xb") as file:
        file.write(content)
    return goal


def _facts(info: os.stat_result) -> tuple[int, ...]:
    return info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns


def _files(top: str, name: str) -> Iterator[str]:
    path = os.path.join(top, name)
    if os.path.islink(path) or not os.path.isdir(path):
        if os.path.lexists(path):
            yield name
        return
    for child in sorted(os.listdir(path)):
        yield from _files(top, f"{name}/{child}")


def _copy(source: str, goal: str) -> str:
    os.makedirs(os.path.dirname(goal), exist_ok=True)
    if os.path.lexists(goal) and _same(source, goal):
        return goal
    goal = _free(goal)
    # Through a name of our own: a copy that is cut short never looks like a rescued file.
    part = _free(goal + ".part")
    try:
        shutil.copy2(source, part, follow_symlinks=False)
        if not _same(source, part):
            raise OSError(f"the copy of {source} is not equal to it")
        os.rename(part, goal)
    except BaseException:
        if os.path.lexists(part):
            os.unlink(part)
        raise
    return goal


def _same(one: str, other: str) -> bool:
    if os.path.islink(one) or os.path.islink(other):
        return os.path.islink(one) and os.path.islink(other) and os.readlink(one) == os.readlink(other)
    return os.path.isfile(other) and same_content(one, other)


def _free(path: str) -> str:
    stem, end = os.path.splitext(path)
    number = 1
    while os.path.lexists(path):
        number += 1
        path = f"{stem}.{number}{end}"
    return path
