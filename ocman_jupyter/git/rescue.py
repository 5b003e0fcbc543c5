"""Copies files out of a worktree before it goes: verified, never over something else, links as links."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable, Iterator

from ocman_jupyter.errors import PathConflict
from ocman_jupyter.git.paths import is_within, same_content, shown
from ocman_jupyter.git.records import Rescued


def target(rescue_to: str, worktree: str) -> str:
    """The real path of the folder to copy to.  Raises ``PathConflict`` when it goes with the worktree."""
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
    if not os.path.isabs(rescue_to) or is_within(real, os.path.realpath(worktree)):
        raise PathConflict(
            "The folder to rescue to must be an absolute path outside the worktree.",
            hint="Choose a folder outside the worktree.",
            details={"path": shown(rescue_to)},
        )
    return real


def copy_out(top: str, names: Iterable[str], to: str) -> list[Rescued]:
    """Copy files and folders ``names`` of ``top`` to the same places below ``to``.

    A file of another content that is there already stays; ours gets a number in its name.  Raises
    ``PathConflict`` when a copy cannot be made or is not equal afterwards.
    """
    done = []
    for name in names:
        for relative in _files(top, name.rstrip("/")):
            source = os.path.join(top, relative)
            try:
                if not (stat.S_ISREG(mode := os.lstat(source).st_mode) or stat.S_ISLNK(mode)):
                    continue  # a socket or pipe holds nothing
                goal = _copy(source, os.path.join(to, relative))
            except OSError as error:
                raise PathConflict(
                    f"{shown(relative)} could not be rescued: {error.strerror or error}.",
                    hint="Nothing was removed. See the reason, then try again.",
                    details={"path": shown(relative), "rescued": [one._asdict() for one in done]},
                ) from error
            done.append(Rescued(shown(relative), shown(goal), os.lstat(goal).st_size))
    return done


def write_out(content: bytes, to: str) -> str:
    """Write a file at ``to``, or beside it when there is another; returns where."""
    os.makedirs(os.path.dirname(to), exist_ok=True)
    goal = _free(to)
    with open(goal, "xb") as file:
        file.write(content)
    return goal


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
