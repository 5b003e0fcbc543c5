"""Worktrees whose making was cut short: completed by the next add, or taken back; never a file lost."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ocman_jupyter.errors import OcmanError
from ocman_jupyter.git import made
from ocman_jupyter.git.checkouts import INITIALIZING
from ocman_jupyter.git.command import ANY, Git
from ocman_jupyter.git.links import link_of, read_line
from ocman_jupyter.git.made import Made
from ocman_jupyter.git.paths import is_within
from ocman_jupyter.git.records import Progress
from ocman_jupyter.git.refs import HEADS
from ocman_jupyter.git.repository import Repository
from ocman_jupyter.store import Store

_POLL = 0.1
_TORN_AT_MOST = 1000


@dataclass(frozen=True)
class Place:
    """What the disk shows of a worktree."""

    admin: str | None
    """Its admin folder, when the links in both directions are right."""
    on_branch: bool = False
    initializing: bool = False
    """git has not finished making it."""
    has_index: bool = False

    @property
    def finished(self) -> bool:
        return self.admin is not None and self.on_branch and self.has_index and not self.initializing


def look(repository: Repository, path: str, branch: str) -> Place:
    """Read the links of a worktree; no process."""
    link = link_of(path)
    if link is None or not is_within(link, os.path.join(repository.common_dir, "worktrees")):
        return Place(None)
    back = read_line(os.path.join(link, "gitdir"))
    if back is None or os.path.realpath(os.path.dirname(os.path.join(link, back))) != path:
        return Place(None)
    # A repository with reftables keeps HEAD elsewhere and leaves this in its place.
    heads = (f"ref: {HEADS}{branch}", "ref: refs/heads/.invalid")
    return Place(
        link,
        on_branch=read_line(os.path.join(link, "HEAD")) in heads,
        initializing=read_line(os.path.join(link, "locked")) == INITIALIZING,
        has_index=os.path.exists(os.path.join(link, "index")),
    )


def row_of(branch: str, rows: dict[str, Made]) -> Made | None:
    """The row of a making of ``branch`` that did not end."""
    return next((row for row in rows.values() if row.branch == branch and row.state == "making"), None)


async def complete(
    git: Git,
    store: Store,
    repository: Repository,
    row: Made,
    progress: Progress | None,
) -> Made | None:
    """Bring a making that was cut short to its end; its row when the worktree is complete but for what is carried.

    To be called with the lock held: then whoever began it is dead, but its git may live on.
    """
    while await git.disk(_adder_lives, row.path):
        if progress:
            progress("Waiting for a git that already makes this worktree", None)
        await asyncio.sleep(_POLL)
    place = await git.disk(look, repository, row.path, row.branch)
    if place.admin is None:
        return None
    if place.on_branch and row.branch_made and not await made.made_branch(
        git, row, repository.common_dir, untouched=False
    ):
        await made.forget(store, row.path)  # somebody else made it since
        return None
    if not place.initializing:
        await made.save(store, replace(row, state="carrying"))
        return row if place.finished else None
    if not place.on_branch:
        await take_back(git, repository, row.path, row.branch, row.created)
        return None
    if progress:
        progress("Completing a worktree that was left half-made", None)
    await _restore(git, row.path, place.admin)
    await made.save(store, replace(row, state="carrying"))
    return row


def _adder_lives(path: str, anywhere: bool = False) -> bool:
    """Does a git make a worktree at ``path``, or, ``anywhere``, at one of the same last name?"""
    import psutil

    name = os.path.basename(path)
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            argv = process.cmdline()
            if (
                (path in argv or anywhere and any(os.path.basename(word.rstrip("/")) == name for word in argv))
                and "worktree" in argv
                and "add" in argv
                and process.status() != psutil.STATUS_ZOMBIE
            ):
                return True
    return False


async def _restore(git: Git, path: str, admin: str) -> None:
    """Check out what is missing; a file that was torn is written anew, any other is left as it is."""
    if not await git.disk(_unlocked_index, admin):
        await git.run("read-tree", "HEAD", cwd=path, write=True)
    workers = {"checkout.workers": str(git.checkout_workers)}
    await git.run("checkout-index", "--all", "--quiet", cwd=path, write=True, ok=ANY, config=workers)
    await git.run("update-index", "-q", "--refresh", cwd=path, write=True, ok=ANY)
    for name in (await _differing(git, path))[:_TORN_AT_MOST]:
        if await _is_beginning(git, path, name):
            await git.run("checkout-index", "--force", "--", name, cwd=path, write=True)
    await git.run("update-index", "-q", "--refresh", cwd=path, write=True, ok=ANY)
    await git.run("worktree", "unlock", "--", path, cwd=path, write=True)
    head = await git.run("rev-parse", "HEAD", cwd=path)
    sha = head.text.strip()
    await git.run(  # as `worktree add` would have done; git before 2.36 cannot
        "hook",
        "run",
        "--ignore-missing",
        "post-checkout",
        "--",
        "0" * len(sha),
        sha,
        "1",
        cwd=path,
        write=True,
        ok=ANY,
    )


async def _differing(git: Git, path: str, index: str | None = None) -> list[str]:
    done = await git.run("diff-files", "--name-only", "-z", "--diff-filter=d", cwd=path, index=index)
    return [name for name in done.text.split("\0") if name]


async def _is_beginning(git: Git, path: str, name: str, index: str | None = None) -> bool:
    """Is the file what a checkout that was ended left of it?"""
    whole = await git.run("cat-file", "--filters", f":{name}", cwd=path, ok=ANY, index=index)
    return whole.code == 0 and await git.disk(_is_torn, os.path.join(path, name), whole.out)


async def _is_edited(git: Git, path: str, branch: str) -> bool:
    """Does a file of the commit hold anything but what a checkout writes?  By content: flags do not hide it."""
    folder = await git.disk(tempfile.mkdtemp, None, "ocman-index-")
    index = os.path.join(folder, "index")
    try:
        await git.run("read-tree", HEADS + branch, cwd=path, index=index)
        await git.run("update-index", "-q", "--refresh", cwd=path, index=index, ok=ANY)
        differing = await _differing(git, path, index)
        if len(differing) > _TORN_AT_MOST:
            return True
        for name in differing:
            if not await _is_beginning(git, path, name, index):
                return True
        return False
    except OcmanError:
        return True
    finally:
        await git.disk(shutil.rmtree, folder, True)


def _unlocked_index(admin: str) -> bool:
    """Is there an index?  A lock on it is of the dead git: nobody else knew this worktree."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(admin, "index.lock"))
    return os.path.exists(os.path.join(admin, "index"))


def _is_torn(path: str, whole: bytes) -> bool:
    """Is the file the beginning of what it should be, and shorter?"""
    try:
        info = os.lstat(path)
        if not stat.S_ISREG(info.st_mode) or info.st_size >= len(whole):
            return False
        with open(path, "rb") as file:
            return whole.startswith(file.read())
    except OSError:
        return False


async def take_back(git: Git, repository: Repository, path: str, branch: str, since: float) -> bool:
    """Remove the worktree that an add, begun at the Unix time ``since``, left at ``path``; True when it had to stay.

    It stays when it holds anything that the commit does not: somebody put it there.
    """
    place = await git.disk(look, repository, path, branch)
    if place.admin is not None:
        if place.finished:
            done = await git.run(
                "status",
                "--porcelain",
                "-z",
                "--no-renames",
                "--ignored",
                "--untracked-files=all",
                cwd=path,
                ok=ANY,
            )
            differing = [line for line in done.out.split(b"\0") if line and not line.startswith(b" D ")]
            foreign = done.code != 0 or bool(differing)
        elif not place.on_branch:
            if await _is_bare_start(git, place, path):
                await git.disk(_remove_bare_start, path, place.admin)
            return False  # else somebody else's
        else:
            tree = await git.run(
                "ls-tree", "-r", "-z", "--name-only", HEADS + branch, cwd=repository.common_dir, ok=ANY
            )
            foreign = tree.code != 0 or await git.disk(_has_foreign, path, set(tree.out.split(b"\0")))
        if foreign or await _is_edited(git, path, branch):
            return True
        await git.run(
            "worktree",
            "remove",
            "--force",
            "--force",
            "--",
            path,
            cwd=repository.common_dir,
            write=True,
            ok=ANY,
        )
        return await git.disk(os.path.lexists, path)
    await git.disk(_remove_leftovers, repository, path, since)
    return False


def _is_unwritten(admin: str, path: str, since: float) -> bool:
    """Did the git that made the worktree at ``path`` die before it could write that into ``admin``?"""
    name = os.path.basename(admin).rstrip("0123456789")  # git adds a number to a name that is taken
    if name != os.path.basename(path).rstrip("0123456789") or os.stat(admin).st_mtime < since - 1:
        return False
    return not _adder_lives(path, anywhere=True)


async def _is_bare_start(git: Git, place: Place, path: str) -> bool:
    """Did a git that is dead get no further than the link?"""
    if not place.initializing or await git.disk(_adder_lives, path):
        return False
    return await git.disk(os.listdir, path) == [".git"]


def _remove_bare_start(path: str, admin: str) -> None:
    """By hand: git itself does not know a worktree that has no ``HEAD`` yet."""
    with contextlib.suppress(OSError):
        os.unlink(os.path.join(path, ".git"))
        shutil.rmtree(admin, ignore_errors=True)
        os.rmdir(path)


def _has_foreign(path: str, known: set[bytes]) -> bool:
    top = os.fsencode(path)
    return any(name not in known for name in _files(top, b"") if name != b".git")


def _files(folder: bytes, prefix: bytes) -> Iterator[bytes]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _files(entry.path, prefix + entry.name + b"/")
            else:
                yield prefix + entry.name


def _remove_leftovers(repository: Repository, path: str, since: float) -> None:
    """An admin folder of a git that died before it linked the worktree, and an empty folder."""
    folder = os.path.join(repository.common_dir, "worktrees")
    for name in os.listdir(folder) if os.path.isdir(folder) else []:
        admin = os.path.join(folder, name)
        if read_line(os.path.join(admin, "locked")) != INITIALIZING:
            continue
        link = read_line(os.path.join(admin, "gitdir"))
        if link == os.path.join(path, ".git") or not link and _is_unwritten(admin, path, since):
            shutil.rmtree(admin, ignore_errors=True)
    with contextlib.suppress(OSError):
        if os.listdir(path) == [".git"] and _is_torn_link(os.path.join(path, ".git"), folder):
            os.unlink(os.path.join(path, ".git"))
        os.rmdir(path)


def _is_torn_link(path: str, folder: str) -> bool:
    """Is it the beginning of a link into ``folder``, as a git that was killed leaves it?"""
    if os.path.islink(path) or not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        content = file.read(8192)
    start = b"gitdir: " + os.fsencode(folder)
    return start.startswith(content) or content.startswith(start) and not content.endswith(b"\n")
