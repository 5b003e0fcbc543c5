"""Carries ignored files of the main checkout over to a worktree: those that ``.worktreeinclude`` names are
copied, those that ``.worktreelink`` names are linked.

Both are gitignore files at the top of the source.  What git tracks is never carried, nor what it would show as
new; what is there already is never touched.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import stat
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ocman_jupyter.errors import OcmanError
from ocman_jupyter.git.command import Git
from ocman_jupyter.git.paths import holds_bytes, is_within, shown, size_of
from ocman_jupyter.git.records import Carried, Progress, Warned
from ocman_jupyter.git.repository import Repository

INCLUDE, LINK = ".worktreeinclude", ".worktreelink"
_MOST_TOLD = 100
_MOST_NAMED = 5
_TRIES = 3
_CHUNK = 1 << 24
_PAUSE = 0.1
"""Seconds between two words of progress."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FICLONE = 0x40049409
"""``ioctl_ficlone(2)``: the copy shares the blocks of the source."""


@dataclass(frozen=True)
class CarryPlan:
    """What would be carried from the checkout ``source``."""

    source: str
    copies: dict[str, int] = field(default_factory=dict)
    """Bytes by path below the source, of files and symbolic links."""
    links: dict[str, int] = field(default_factory=dict)
    """Bytes by path of files and folders that are linked."""
    warnings: list[Warned] = field(default_factory=list)
    made: list[tuple[str, tuple[int, ...]]] = field(default_factory=list)
    """What was made, and how it was then."""
    folders: list[str] = field(default_factory=list)
    """Folders that were made, the outer ones first."""

    def __bool__(self) -> bool:
        """Is there anything to do or to say?"""
        return bool(self.copies or self.links or self.warnings)

    @property
    def told(self) -> list[Carried]:
        """For people: no longer than a page, whole folders where there is much."""
        links = [Carried(path=shown(path), bytes=size, how="link") for path, size in sorted(self.links.items())]
        return [*links, *(Carried(path=shown(path), bytes=size, how="copy") for path, size in _grouped(self.copies))]


def _grouped(sizes: dict[str, int]) -> list[tuple[str, int]]:
    groups = sizes
    deepest = max((path.count("/") for path in sizes), default=0)
    for depth in range(deepest, -1, -1):
        if len(groups) <= _MOST_TOLD:
            break
        groups = {}
        for path, size in sizes.items():
            parts = path.split("/")
            name = path if len(parts) <= depth + 1 else "/".join(parts[: depth + 1]) + "/"
            groups[name] = groups.get(name, 0) + size
    return sorted(groups.items())


class Carry:
    """Plan and carry."""

    def __init__(self, git: Git) -> None:
        self._git = git

    async def plan(self, repository: Repository) -> CarryPlan:
        """What the main checkout would give to a new worktree.  No process where it has neither file.

        Of a bare repository: the checkout that it was asked from.  What git cannot tell is a warning.
        """
        source = repository.toplevel if repository.bare else repository.root
        try:
            return await self._plan(source)
        except OcmanError as error:
            return CarryPlan(source, warnings=[Warned("carry_failed", f"Nothing was carried: {error}")])

    async def _plan(self, source: str) -> CarryPlan:
        has_include, has_link = await self._git.disk(
            lambda: [os.path.isfile(os.path.join(source, name)) for name in (INCLUDE, LINK)]
        )
        included, linked = await asyncio.gather(
            self._matching(source, INCLUDE) if has_include else _nothing(),
            self._matching(source, LINK, "--directory") if has_link else _nothing(),
        )
        names = await self._ignored(source, [*included, *linked])
        links = {name.rstrip("/") for name in linked if name in names}
        copies = [name for name in included if name in names and not _below(name, links)]
        nested = [name for name in copies if name.endswith("/")]
        warnings = [
            Warned("carry_repository", f"{shown(name)} is a repository of its own and is not carried.")
            for name in nested
        ]
        sizes = await self._git.disk(_sizes, source, [name for name in copies if not name.endswith("/")], links)
        return CarryPlan(source, *sizes, warnings=warnings)

    async def carry(
        self, plan: CarryPlan, worktree: str, progress: Progress | None = None, resumes: bool = False
    ) -> CarryPlan:
        """Carry to ``worktree`` what is not there yet; returns what was carried now, with warnings for the rest.

        Cancelled, it takes back what it made, if that is still as it was made.  ``resumes``: an earlier call
        was killed, and may have left a file half-written.
        """
        names = [*plan.copies, *plan.links]
        if not names:
            return plan
        beyond = await self._git.disk(_beyond_links, worktree, names)
        names = [name for name in names if name not in beyond]
        # A folder that is not there yet is only known for one by its slash.
        ignored = await self._ignored(worktree, [*names, *(f"{name}/" for name in plan.links)])
        refused = [name for name in names if name not in ignored and f"{name}/" not in ignored]
        work = _Work(
            plan.source,
            worktree,
            {name: size for name, size in plan.copies.items() if name in ignored},
            {name: name not in ignored for name in plan.links if name in ignored or f"{name}/" in ignored},
            resumes,
        )
        await self._finish(work, progress)
        warnings = [*plan.warnings, *work.warnings()]
        if beyond:
            warnings.append(
                Warned("carry_failed", f"Not carried (a link is in the way): {_some(sorted(beyond))}.")
            )
        if refused:
            warnings.append(
                Warned("carry_not_ignored", f"Not carried, because this branch does not ignore it: {_some(refused)}.")
            )
        links = {name: plan.links[name] for name in work.links if name in work.done}
        copies = {name: size for name, size in plan.copies.items() if name in work.done}
        return CarryPlan(plan.source, copies, links, warnings, work.made, work.folders)

    async def _finish(self, work: _Work, progress: Progress | None) -> None:
        task = asyncio.ensure_future(self._git.disk(work.run))
        try:
            while not task.done():
                await asyncio.wait({task}, timeout=_PAUSE)
                if progress and not task.done():
                    progress("Carrying ignored files", work.fraction)
        except asyncio.CancelledError:
            work.cancelled.set()
            while not task.done():
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait({task})
            await asyncio.shield(self._git.disk(take_back, work.target, work.made, work.folders))
            raise
        task.result()

    async def _matching(self, source: str, file: str, *options: str) -> list[str]:
        """Files that git does not track and that match the patterns in ``file`` of the source's top."""
        done = await self._git.run(
            "ls-files", "-z", "--others", "--ignored", f"--exclude-from={file}", *options, cwd=source
        )
        return [name for name in done.text.split("\0") if name]

    async def _ignored(self, top: str, names: list[str]) -> set[str]:
        """Those that git neither tracks nor shows as new."""
        if not names:
            return set()
        text = "".join(f"{name}\0" for name in names)
        done = await self._git.run("check-ignore", "-z", "--stdin", cwd=top, input=os.fsencode(text), ok=(0, 1))
        return set(done.text.split("\0"))


async def _nothing() -> list[str]:
    return []


def _below(name: str, folders: set[str]) -> bool:
    parts = name.rstrip("/").split("/")
    return any("/".join(parts[:number]) in folders for number in range(1, len(parts) + 1))


def _beyond_links(top: str, names: Iterable[str]) -> set[str]:
    """Those that would be reached through a symbolic link: git refuses to speak of them."""
    known: dict[str, bool] = {"": False}

    def is_beyond(folder: str) -> bool:
        if folder not in known:
            known[folder] = is_beyond(os.path.dirname(folder)) or os.path.islink(os.path.join(top, folder))
        return known[folder]

    return {name for name in names if is_beyond(os.path.dirname(name))}


def _sizes(source: str, files: Iterable[str], links: Iterable[str]) -> tuple[dict[str, int], dict[str, int]]:
    copies = {}
    for name in files:
        with contextlib.suppress(OSError):
            info = os.lstat(os.path.join(source, name))
            if holds_bytes(info):
                copies[name] = info.st_size
    linked = {}
    for name in links:
        try:
            linked[name] = size_of(os.path.join(source, name)) or 0
        except OSError:  # not all of it can be read
            linked[name] = 0
    return copies, linked


def _some(names: list[str]) -> str:
    listed = ", ".join(shown(name) for name in names[:_MOST_NAMED])
    return listed if len(names) <= _MOST_NAMED else f"{listed} and {len(names) - _MOST_NAMED:,} more"


class _Changes(Exception):
    """The source is being written to."""


class _Work:
    """One carrying, in a worker thread: two at a time are no faster.

    Folders are opened one below the other and never through a link, so that nothing is written outside of
    the worktree nor read from outside of the source.
    """

    def __init__(
        self, source: str, target: str, copies: dict[str, int], links: dict[str, bool], resumes: bool
    ) -> None:
        self._source, self.target = source, target
        self._copies = copies
        self.links = links
        """Path → whether it has to stay a folder (git ignores only a folder of this name): its entries are linked."""
        self._resumes = resumes
        self._reflinks = sys.platform == "linux"
        self._bytes = 0
        self._all = sum(copies.values()) or 1
        self.done: set[str] = set()
        self.made: list[tuple[str, tuple[int, ...]]] = []
        self.folders: list[str] = []
        self._failed: dict[str, list[str]] = {}
        self._full = False
        self.cancelled = threading.Event()

    @property
    def fraction(self) -> float:
        return min(1.0, self._bytes / self._all)

    def warnings(self) -> list[Warned]:
        told = []
        if self._full:
            told.append(Warned("carry_incomplete", "The disk is full: not all ignored files could be carried."))
        for why, names in self._failed.items():
            told.append(Warned("carry_failed", f"Not carried ({why}): {_some(names)}."))
        return told

    def run(self) -> None:
        for name, as_folder in self.links.items():
            if self._stopped:
                return
            self._attempt(name, lambda name=name, as_folder=as_folder: self._link(name, as_folder))
        by_folder: dict[str, list[str]] = {}
        for name in self._copies:
            by_folder.setdefault(os.path.dirname(name), []).append(name)
        for folder, names in by_folder.items():
            self._copy_folder(folder, names)

    @property
    def _stopped(self) -> bool:
        return self._full or self.cancelled.is_set()

    # --- the deeds -------------------------------------------------------------------------------

    def _attempt(self, name: str, deed: Callable[[], None]) -> None:
        try:
            deed()
        except FileExistsError:
            pass  # never touched
        except FileNotFoundError:
            pass  # it went meanwhile
        except _Changes:
            self._fail("it is being written to", name)
        except OSError as error:
            self._fail(error.strerror or str(error), name, error=error)

    def _fail(self, why: str, *names: str, error: OSError | None = None) -> None:
        if error is not None and error.errno in (errno.ENOSPC, errno.EDQUOT):
            self._full = True
        else:
            self._failed.setdefault(why, []).extend(names)

    def _copy_folder(self, folder: str, names: list[str]) -> None:
        if self._stopped:
            return
        try:
            with self._open(self._source, folder) as source, self._open(self.target, folder, make=True) as target:
                for name in names:
                    if self._stopped:
                        return
                    self._attempt(name, lambda name=name: self._copy(source, target, name))
        except OSError as error:
            why = "something else is in the way" if error.errno in (errno.ELOOP, errno.ENOTDIR) else error.strerror
            self._fail(why or str(error), *names, error=error)

    @contextlib.contextmanager
    def _open(self, top: str, folder: str, make: bool = False) -> Iterator[int]:
        place = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            path = ""
            for part in filter(None, folder.split("/")):
                path = f"{path}/{part}" if path else part
                if make:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(part, dir_fd=place)
                        self.folders.append(path)
                below = os.open(part, _FOLDER, dir_fd=place)
                os.close(place)
                place = below
            yield place
        finally:
            os.close(place)

    def _copy(self, source: int, target: int, name: str) -> None:
        base = os.path.basename(name)
        try:
            here = os.open(base, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=source)
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            self._symlink(self._pointing(name, os.readlink(base, dir_fd=source)), target, name)
            return
        try:
            for _ in range(_TRIES):
                with contextlib.suppress(_Changes):
                    self.made.append((name, self._copy_file(here, target, base)))
                    self.done.add(name)
                    return
            raise _Changes
        finally:
            os.close(here)

    def _copy_file(self, here: int, target: int, base: str) -> tuple[int, ...]:
        before = os.fstat(here)
        if not stat.S_ISREG(before.st_mode):
            raise FileNotFoundError(base)
        try:
            there = os.open(base, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=target)
        except FileExistsError:
            if not (self._resumes and _is_torn(here, target, base, before.st_size)):
                raise
            there = os.open(base, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=target)
        try:
            self._fill(here, there, before.st_size)
            after = os.fstat(here)
            if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
                raise _Changes
            os.fchmod(there, stat.S_IMODE(before.st_mode) & 0o777)
            os.utime(there, ns=(before.st_atime_ns, before.st_mtime_ns))
        except BaseException:
            os.unlink(base, dir_fd=target)
            raise
        finally:
            os.close(there)
        return before.st_size, before.st_mtime_ns

    def _fill(self, here: int, there: int, size: int) -> None:
        if self._reflinks:
            try:
                fcntl.ioctl(there, _FICLONE, here)
                self._bytes += size
                return
            except OSError:
                self._reflinks = False
        os.lseek(here, 0, os.SEEK_SET)
        left = size
        while left > 0:
            if self.cancelled.is_set():
                raise _Changes
            chunk = os.read(here, min(left, _CHUNK))
            if not chunk:
                raise _Changes
            left -= len(chunk)
            self._bytes += len(chunk)
            view = memoryview(chunk)
            while view:
                view = view[os.write(there, view) :]

    def _pointing(self, name: str, to: str) -> str:
        """A link that leads out of the source leads to the same place from anywhere."""
        if os.path.isabs(to):
            return to
        place = os.path.normpath(os.path.join(self._source, os.path.dirname(name), to))
        return to if is_within(place, self._source) else place

    def _link(self, name: str, as_folder: bool) -> None:
        origin = os.path.join(self._source, name)
        if not as_folder:
            with self._open(self.target, os.path.dirname(name), make=True) as target:
                self._symlink(origin, target, name)
            return
        with self._open(self.target, name, make=True) as target:
            for one in sorted(os.listdir(origin)):
                with contextlib.suppress(FileExistsError):
                    self._symlink(f"{origin}/{one}", target, f"{name}/{one}")
        self.done.add(name)

    def _symlink(self, origin: str, target: int, name: str) -> None:
        base = os.path.basename(name)
        os.symlink(origin, base, dir_fd=target)
        self.made.append((name, _identity(os.stat(base, dir_fd=target, follow_symlinks=False))))
        self.done.add(name)


def take_back(worktree: str, made: Iterable[tuple[str, tuple[int, ...]]], folders: Sequence[str]) -> None:
    """Delete what was carried to ``worktree`` and is still as it was made."""
    for name, identity in made:
        path = os.path.join(worktree, name)
        with contextlib.suppress(OSError):
            if _identity(os.lstat(path)) == identity:
                os.unlink(path)
    for name in reversed(folders):
        with contextlib.suppress(OSError):
            os.rmdir(os.path.join(worktree, name))


def _identity(info: os.stat_result) -> tuple[int, ...]:
    return info.st_size, info.st_mtime_ns


def _is_torn(here: int, target: int, base: str, size: int) -> bool:
    """Is the file the beginning of what it should be, and shorter?  Then writing it anew loses nothing."""
    try:
        there = os.open(base, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=target)
    except OSError:
        return False
    try:
        info = os.fstat(there)
        if not stat.S_ISREG(info.st_mode) or info.st_size >= size:
            return False
        os.lseek(here, 0, os.SEEK_SET)
        left = info.st_size
        while left > 0:
            chunk = os.read(there, min(left, _CHUNK))
            if not chunk or os.read(here, len(chunk)) != chunk:
                return False
            left -= len(chunk)
        return True
    finally:
        os.close(there)
