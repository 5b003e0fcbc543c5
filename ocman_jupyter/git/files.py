"""The files of a directory as git sees them, and those whose path goes with what somebody types."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from ocman_jupyter.git.command import Git
from ocman_jupyter.git.paths import is_within

MOST = 200_000
"""Names that are kept: more are neither looked for nor held in memory."""


async def names(git: Git, directory: str) -> list[str]:
    """Tracked and untracked files below ``directory`` (ignored ones left out), relative to it, in git's order.

    A tracked file may be gone.  Raises ``NotARepository``, ``NoSuchDirectory``, ``GitFailed``.
    """
    reader = _Names()
    await git.run(
        "ls-files", "--cached", "--others", "--exclude-standard", "-z", cwd=directory, take=reader.take
    )
    return list(reader.found)


class _Names:
    def __init__(self) -> None:
        self._rest = b""
        self.found: dict[str, None] = {}
        """Once each: a file with a conflict is listed three times."""

    def take(self, chunk: bytes) -> bool:
        *fields, self._rest = (self._rest + chunk).split(b"\0")
        for field in fields:
            try:
                name = field.decode("utf-8")
            except UnicodeDecodeError:  # JSON cannot hold it
                continue
            if not name.endswith("/"):  # a repository of its own
                self.found[name] = None
        return len(self.found) < MOST


def matching(directory: str, files: Iterable[str], query: str, limit: int) -> list[str]:
    """The best ``limit`` of ``files`` that are files and lie in ``directory`` (real), also behind links."""
    found: list[str] = []
    for name in ranked(files, query):
        path = os.path.join(directory, name)
        try:
            there = os.path.isfile(path) and is_within(os.path.realpath(path), directory)
        except (OSError, ValueError):
            continue
        if there:
            found.append(name)
            if len(found) == limit:
                break
    return found


def ranked(files: Iterable[str], query: str) -> Iterator[str]:
    """Those that go with ``query``, the best first, in any case of letters.

    A base name that begins with it, a path that holds it, a path that holds its letters in this order; of two
    alike the one where they stand closer together, then the one that is less deep, then the shorter.
    """
    wanted = query.strip().lower()
    if not wanted:
        yield from sorted(files, key=lambda name: (name.count("/"), name))
        return
    rows = []
    for name in files:
        lower = name.lower()
        if lower.rpartition("/")[2].startswith(wanted):
            rank, spread = 0, 0
        elif wanted in lower:
            rank, spread = 1, 0
        else:
            rank, spread = 2, _spread(lower, wanted)
            if not spread:
                continue
        rows.append((rank, spread, name.count("/"), len(name), name))
    rows.sort()
    yield from (row[-1] for row in rows)


def _spread(path: str, letters: str) -> int:
    """Over how many characters of ``path`` the letters stand, the first ones there are; 0 = not in this order."""
    first = at = path.find(letters[0])
    for letter in letters[1:]:
        if at < 0:
            return 0
        at = path.find(letter, at + 1)
    return at - first + 1 if at >= 0 else 0
