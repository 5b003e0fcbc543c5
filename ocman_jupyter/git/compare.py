"""A worktree compared with where it came from: commits since, uncommitted changes and untracked files at once.

git compares the work tree through a private copy of the index in which the untracked files are entered, so
that they are told, and paired as renames, like any other.  Nothing of the user's is written.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass

from ocman_jupyter.errors import NoBase, NoSuchWorktree
from ocman_jupyter.git import notebooks
from ocman_jupyter.git.command import Git, GitFailed
from ocman_jupyter.git.links import link_of
from ocman_jupyter.git.patches import Change, DiffReader
from ocman_jupyter.git.paths import is_within, shown
from ocman_jupyter.git.records import Against, Diff, FileDiff, FileStatus, Worktree
from ocman_jupyter.git.refs import DEFAULTS, BaseChoice, Commit, commits, full_names, short
from ocman_jupyter.git.repository import Repository
from ocman_jupyter.git.together import together
from ocman_jupyter.git.worktrees import Worktrees

BASE = "base"
"""Compare with the base that a worktree was made from."""
HEAD = "HEAD"
"""Compare with the last commit."""

PATCH = 200_000
"""Bytes of one file's patch: some 4,000 lines, more than anybody reads."""
PATCHES = 5_000_000
"""Bytes of all patches of one answer, which a page holds in memory."""
FILES = 3000
_NAMED = 20_000
"""Files that differ, above which their lines are not counted: that alone would take a minute."""
_LARGE = 20_000_000
"""Bytes of a file that is not read: git takes it for binary (``core.bigFileThreshold``)."""
_UNTRACKED = 200_000_000
"""Bytes of all untracked files that are read."""
_NOTEBOOKS, _NOTEBOOK_SECONDS = 50, 5.0
"""Notebooks that are looked into, and how long."""
_ATTEMPTS, _AGAIN_SECONDS = 7, 3.0
"""git gives up when a file goes away while it reads it: then an agent is at work, and it is asked again."""
_SNIFFED = 8000
"""Bytes in which git looks for a NUL, to tell a binary file."""

# What a user may have configured and what would change the shape of the answer.
_CONFIG = {
    "core.quotePath": "false",
    "core.bigFileThreshold": str(_LARGE),
    "core.splitIndex": "false",  # would put a part of the copy among the files of the repository
    "core.protectNTFS": "false",  # a file that is there has a name that can be there
    "core.protectHFS": "false",
    "diff.suppressBlankEmpty": "false",
    "diff.autoRefreshIndex": "true",  # files that were only touched are no changes
    "index.sparse": "false",
}
_SHAPE = (
    "--raw",
    "--numstat",
    "--patch",
    "-z",
    "--no-abbrev",
    "--unified=3",
    "--inter-hunk-context=0",
    "--find-renames",
    "-l1000",
    "-O/dev/null",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "--no-relative",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--no-color-moved",
    "--submodule=short",
    "--ignore-submodules=none",
)
_EXPRESSION = re.compile(r"[~^:]|@\{|\.\.")
"""What makes a revision more than a name."""
_STATUS: dict[str, FileStatus] = {"A": "added", "D": "deleted", "R": "renamed", "U": "conflicted"}


@dataclass(frozen=True)
class _Untracked:
    """What git does not track, and does not ignore."""

    enter: list[bytes]
    """Entered in the private index: git reads them."""
    beside: list[bytes]
    """Too large, too much, a repository: named only."""
    more: bool
    """There are more than :data:`FILES`."""


class Compare:
    """Compares worktrees."""

    def __init__(self, git: Git, worktrees: Worktrees) -> None:
        self._git, self._worktrees = git, worktrees

    async def diff(self, path: str, against: str = BASE) -> Diff:
        """What differs in the worktree at ``path``.

        Parameters
        ----------
        against:
            ``base``: where its base is now, else where that was, else the default base.  ``HEAD``: only what
            is not committed.  The absolute path of another worktree: that one's commits.  Else any revision.
            Compared is with the commit where the two parted.

        Raises
        ------
        NoSuchWorktree, DirectoryMissing
            Also ``NoSuchWorktree`` for an ``against`` that is a path of none; ``details.field`` says so.
        NoBase
            ``against`` does not name a commit, or one without a common history.
        GitFailed and its kin
        """
        repository, worktree = await self._worktrees.find(path)
        if worktree.state == "not_a_worktree":
            raise NoSuchWorktree(f"{worktree.path} is a folder, not a worktree.", details={"path": worktree.path})
        top = await self._git.disk(os.path.realpath, path)
        if not worktree.is_main:
            await self._worktrees.verify(top)
        start, found = await together(self._start(repository, worktree, top, against), self._look_around(top))
        until = time.monotonic() + _AGAIN_SECONDS
        for _ in range(_ATTEMPTS):
            try:
                return await self._compare(repository, worktree, top, start, *found)
            except GitFailed:
                if time.monotonic() > until:
                    raise
            found = await self._look_around(top)
        return await self._compare(repository, worktree, top, start, *found)

    async def _compare(
        self,
        repository: Repository,
        worktree: Worktree,
        top: str,
        start: Against,
        untracked: _Untracked,
        conflicts: set[bytes],
    ) -> Diff:
        async with self._index(repository, worktree, top) as index:
            if untracked.enter:
                await self._enter(top, index, untracked.enter, start.sha)
            reader = DiffReader(_NAMED, PATCH, PATCHES)
            await self._git.run(
                "diff", *_SHAPE, start.sha, "--", cwd=top, index=index, take=reader.take, config=_CONFIG
            )
            reader.end()
        return await self._told(top, start, untracked, conflicts, reader)

    # --- what it is compared with -----------------------------------------------------------------

    async def _start(self, repository: Repository, worktree: Worktree, top: str, against: str) -> Against:
        if worktree.head is None and against in (BASE, HEAD):
            # Before the first commit everything is new.
            done = await self._git.run("hash-object", "-t", "tree", "--stdin", cwd=top, input=b"")
            return Against(ref=HEAD, sha=done.text.strip())
        if against == HEAD and worktree.head is not None:
            return Against(ref=HEAD, sha=worktree.head)
        if against == BASE:
            candidates = await self._bases(repository, worktree, top)
        elif os.path.isabs(against):
            candidates = [await self._other(repository, against)]
        else:
            candidates = await self._revision(top, against)
        for one in candidates:
            parted = await self._parted(worktree, one.sha, top)
            if parted is not None:
                return Against(ref=one.ref, sha=parted)
        what = f"{ascii(against)[1:-1]} has" if against != BASE else "Its base has"
        raise NoBase(f"{what} no history in common with this worktree.", details=_field(against))

    async def _bases(self, repository: Repository, worktree: Worktree, top: str) -> list[Against]:
        names: list[tuple[str, str]] = []
        base = worktree.base
        if base is not None:
            names += [(base.ref, name) for name in full_names(base.ref)]
            names.append((base.ref, base.sha))
        else:
            default, _ = await self._worktrees.list(repository, changes=False)
            if default is not None:
                names.append((default.ref, default.sha))
        names += [(short(one), one) for one in DEFAULTS]
        found = await commits(self._git, [name for _, name in names], top)
        candidates = [Against(ref=ref, sha=found[name].sha) for ref, name in names if name in found]
        if not candidates:
            raise NoBase("There is nothing that this worktree was made from.", details=_field(BASE))
        return candidates

    async def _other(self, repository: Repository, against: str) -> Against:
        missing = NoSuchWorktree(
            "There is no such worktree of this repository to compare with.", details=_field(against)
        )
        try:
            real = shown(await self._git.disk(os.path.realpath, against))
        except (OSError, ValueError):
            raise missing from None
        _, listed = await self._worktrees.list(repository, changes=False)
        other = next((one for one in listed if one.path == real), None)
        if other is None or other.state == "not_a_worktree":
            raise missing
        if other.head is None:
            raise NoBase(f"{other.path} has no commit.", details=_field(against))
        return Against(ref=other.branch or other.path, sha=other.head)

    async def _revision(self, top: str, against: str) -> list[Against]:
        candidates = BaseChoice(against).candidates
        if _EXPRESSION.search(against):  # of which no part of a branch's name can be made
            candidates = candidates and [against]
        try:
            found: dict[str, Commit] = await commits(self._git, candidates, top) if candidates else {}
        except GitFailed as error:  # a branch without an upstream, a log that does not reach so far
            raise NoBase(_no_commit(against), details={**_field(against), **error.details}) from error
        named = next((found[one] for one in candidates if one in found), None)
        if named is None:
            raise NoBase(_no_commit(against), details=_field(against))
        return [Against(ref=against, sha=named.sha)]

    async def _parted(self, worktree: Worktree, sha: str, top: str) -> str | None:
        """The commit where the worktree and ``sha`` parted."""
        if worktree.head is None:
            return None
        if worktree.head == sha:
            return sha
        done = await self._git.run("merge-base", worktree.head, sha, cwd=top, ok=(0, 1))
        return next(iter(done.text.split()), None)

    # --- what is there ----------------------------------------------------------------------------

    async def _look_around(self, top: str) -> tuple[_Untracked, set[bytes]]:
        """Untracked files, and those with conflicts."""
        reader = _Names(FILES + 1)
        await self._git.run(
            "ls-files", "-t", "--others", "--unmerged", "--exclude-standard", "-z", cwd=top, take=reader.take
        )
        untracked = await self._git.disk(_sort_out, top, reader.untracked[:FILES], len(reader.untracked) > FILES)
        if reader.enough:  # it tells conflicts after the untracked files
            reader = _Names(FILES)
            await self._git.run("ls-files", "-t", "--unmerged", "-z", cwd=top, take=reader.take)
        return untracked, reader.unmerged

    @contextlib.asynccontextmanager
    async def _index(self, repository: Repository, worktree: Worktree, top: str) -> AsyncIterator[str]:
        """A private copy of the index."""
        admin = repository.common_dir if worktree.is_main else await self._git.disk(link_of, top)
        folder = await self._git.disk(lambda: tempfile.mkdtemp(prefix="ocman-diff-"))  # only for this user
        try:
            copy = os.path.join(folder, "index")
            await self._git.disk(_copy, os.path.join(admin or repository.common_dir, "index"), copy)
            yield copy
        finally:
            await asyncio.shield(self._git.disk(lambda: shutil.rmtree(folder, ignore_errors=True)))

    async def _enter(self, top: str, index: str, names: Iterable[bytes], sha: str) -> None:
        """Enter files in a private index as empty and never looked at: no object is made, git reads the files."""
        empty = (hashlib.sha1 if len(sha) == 40 else hashlib.sha256)(b"blob 0\0").hexdigest()
        entry = b"100644 " + empty.encode() + b"\t"
        question = b"".join(entry + name + b"\0" for name in names)
        await self._git.run(
            "update-index", "-z", "--index-info", cwd=top, index=index, input=question, config=_CONFIG
        )

    # --- what is told -----------------------------------------------------------------------------

    async def _told(
        self, top: str, start: Against, untracked: _Untracked, conflicts: set[bytes], reader: DiffReader
    ) -> Diff:
        new = {*untracked.enter, *untracked.beside}
        changes = dict(reader.changes)
        for path in conflicts:
            changes.setdefault(path, Change("U", path, additions=0, deletions=0, patch=b"")).letter = "U"
        for path in untracked.beside:
            changes.setdefault(path, Change("A", path))
        # What is tracked goes first: a folder full of new files must not hide the work.
        ordered = sorted(changes.values(), key=lambda one: (one.letter == "A" and one.path in new, one.path))
        chosen = sorted(ordered[:FILES], key=lambda one: one.path)
        names = [os.fsdecode(one.path) for one in chosen]
        beside = set(untracked.beside)
        unread = {
            name: 0 if one.path in beside else _LARGE
            for name, one in zip(names, chosen, strict=True)
            if (one.binary or one.path in beside) and one.letter != "D"
        }
        binary = await self._git.disk(_binary, top, unread)
        files = [
            FileDiff(
                path=shown(name),
                old_path=None if one.old_path is None else shown(os.fsdecode(one.old_path)),
                status="untracked" if one.letter == "A" and one.path in new else _STATUS.get(one.letter, "modified"),
                additions=one.additions,
                deletions=one.deletions,
                binary=binary.get(name, one.binary),
                notebook=_is_notebook(one),
                patch=None if one.patch is None else one.patch.decode("utf-8", "replace"),
            )
            for name, one in zip(names, chosen, strict=True)
        ]
        await self._look_into_notebooks(top, files, chosen, PATCHES)
        truncated = reader.overflow or reader.cut or untracked.more or len(ordered) > FILES
        return Diff(files=files, truncated=truncated, against=start)

    async def _look_into_notebooks(self, top: str, files: list[FileDiff], changes: list[Change], room: int) -> None:
        asked = [
            (file, one)
            for file, one in zip(files, changes, strict=True)
            if file.notebook and one.letter != "U" and not one.is_module and one.old_mode != "120000"
        ][:_NOTEBOOKS]
        if not asked:
            return
        until = time.monotonic() + _NOTEBOOK_SECONDS
        objects = {sha for _, one in asked for sha in (one.old_sha, one.new_sha) if sha.strip("0")}
        small = await self._small(top, objects)
        for file, one in asked:
            if not {sha for sha in (one.old_sha, one.new_sha) if sha.strip("0")} <= small:
                continue
            if time.monotonic() > until:
                break
            old = await self._content(top, one.old_sha) if one.old_sha.strip("0") else None
            new: bytes | None = None
            if one.new_sha.strip("0"):
                new = await self._content(top, one.new_sha)
            elif one.letter != "D":
                new = await self._git.disk(_read, top, one.path)
                if new is None:
                    continue
            compared = await self._git.disk(notebooks.compare, old, new, min(PATCH, room))
            if compared is not None:
                file.notebook_diff, size = compared
                room -= size

    async def _small(self, top: str, objects: set[str]) -> set[str]:
        """Those objects that are small enough to be looked into."""
        question = "".join(f"{sha}\n" for sha in objects).encode()
        done = await self._git.run("cat-file", "--batch-check", cwd=top, input=question)
        facts = [line.split() for line in done.text.splitlines()]
        return {
            one[0] for one in facts if len(one) == 3 and one[1] == "blob" and int(one[2]) <= notebooks.LARGEST
        }

    async def _content(self, top: str, sha: str) -> bytes:
        return (await self._git.run("cat-file", "blob", sha, cwd=top)).out


class _Names:
    """Reads `ls-files -t --others --unmerged -z`."""

    def __init__(self, most: int) -> None:
        self._most, self._rest = most, b""
        self.untracked: list[bytes] = []
        self.unmerged: set[bytes] = set()

    @property
    def enough(self) -> bool:
        return len(self.untracked) >= self._most or len(self.unmerged) >= self._most

    def take(self, chunk: bytes) -> bool:
        *lines, self._rest = (self._rest + chunk).split(b"\0")
        for line in lines:
            tag, _, rest = line.partition(b" ")
            if tag == b"?":
                self.untracked.append(rest)
            elif tag == b"M":
                self.unmerged.add(rest.partition(b"\t")[2])
        return not self.enough


def _no_commit(against: str) -> str:
    return f"'{ascii(against)[1:-1]}' does not name a commit."


def _field(against: str) -> dict[str, str]:
    return {"field": "against", "against": ascii(against)[1:-1]}


def _sort_out(top: str, names: list[bytes], more: bool) -> _Untracked:
    """Which untracked files may be read."""
    enter, beside = [], []
    left = _UNTRACKED
    root = os.fsencode(top)
    for name in names:
        # git refuses these names, in any case of letters.
        ours = name.endswith(b"/") or b".git" in name.lower().split(b"/")
        try:
            info = os.lstat(os.path.join(root, name))
        except OSError:
            continue
        size = info.st_size if stat.S_ISREG(info.st_mode) else 0
        unreadable = size > 0 and not os.access(os.path.join(root, name), os.R_OK)  # git would give up
        if ours or unreadable or size > min(_LARGE, left):
            beside.append(name)
        else:
            left -= size
            enter.append(name)
    return _Untracked(enter, beside, more)


def _copy(source: str, target: str) -> None:
    """With its time: git takes files that changed since for changed, whatever else it knows of them."""
    try:
        with open(source, "rb") as one, open(target, "xb") as other:
            info = os.fstat(one.fileno())
            shutil.copyfileobj(one, other, 1 << 20)
    except FileNotFoundError:
        return  # nothing was ever added or checked out
    os.utime(target, ns=(info.st_atime_ns, info.st_mtime_ns))


def _open(path: str) -> int | None:
    """A regular file for reading; a link, a pipe or a device is none."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    return None


def _binary(top: str, names: dict[str, int]) -> dict[str, bool]:
    """Files that git did not look into, those above a size: is there a NUL where git would look for one?"""
    found: dict[str, bool] = {}
    for name, least in names.items():
        descriptor = _open(os.path.join(top, name))
        if descriptor is None:
            continue
        with open(descriptor, "rb", buffering=0) as file, contextlib.suppress(OSError):
            if os.fstat(descriptor).st_size > least:
                found[name] = b"\0" in file.read(_SNIFFED)
    return found


def _is_notebook(change: Change) -> bool:
    return any(one is not None and one.lower().endswith(b".ipynb") for one in (change.path, change.old_path))


def _read(top: str, name: bytes) -> bytes | None:
    """A notebook in the worktree, when it is not too large."""
    path = os.path.join(top, os.fsdecode(name))
    if not is_within(os.path.realpath(path), top):
        return None
    descriptor = _open(path)
    if descriptor is None:
        return None
    with open(descriptor, "rb") as file:
        content = file.read(notebooks.LARGEST + 1)
    return content if len(content) <= notebooks.LARGEST else None
