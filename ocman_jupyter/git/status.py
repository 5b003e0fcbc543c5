"""What changed in a worktree: `git status`, once at a time per tree, and not again while nothing moved."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ocman_jupyter.git.command import Git
from ocman_jupyter.git.records import Changes
from ocman_jupyter.git.watches import Watches

_FRESH = 300.0
"""Seconds after which a remembered status is taken anew whatever the signature says: an excludes file at
an unusual place is the one thing that the signature does not see."""
_NICE = 10
_CONFIGURATION = ("config", "config.worktree", "info/exclude", "info/attributes")


@dataclass(frozen=True)
class Entry:
    """A line of `git status`: ``kind`` as porcelain v2 has it (1, 2, u, ?, !), and the two state letters."""

    kind: str
    xy: str
    path: str


async def read_status(
    git: Git, path: str, untracked: str = "normal", ignored: bool = False, submodules: bool = False
) -> list[Entry]:
    """One `git status` of the worktree at ``path``.  Raises ``GitFailed`` and its kin.

    ``submodules``: look into them whatever is configured.
    """
    done = await git.run(
        "status",
        "--porcelain=v2",
        "-z",
        "--no-renames",
        f"--untracked-files={untracked}",
        # Not "traditional", which names a folder in which only the files are ignored: a new one there counts.
        f"--ignored={'matching' if ignored else 'no'}",
        *(["--ignore-submodules=none"] if submodules else []),
        cwd=path,
        on_start=_politely,
    )
    return list(_entries(done.text))


def _politely(pid: int) -> None:
    """Many of these run for one list: the server, the agents and the user's kernels go first."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, max(_NICE, os.getpriority(os.PRIO_PROCESS, 0)))


def _entries(text: str) -> Iterator[Entry]:
    fields = {"1": 8, "2": 9, "u": 10}
    for line in text.split("\0"):
        kind = line[:1]
        if kind in fields:
            parts = line.split(" ", fields[kind])
            yield Entry(kind, parts[1], parts[-1])
        elif kind in ("?", "!"):
            yield Entry(kind, "..", line[2:])


@dataclass(frozen=True)
class _Seen:
    changes: Changes
    ignored: frozenset[str]
    facts: tuple[object, ...]
    signature: int | None
    """Of the files; ``None`` where only the watches tell whether one moved."""
    read: float
    """When the files were, last."""

    @property
    def old(self) -> bool:
        return time.monotonic() - self.read > _FRESH


@dataclass(frozen=True)
class _Scan:
    signature: int
    newest: int
    """Nanoseconds of the youngest change."""
    whole: bool
    """False when something is in the tree whose state files do not tell: a nested repository, a submodule."""
    watchable: bool = False
    """Is there no way to a file but by the folders of this tree: no second name, nothing mounted?"""


class Statuses:
    """Changes of worktrees."""

    def __init__(self, git: Git) -> None:
        self._git = git
        self._watches = Watches()
        self._seen: dict[str, _Seen] = {}
        self._flights: dict[str, asyncio.Task[Changes]] = {}
        self._scans: dict[str, asyncio.Task[None]] = {}

    async def changes(self, path: str, admin: str, common_dir: str, head: str | None) -> Changes:
        """Changes of the worktree at ``path``; callers that ask at the same time share one look.

        Raises ``GitFailed`` and its kin.
        """
        flight = self._flights.get(path)
        if flight is None:
            flight = asyncio.ensure_future(self._look(path, admin, common_dir, head))
            self._flights[path] = flight
            flight.add_done_callback(lambda done: self._landed(path, done))
        return await asyncio.shield(flight)

    def close(self) -> None:
        """Stop watching."""
        self._watches.close()

    def _landed(self, path: str, flight: asyncio.Task[Changes]) -> None:
        if self._flights.get(path) is flight:
            del self._flights[path]
        if not flight.cancelled():
            flight.exception()  # told to those who wait; nobody may be left

    async def _look(self, path: str, admin: str, common_dir: str, head: str | None) -> Changes:
        scan = self._scans.get(path)
        if scan is not None:
            await asyncio.wait({scan})
        seen = self._seen.get(path)
        if seen is not None and await self._git.disk(self._still, seen, path, admin, common_dir, head):
            return seen.changes
        self._seen.pop(path, None)
        before, watched = await self._git.disk(self._begin, path, admin, common_dir, head)
        read = seen.read if seen is not None and watched and not seen.old else None
        began = time.time_ns()
        entries = await read_status(self._git, path, ignored=True)
        changes = Changes(
            modified=sum(entry.kind in "12" for entry in entries),
            untracked=sum(entry.kind == "?" for entry in entries),
            conflicted=sum(entry.kind == "u" for entry in entries),
        )
        # A .gitignore may ignore itself, and decides about others.
        ignored = frozenset(
            entry.path
            for entry in entries
            if entry.kind == "!" and os.path.basename(entry.path) != ".gitignore"
        )
        # After the answer: the signature is as good when nothing has changed since before `git status`.
        scan = asyncio.ensure_future(
            self._remember(path, admin, common_dir, head, changes, ignored, before, began, read)
        )
        self._scans[path] = scan
        scan.add_done_callback(lambda done: self._scans.pop(path, None))
        return changes

    async def _remember(
        self,
        path: str,
        admin: str,
        common_dir: str,
        head: str | None,
        changes: Changes,
        ignored: frozenset[str],
        before: tuple[object, ...] | None,
        began: int,
        read: float | None,
    ) -> None:
        """``read``: when the files were, of a tree that was watched since then."""

        def work() -> _Seen | None:
            if read is not None and before is not None and self._watches.keep(path, ignored):
                if _facts(admin, common_dir, head) != before:
                    return None
                return _Seen(changes, ignored, before, None, read)
            scan = self._scan(path, ignored)
            if before is None or not scan.whole or not _settled(scan.newest, began):
                return None
            if _facts(admin, common_dir, head) != before:
                return None
            return _Seen(changes, ignored, before, scan.signature, time.monotonic())

        try:
            if self._flights:  # whoever waits for an answer goes first
                await asyncio.wait(set(self._flights.values()))
            seen = await self._git.later(work)
        except (OSError, RuntimeError):  # the tree goes away, or we are closing
            return
        if seen is not None:
            self._seen[path] = seen

    def _begin(
        self, path: str, admin: str, common_dir: str, head: str | None
    ) -> tuple[tuple[object, ...] | None, bool]:
        """Before the status is taken: the facts, and whether the tree is watched from now on."""
        watched = self._watches.again(path)
        return _facts(admin, common_dir, head), watched

    def _still(self, seen: _Seen, path: str, admin: str, common_dir: str, head: str | None) -> bool:
        if seen.old or _facts(admin, common_dir, head) != seen.facts:
            return False
        quiet = self._watches.quiet(path)
        if quiet is not None:  # where something moved git has to look anyway
            return quiet
        try:
            scan = self._scan(path, seen.ignored)
        except OSError:
            return False
        return scan.whole and scan.signature == seen.signature

    def _scan(self, path: str, ignored: frozenset[str]) -> _Scan:
        """Read the tree, and watch it from then on."""
        watch = self._watches.begin(path, ignored)
        if watch is None:
            self._watches.forget(path)
            return _scan(path, ignored)
        try:
            scan = _scan(path, ignored, lambda folder, prefix: self._watches.enter(watch, folder, prefix))
        except BaseException:  # the tree goes away
            self._watches.drop(watch)
            raise
        self._watches.end(watch, scan.watchable)
        return scan


def _settled(newest: int, began: int) -> bool:
    """Was the youngest change long enough before ``began`` that a later one has another time stamp?"""
    window = 100_000_000 if newest % 1_000_000_000 else 2_500_000_000
    return newest < began - window


def _facts(admin: str, common_dir: str, head: str | None) -> tuple[object, ...] | None:
    """HEAD, index and configuration; ``None`` when there is no index to go by."""
    home = os.path.expanduser("~")
    config_home = os.environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    places = [
        os.path.join(admin, "index"),
        os.path.join(admin, "HEAD"),
        os.path.join(admin, "info/sparse-checkout"),
    ]
    places += [os.path.join(common_dir, name) for name in _CONFIGURATION]
    places += [os.path.join(admin, "config.worktree"), os.path.join(home, ".gitconfig")]
    places += [os.path.join(config_home, "git", name) for name in ("config", "ignore", "attributes")]
    facts: list[object] = [head]
    for place in places:
        try:
            info = os.stat(place)
            facts.append((info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns))
        except OSError:
            facts.append(None)
    return tuple(facts) if facts[1] is not None else None


def _scan(
    top: str, ignored: frozenset[str], enter: Callable[[str, str], None] = lambda folder, prefix: None
) -> _Scan:
    """Read all that counts in a tree; ``enter`` is told of each folder, and where in the tree it is, before."""
    signature = 0
    newest = 0
    devices = set()
    names = 1
    if os.path.lexists(os.path.join(top, ".gitmodules")):
        return _Scan(0, 0, False)
    folders = [("", top)]
    while folders:
        prefix, folder = folders.pop()
        enter(folder, prefix)
        with os.scandir(folder) as entries:
            for entry in entries:
                name = entry.name
                if name == ".git":
                    if prefix:
                        return _Scan(0, 0, False)
                    continue
                relative = prefix + name
                if entry.is_dir(follow_symlinks=False):
                    relative += "/"
                    if relative not in ignored:
                        folders.append((relative, entry.path))
                elif relative not in ignored:
                    info = entry.stat(follow_symlinks=False)
                    newest = max(newest, info.st_ctime_ns)
                    names = max(names, info.st_nlink)
                    signature ^= hash(
                        (
                            relative,
                            info.st_ino,
                            info.st_size,
                            info.st_mtime_ns,
                            info.st_ctime_ns,
                            info.st_mode,
                        )
                    )
        # After it was read: it tells of what was removed up to then.
        info = os.stat(folder)
        newest = max(newest, info.st_ctime_ns)
        devices.add(info.st_dev)
    return _Scan(signature, newest, True, names == 1 and len(devices) == 1)
