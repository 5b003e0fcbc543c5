"""Whether anything moved in a worktree since it was last read: the kernel is asked (inotify), not the files.

Where the kernel cannot tell (not Linux, a file system that other machines write to, no watches left), a tree
is never quiet and its files are read again.  What is written through a memory map is told when the map goes;
a second name that a file gets outside of the tree later on is not told at all: nobody may go by quiet for ever.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

if sys.platform == "linux":
    from inotify_simple import INotify, flags

    # Plain numbers: an operation on the enumeration costs more than all the rest of an event.
    _OVERFLOW, _IGNORED, _FOLDER = int(flags.Q_OVERFLOW), int(flags.IGNORED), int(flags.ISDIR)
    _CAME = int(flags.CREATE | flags.MOVED_TO)
    # CLOSE_WRITE besides MODIFY: it is all that tells of what was written through a memory map.
    _MASK = int(
        flags.CREATE
        | flags.DELETE
        | flags.MODIFY
        | flags.ATTRIB
        | flags.MOVED_FROM
        | flags.MOVED_TO
        | flags.CLOSE_WRITE
        | flags.DELETE_SELF
        | flags.MOVE_SELF
        | flags.DONT_FOLLOW
        | flags.ONLYDIR
        | flags.EXCL_UNLINK
    )

_TRUSTED = frozenset(
    ["bcachefs", "btrfs", "exfat", "ext2", "ext3", "ext4", "f2fs", "jfs", "overlay", "ramfs", "tmpfs", "vfat"]
    + ["xfs", "zfs"]
)
"""File systems that nobody changes behind this kernel's back.  Any other may be on a network."""
_IDLE = 60.0
"""Seconds for which a tree that was asked about keeps its watches: a list of more trees than there is room
for would else throw each one out just before its turn.  A tree that was refused is not tried for as long."""
_MOST_NAMED = 1000
_NESTING = (".git", ".gitmodules")
"""What makes a folder a repository of its own, whose state its files do not tell."""
_BATCH = 4000
"""Each watch that is given back leaves an event; the queue of the kernel holds 16,384 as it comes."""


@dataclass(eq=False)
class Watch:
    """A tree that is, or is about to be, watched."""

    path: str
    identity: tuple[int, int]
    ignored: frozenset[str]
    prefixes: dict[int, str] = field(default_factory=dict)
    """By watch descriptor, where in the tree its folder is: "" or "src/"."""
    moved: bool = False
    grew: bool = False
    """A folder came that is not watched."""
    named: set[str] = field(default_factory=set)
    """Files that came since the tree was read: each may have a second name elsewhere."""
    failed: bool = False
    used: float = 0.0


class Watches:
    """Watches on trees, for any thread.  At most so many trees and folders; the least recently used go first."""

    def __init__(
        self, mounts: Callable[[], str] | None = None, trees: int = 256, folders: int = 20_000
    ) -> None:
        self._mounts = mounts or _mounts
        self._most_trees, self._most_folders = trees, folders
        self._lock = threading.Lock()
        self._inotify: INotify | None = None
        self._closed = sys.platform != "linux"
        self._trees: dict[str, Watch] = {}  # the least recently used first
        self._owners: dict[int, set[Watch]] = {}
        self._refused: dict[str, float] = {}

    def begin(self, path: str, ignored: frozenset[str] = frozenset()) -> Watch | None:
        """Start to watch the tree at ``path``, of which ``ignored`` (as "a.log" or "build/") does not count.

        Then :meth:`enter` each folder *before* it is read, so that no change falls between, and :meth:`end`.
        """
        try:
            identity = _identity(path)
        except OSError:
            return None
        with self._lock:
            if self._closed or self._refused.get(path, 0.0) > time.monotonic():
                return None
        if file_system(os.path.realpath(path), self._mounts()) not in _TRUSTED:
            return None
        with self._lock:
            if self._inotify is None:
                try:
                    self._inotify = INotify(nonblocking=True)
                except OSError:  # too many of them, or of open files
                    return None
            self._drain()  # what was before does not count
        return Watch(path, identity, ignored)

    def enter(self, watch: Watch, folder: str, prefix: str) -> None:
        """Watch ``folder``, which is at ``prefix`` of its tree."""
        if watch.failed:
            return
        with self._lock:  # a folder that goes at once must not be told of before it is known
            if self._inotify is None:
                watch.failed = True
                return
            try:
                descriptor = self._inotify.add_watch(folder, _MASK)
            except (OSError, ValueError):  # no watches left, or the folder went
                watch.failed = True
                return
            if descriptor in watch.prefixes:  # one folder at two places: a mount
                watch.failed = True
            watch.prefixes[descriptor] = prefix
            self._owners.setdefault(descriptor, set()).add(watch)
            if len(watch.prefixes) > self._most_folders:
                watch.failed = True

    def end(self, watch: Watch, keep: bool = True) -> None:
        """All folders were entered.  ``keep``: the kernel tells all that changes in this tree."""
        with self._lock:
            before = self._trees.pop(watch.path, None)
            fits = keep and not watch.failed and bool(watch.prefixes)
            if fits:
                watch.used = time.monotonic()
                self._trees[watch.path] = watch
            if before is not None:  # now: the folders of both are not given back
                self._release(before)
            if not fits or not self._make_room(watch):
                self._trees.pop(watch.path, None)
                self._release(watch)
                self._refuse(watch.path)

    def drop(self, watch: Watch) -> None:
        """The tree could not be read to its end."""
        with self._lock:
            self._release(watch)
        self.forget(watch.path)

    def quiet(self, path: str) -> bool | None:
        """Did nothing move in the tree since it was read?  ``None``: it is not watched."""
        with self._lock:
            watch = self._trees.pop(path, None)
            if watch is None:
                return None
            watch.used = time.monotonic()
            self._trees[path] = watch
            self._drain()
            if watch.moved:
                return False
        try:  # a folder above may have moved: nobody is told of that
            return _identity(path) == watch.identity
        except OSError:
            return False

    def again(self, path: str) -> bool:
        """From now on :meth:`quiet` tells what moved since now; ``False``: the tree must be read to be watched."""
        with self._lock:
            watch = self._trees.get(path)
            if watch is None:
                return False
            self._drain()
            if watch.grew or path not in self._trees:
                return False
            watch.moved = False
            # Which files are ignored is being asked anew: until then each counts.
            watch.ignored = frozenset(name for name in watch.ignored if name.endswith("/"))
        try:
            return _identity(path) == watch.identity
        except OSError:
            return False

    def keep(self, path: str, ignored: frozenset[str]) -> bool:
        """After :meth:`again`: ``ignored`` does not count from now on.

        ``False``: what did not count before does now, a folder came, or a file has a second name, so the tree
        must be read.
        """
        with self._lock:
            watch = self._trees.get(path)
            if watch is None or watch.grew:
                return False
            if not all(name in ignored for name in watch.ignored if name.endswith("/")):
                return False
            named, watch.named = watch.named, set()
        if any(_has_second_name(os.path.join(path, name)) for name in named):
            return False
        with self._lock:
            watch.ignored = ignored
        return True

    def forget(self, path: str) -> None:
        """Give the watches of a tree back."""
        with self._lock:
            watch = self._trees.pop(path, None)
            if watch is not None:
                self._release(watch)

    def close(self) -> None:
        """Give everything back; from now on no tree is quiet."""
        with self._lock:
            self._closed = True
            self._trees.clear()
            self._owners.clear()
            if self._inotify is not None:
                self._inotify.close()
                self._inotify = None

    # --- under the lock -------------------------------------------------------------------------

    def _drain(self) -> None:
        """Mark the trees in which something moved."""
        try:
            events = self._inotify.read(timeout=0) if self._inotify is not None else ()
        except BlockingIOError:  # how older versions of the library say that there is nothing
            return
        for event in events:
            if event.mask & _OVERFLOW:
                self._mark(watch for owners in self._owners.values() for watch in owners)
            elif event.mask & _IGNORED:  # the folder is gone
                owners = self._owners.pop(event.wd, ())
                self._mark(owners)
                for watch in owners:
                    del watch.prefixes[event.wd]
                    if not watch.prefixes and self._trees.get(watch.path) is watch:
                        del self._trees[watch.path]
            else:
                name = event.name + "/" if event.name and event.mask & _FOLDER else event.name
                came = event.mask & _CAME
                for watch in self._owners.get(event.wd, ()):
                    if watch.moved and not came or watch.prefixes[event.wd] + name in watch.ignored:
                        continue
                    watch.moved = True
                    nests = event.name in _NESTING
                    if nests or came and event.mask & _FOLDER or len(watch.named) > _MOST_NAMED:
                        watch.grew = True
                    elif came:
                        watch.named.add(watch.prefixes[event.wd] + name)

    def _mark(self, watches: Iterable[Watch]) -> None:
        """Something moved that is not known: perhaps a folder came."""
        for watch in watches:
            watch.moved = watch.grew = True

    def _release(self, watch: Watch) -> None:
        for number, descriptor in enumerate(list(watch.prefixes)):
            owners = self._owners.get(descriptor)
            if owners is None:
                continue
            owners.discard(watch)
            if not owners:
                del self._owners[descriptor]
                if self._inotify is not None:
                    with contextlib.suppress(OSError):  # the folder was removed a moment ago
                        self._inotify.rm_watch(descriptor)
            if number % _BATCH == _BATCH - 1:
                self._drain()

    def _make_room(self, newest: Watch) -> bool:
        """Let the trees go that nobody asked about for long; ``False``: that is not enough."""
        while len(self._trees) > self._most_trees or len(self._owners) > self._most_folders:
            oldest = next(iter(self._trees.values()))
            if oldest is newest or oldest.used > newest.used - _IDLE:
                return False
            del self._trees[oldest.path]
            self._release(oldest)
        return True

    def _refuse(self, path: str) -> None:
        now = time.monotonic()
        self._refused = {one: until for one, until in self._refused.items() if until > now}
        self._refused[path] = now + _IDLE


def _has_second_name(path: str) -> bool:
    try:
        info = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISREG(info.st_mode) and info.st_nlink > 1


def _identity(path: str) -> tuple[int, int]:
    info = os.stat(path)
    return info.st_dev, info.st_ino


def _mounts() -> str:
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError:
        return ""


def file_system(path: str, mounts: str) -> str | None:
    """Type of the file system that the real ``path`` is on, by the text of ``/proc/self/mountinfo``."""
    best, kind = -1, None
    for line in mounts.splitlines():
        head, _, tail = line.partition(" - ")
        fields = head.split(" ")
        if len(fields) < 5 or not tail:
            continue
        place = re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), fields[4])
        inside = path == place or path.startswith(place.rstrip("/") + "/")
        if inside and len(place) >= best:  # of two at one place the later one covers the other
            best, kind = len(place), tail.split(" ")[0]
    return kind
