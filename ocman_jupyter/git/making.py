"""Makes one planned worktree, reads back what is there, and undoes only what this attempt made."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import re
import stat
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from ocman_jupyter.errors import BranchCheckedOut, ForbiddenPath, OcmanError, PathConflict
from ocman_jupyter.git import half_made, made
from ocman_jupyter.git.carry import CarryPlan, take_back
from ocman_jupyter.git.checkouts import checkouts
from ocman_jupyter.git.command import ANY, Completed, Git, GitFailed, explain
from ocman_jupyter.git.links import link_stamp
from ocman_jupyter.git.made import Made
from ocman_jupyter.git.paths import shown
from ocman_jupyter.git.records import Added, Base, Plan, Progress, Warned
from ocman_jupyter.git.refs import HEADS
from ocman_jupyter.git.repository import Repository
from ocman_jupyter.store import Store

T = TypeVar("T")
_LOCK_TRIES = 5
_LOCK_PAUSE = 0.1
"""Seconds between tries to delete a branch that is locked."""
_NOT_BEGUN = re.compile(rb"^fatal: (a branch named )?'.*' (already exists|is already [a-z ]+ at '.*')$", re.MULTILINE)
"""git refused before it made anything at the place of the worktree."""
_IN_USE = re.compile(rb"^fatal: '.*' is already [a-z ]+ at '(?P<path>.*)'$", re.MULTILINE)
_PERCENT = re.compile(rb"Updating files:\s+(\d+)%")


class Raced(Exception):
    """Something of the name appeared between the look and the deed; ``error`` if it is not seen at the next look."""

    def __init__(self, error: OcmanError) -> None:
        super().__init__(str(error))
        self.error = error


def added_by(plan: Plan, reused: bool = False) -> Added:
    """What a plan that was carried out has done."""
    return Added(
        path=plan.worktree_path,
        branch=plan.branch,
        base=plan.base,
        reused=reused,
        branch_existed=plan.branch_existed,
        recreated=plan.recreate,
        warnings=plan.warnings,
    )


def carried_to(added: Added, carried: CarryPlan) -> Added:
    """``added`` with what was carried to it."""
    return replace(
        added,
        warnings=[*added.warnings, *carried.warnings],
        carried=carried.told,
        take_back_carried=partial(take_back, added.path, carried.made, carried.folders),
    )


def cannot_make(path: str, error: OSError) -> OcmanError:
    """The typed error for a folder that cannot be made."""
    details = {"path": shown(path), "reason": error.strerror}
    if isinstance(error, (NotADirectoryError, FileExistsError)):
        return PathConflict(f"{shown(path)} is in the way: a parent is not a folder.", details=details)
    if isinstance(error, PermissionError) or error.errno == errno.EROFS:
        return ForbiddenPath(
            f"The folder of the worktrees cannot be written: {shown(path)}: {error.strerror}.",
            hint="Make the folder writable, or make .worktrees there a link to a folder that is.",
            details=details,
        )
    return PathConflict(
        f"The worktree cannot be made at {shown(path)}: {error.strerror}.",
        hint="Free some space and try again."
        if error.errno == errno.ENOSPC
        else "See the reason, then try again.",
        details=details,
    )


@dataclass
class Making:
    """One attempt: what it made is what it undoes."""

    git: Git
    store: Store
    repository: Repository
    plan: Plan
    base: Awaitable[Base | None]
    """The plan's, with what is found out of it meanwhile."""
    carries: Callable[[Made], Awaitable[CarryPlan]]
    """Carries ignored files to the worktree of a row."""
    began: float = field(default_factory=time.time)
    row: Made = field(init=False)
    made_folders: list[str] = field(default_factory=list)
    empty_folder_mode: int | None = None
    """A folder that was there before, and stays."""
    stamp: tuple[object, ...] | None = None
    saved: bool = False
    begun: bool = False
    """Whatever is at the place now was made by our git."""
    before: Made | None = None
    """The row of the worktree that is made again."""
    warnings: list[Warned] = field(default_factory=list)

    async def run(self, progress: Progress | None) -> Added:
        try:
            return await self._make(progress)
        except (Exception, asyncio.CancelledError) as error:
            try:
                left = await _whole(self._undo())
            except asyncio.CancelledError:  # the caller gave up twice
                left = []
            except (OcmanError, OSError):
                left = [shown(self.plan.worktree_path)]
            told = error.error if isinstance(error, Raced) else error
            if left and isinstance(told, OcmanError):
                told.details["left"] = left
            raise

    def __post_init__(self) -> None:
        plan = self.plan
        self.row = Made(
            path=plan.worktree_path,
            identity=self.repository.common_dir,
            branch=plan.branch,
            branch_made=not plan.branch_existed,
            base_ref=plan.base.ref if plan.base else None,
            base_sha=plan.base.sha if plan.base else None,
            state="making",
            created=plan.began or self.began,
        )

    async def _make(self, progress: Progress | None) -> Added:
        plan, path = self.plan, self.plan.worktree_path
        await _whole(self.git.disk(self._folders))
        before = await made.at(self.store, path) if plan.recreate else None
        if before is not None and before.branch == plan.branch and plan.branch_existed:
            self.row = replace(self.row, branch_made=before.branch_made, created=before.created)
            self.before = before
        row = self.row
        self.saved = True
        await _whole(made.save(self.store, row))
        if progress:
            progress("Making the worktree", None)
        if not await self.git.disk(self._is_free):
            raise Raced(self._in_the_way())
        self.begun = True
        done = await self._git_add(self._makes_branch, progress)
        taken = done.code != 0 and b"fatal: a branch named" in done.err
        if taken and self._makes_branch and await self._made_branch():
            # git stumbled over a worktree that another one was making, after it had made the branch.
            done = await self._git_add(False, progress)
        await self._read_back(done)
        base = await self.base
        added = carried_to(added_by(plan), await self.carries(row))
        return replace(added, base=base, stamp=self.stamp, warnings=[*self.warnings, *added.warnings])

    async def _git_add(self, with_branch: bool, progress: Progress | None) -> Completed:
        plan = self.plan
        return await self.git.run(
            "worktree",
            "add",
            *(["--force"] if plan.recreate else []),
            # git makes the branch in the same process, and fails when it exists: so it is known whose it is.
            *(["--no-track", "-b", plan.branch] if with_branch else []),
            "--",
            plan.worktree_path,
            self.row.start if with_branch else plan.branch,
            cwd=self.repository.toplevel,
            write=True,
            ok=ANY,
            config={"checkout.workers": str(self.git.checkout_workers), "core.logAllRefUpdates": "true"},
            progress=_percent(progress) if progress else None,
            tidies=False,
        )

    def _is_free(self) -> bool:
        try:
            return not os.listdir(self.plan.worktree_path)
        except FileNotFoundError:
            return True
        except OSError:
            return False

    def _in_the_way(self) -> PathConflict:
        path = shown(self.plan.worktree_path)
        return PathConflict(f"Something else is at {path} since a moment ago.", details={"path": path})

    def _folders(self) -> None:
        path = self.plan.worktree_path
        missing = []
        parent = os.path.dirname(path)
        while not os.path.isdir(parent):
            missing.append(parent)
            parent = os.path.dirname(parent)
        try:
            for folder in reversed(missing):
                with contextlib.suppress(FileExistsError):
                    os.mkdir(folder)
                    self.made_folders.append(folder)
            info = os.lstat(path) if os.path.lexists(path) else None
        except OSError as error:
            raise cannot_make(path, error) from error
        if info is not None:
            self.empty_folder_mode = stat.S_IMODE(info.st_mode)

    @property
    def _makes_branch(self) -> bool:
        return not (self.plan.branch_existed or self.plan.resumes)

    async def _made_branch(self) -> bool:
        """Is the branch of this attempt, or of the one that it resumes, there and untouched?"""
        if self.plan.branch_existed:
            return False
        return await made.made_branch(self.git, self.row, self.repository.common_dir)

    def _look(self) -> half_made.Place:
        path = self.plan.worktree_path
        self.stamp = link_stamp(path)
        return half_made.look(self.repository, path, self.plan.branch)

    async def _read_back(self, done: Completed) -> None:
        """Exit codes are not outcomes: look at what is there."""
        path = self.plan.worktree_path
        if done.code != 0 and _NOT_BEGUN.search(done.err):
            self.begun = False
            in_use = _IN_USE.search(done.err)
            if in_use is None:
                raise Raced(self._in_the_way())
            holder = shown(os.fsdecode(in_use["path"]))
            branch = self.plan.branch
            raise Raced(
                BranchCheckedOut(
                    f"The branch {branch} is checked out in {holder}.", details={"branch": branch, "path": holder}
                )
            )
        place = await self.git.disk(self._look)
        if place.finished and done.code == 0:
            return
        if place.finished:
            gone = await self.git.run("ls-files", "--deleted", "-z", cwd=path, ok=ANY)
            if gone.code == 0 and not gone.out:
                said = done.complaint[-2000:]
                self.warnings.append(
                    Warned("hook_failed", f"The post-checkout hook failed (exit code {done.code}): {said}")
                )
                return
        error = explain(("worktree", "add"), done, self.repository.toplevel)
        if not isinstance(error, GitFailed):
            raise error
        full = b"No space left on device" in done.err
        if self._makes_branch and not full and not await self._made_branch():
            raise Raced(PathConflict(error.message, details={"branch": self.plan.branch}))
        raise PathConflict(
            f"git could not make the worktree at {shown(path)}: "
            + ("there is no space left on the disk." if full else error.message.partition(": ")[2]),
            hint="Free some space and try again." if full else "See git's output in the details.",
            details={"path": shown(path), "exit_code": done.code, "output": done.complaint[-4000:]},
        )

    async def _undo(self) -> list[str]:
        """Take back what this call made; returns what had to stay."""
        path = self.plan.worktree_path
        if not self.saved:
            await self.git.disk(self._remove_folders)
            return []
        made_branch = await self._made_branch()
        if self.begun:
            if self._makes_branch and not made_branch:  # another git was faster: what is there is its own
                kept = not await self.git.disk(self._is_free)
            else:
                kept = await half_made.take_back(
                    self.git, self.repository, path, self.plan.branch, self.row.created
                )
            if kept:
                return [shown(path)]
        if self.empty_folder_mode is not None:
            await self.git.disk(self._restore_folder)
        if made_branch and not await self._delete_branch():
            # Its row stays: the next call for this branch knows that it is ours.
            await self.git.disk(self._remove_folders)
            return [HEADS + self.plan.branch]
        await self.git.disk(self._remove_folders)
        if self.before is not None:
            await made.save(self.store, self.before)
        else:
            await made.forget(self.store, path)
        return []

    async def _delete_branch(self) -> bool:
        """``False``: it had to stay, because git's files were locked."""
        ref = HEADS + self.plan.branch
        places = await checkouts(self.git, self.repository, self.plan.branch)
        if any(self.plan.branch in one.in_use for one in places):
            return True  # somebody works on it already
        for attempt in range(_LOCK_TRIES + 1):
            done = await self.git.run(
                "update-ref", "-d", ref, self.row.base_sha or "", cwd=self.repository.common_dir, write=True, ok=ANY
            )
            if done.code == 0 or b".lock" not in done.err:
                return True
            if attempt + 1 < _LOCK_TRIES:
                await asyncio.sleep(_LOCK_PAUSE)
            else:
                await self.git.disk(self._unlock, os.path.join(self.repository.common_dir, ref + ".lock"))
        return False

    def _unlock(self, path: str) -> None:
        """A git that is ended may leave the lock of a ref behind; nobody else knows this branch yet."""
        with contextlib.suppress(OSError):
            if os.lstat(path).st_mtime >= self.began - 1:
                os.unlink(path)

    def _restore_folder(self) -> None:
        path = self.plan.worktree_path
        if not os.path.lexists(path) and self.empty_folder_mode is not None:
            os.mkdir(path)
            os.chmod(path, self.empty_folder_mode)

    def _remove_folders(self) -> None:
        for folder in reversed(self.made_folders):
            with contextlib.suppress(OSError):
                os.rmdir(folder)


async def _whole(step: Awaitable[T]) -> T:
    """A short step that is carried to its end when the caller gives up, so that it is known what it made."""
    task = asyncio.ensure_future(step)
    given_up: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            given_up = error
    result = task.result()
    if given_up is not None:
        raise given_up
    return result


def _percent(progress: Progress) -> Callable[[bytes], None]:
    def said(text: bytes) -> None:
        found = _PERCENT.findall(text)
        if found:
            progress("Checking out files", int(found[-1]) / 100)

    return said
