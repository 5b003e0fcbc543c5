"""Plans a worktree and has it made: one that is there is found, two callers of one name get the same."""

from __future__ import annotations

import asyncio
import errno
import os
import stat
from dataclasses import dataclass, replace

from ocman_jupyter.errors import (
    BranchCheckedOut,
    BranchExists,
    BranchNameConflict,
    NoBase,
    NoSuchBranch,
    OcmanError,
    PathConflict,
    WorktreeLocked,
)
from ocman_jupyter.git import half_made, made
from ocman_jupyter.git.carry import Carry, CarryPlan
from ocman_jupyter.git.checkouts import INITIALIZING, Checkout, checkouts, current_branch
from ocman_jupyter.git.command import Git
from ocman_jupyter.git.lock import only_one
from ocman_jupyter.git.made import Made
from ocman_jupyter.git.making import Making, Raced, added_by, cannot_make, carried_to
from ocman_jupyter.git.names import check_branch, conflict, distinct_slug, slug
from ocman_jupyter.git.paths import shown
from ocman_jupyter.git.records import Added, Base, Plan, Progress, Warned
from ocman_jupyter.git.refs import HEADS, BaseChoice, Refs, age, commits, glance, read_refs
from ocman_jupyter.git.removal import require_nothing_lost
from ocman_jupyter.git.repository import Repositories, Repository
from ocman_jupyter.git.together import together
from ocman_jupyter.settings import OcmanSettings
from ocman_jupyter.store import Store

_ATTEMPTS = 3


@dataclass(frozen=True)
class Seen:
    """What was read of a repository, to decide about one branch."""

    places: list[Checkout]
    refs: Refs
    rows: dict[str, Made]


class Adding:
    """Plan and add.  ``Worktrees`` is the face of it."""

    def __init__(self, git: Git, store: Store, settings: OcmanSettings, repositories: Repositories) -> None:
        self._git, self._store, self._settings = git, store, settings
        self._repositories = repositories
        self._carry = Carry(git)

    # --- plan: reads only -------------------------------------------------------------------

    async def plan(
        self,
        repository: Repository,
        branch: str,
        base: str | None = None,
        new_branch: bool | None = None,
        carry: bool = True,
    ) -> Plan:
        """What :meth:`add` would do.  Raises its typed errors; changes nothing."""
        await self._readable_name(branch)
        plan = await self._decide(repository, branch, base, new_branch, await self._see(repository, branch))
        await self._require_nothing_lost(repository, plan)
        if plan.reused or not carry:
            return plan
        carried = await self._carry.plan(repository)
        return replace(plan, carry=carried.told, warnings=[*plan.warnings, *carried.warnings])

    async def _see(self, repository: Repository, branch: str, quickly: bool = False) -> Seen:
        """``quickly``: what git itself will verify when the worktree is made is not verified before."""
        places, _, refs, rows = await together(
            checkouts(self._git, repository, branch),
            check_branch(self._git, branch, repository.common_dir),
            self._refs(repository, branch, quickly),
            made.of_repository(self._store, repository.common_dir),
        )
        return Seen(places, refs, rows)

    async def _refs(self, repository: Repository, branch: str, quickly: bool) -> Refs:
        refs = await self._git.disk(glance, repository.common_dir, branch) if quickly else None
        return refs or await read_refs(self._git, repository, branch)

    async def _decide(
        self, repository: Repository, branch: str, base: str | None, new_branch: bool | None, seen: Seen
    ) -> Plan:
        choice = BaseChoice(base)
        places, refs, rows = seen.places, seen.refs, seen.rows
        found = await choice.read(self._git, refs, repository.toplevel)
        if not found:
            await self._repositories.require_commits(repository)
        start = choice.choose(
            found, refs.remote_default, current_branch(repository, places, repository.toplevel)
        )

        unfinished = half_made.row_of(branch, rows)
        exists = branch in refs.branches
        resumes = (
            unfinished is not None
            and unfinished.branch_made
            and exists
            and await made.made_branch(self._git, unfinished, repository.common_dir)
        )
        if new_branch is True and exists and not resumes:
            raise BranchExists(f"The branch {branch} exists already.", details={"branch": branch})
        if new_branch is False and not exists:
            hint = f"It is on the remote: git branch {branch} origin/{branch}" if refs.remote_branch else None
            raise NoSuchBranch(f"There is no branch {branch}.", hint=hint, details={"branch": branch})

        holder = next((one for one in places if branch in one.in_use), None)
        if holder is not None and (exists or holder.state != "missing"):
            return self._at_holder(repository, branch, base, holder, rows)
        if exists and holder is None:
            _not_in_use_by_another_name(branch, refs, places)
        if not exists:
            await self._no_conflict(repository, branch, refs)
            if start is None:
                raise NoBase(
                    "There is no base for the new branch: no origin/HEAD, main, master or current branch.",
                    details={"repo_root": repository.root},
                )
        if holder is not None:  # missing, and its branch was deleted as well
            plan = self._at_holder(repository, branch, None, holder, rows)
            return replace(plan, base=start, branch_existed=False)
        path = await self._git.disk(_free_place, repository, branch, places)
        if resumes and unfinished is not None and unfinished.base is not None:
            start = unfinished.base
        existed = exists and not resumes
        return Plan(
            worktree_path=path,
            branch=branch,
            base=None if existed else start,
            reused=False,
            branch_existed=existed,
            began=unfinished.created if unfinished is not None and resumes else None,
            warnings=_warnings(branch, base, existed, refs),
        )

    async def _readable_name(self, branch: str) -> None:
        """What cannot be handed to a process at all is refused before the reads start."""
        if not branch or "\0" in branch or not branch.isprintable() or len(branch) > 700 or branch[0] == "-":
            await check_branch(self._git, branch, "/")

    def _at_holder(
        self, repository: Repository, branch: str, base: str | None, holder: Checkout, rows: dict[str, Made]
    ) -> Plan:
        path = holder.path
        details = {"branch": branch, "path": shown(path)}
        if holder.is_main:
            raise BranchCheckedOut(
                f"The branch {branch} is checked out in the main checkout {shown(path)}.", details=details
            )
        row = rows.get(path)
        plan = Plan(
            worktree_path=path,
            branch=branch,
            base=row.base if row else None,
            reused=True,
            branch_existed=True,
            warnings=[Warned("base_ignored", f"The branch {branch} exists; it was not started from {base}.")]
            if base is not None
            else [],
        )
        if holder.lock_reason == INITIALIZING:
            raise WorktreeLocked(
                f"Another git is still making the worktree {shown(path)} of {branch}.",
                hint=f"Try again when it is done. If it died: git -C '{repository.root}' worktree unlock '{path}'",
                details={**details, "lock_reason": holder.lock_reason},
            )
        if holder.state == "ok":
            if holder.operation:
                plan.warnings.append(
                    Warned("operation", f"A {holder.operation} is under way in this worktree.")
                )
            return plan
        if holder.state == "missing":
            if holder.locked:
                raise WorktreeLocked(
                    f"The worktree {shown(path)} of {branch} is missing, and locked"
                    + (f" ({holder.lock_reason})." if holder.lock_reason else "."),
                    hint=f"If it is really gone: git -C '{repository.root}' worktree unlock '{shown(path)}'",
                    details={**details, "lock_reason": holder.lock_reason},
                )
            warned = Warned("recreated", f"The worktree {shown(path)} was missing; it is made again.")
            return replace(plan, reused=False, recreate=True, warnings=[*plan.warnings, warned])
        raise PathConflict(
            f"The worktree {shown(path)} of {branch} has lost its link to the repository.",
            hint=f"Run: git -C '{repository.root}' worktree repair '{shown(path)}'",
            details={**details, "state": holder.state},
        )

    async def _require_nothing_lost(self, repository: Repository, plan: Plan) -> None:
        if plan.recreate:
            await require_nothing_lost(self._git, self._store, repository, plan.worktree_path)

    async def _no_conflict(self, repository: Repository, branch: str, refs: Refs) -> None:
        broken = os.path.join(repository.common_dir, HEADS + branch)
        if await self._git.disk(_is_file, broken):
            raise BranchNameConflict(
                f"The branch {branch} is broken: {shown(broken)} names no commit.",
                hint="Restore it, or delete that file, or choose another name.",
                details={"branch": branch, "existing": branch},
            )
        other = conflict(branch, refs.branches, ignore_case=False)
        if other is None and conflict(branch, refs.branches, ignore_case=True):
            done = await self._git.run(
                "config", "--type=bool", "--get", "core.ignorecase", cwd=repository.common_dir, ok=(0, 1)
            )
            other = conflict(branch, refs.branches, ignore_case=done.out.strip() == b"true")
        if other is not None:
            raise BranchNameConflict(
                f"The branch {branch} cannot exist beside the branch {other}.",
                details={"branch": branch, "existing": other},
            )

    # --- add ----------------------------------------------------------------------------------

    async def add(
        self,
        repository: Repository,
        branch: str,
        base: str | None = None,
        new_branch: bool | None = None,
        progress: Progress | None = None,
        carry: bool = True,
    ) -> Added:
        """Make the worktree of ``branch``, or find the one that is there.

        Raises the typed errors of :meth:`plan` (``WouldLoseWork``: it is missing, and making it again would lose
        what git still holds of it); ``ForbiddenPath`` when the folder cannot be written,
        ``PathConflict`` with git's text when git could not make it.  Then, and when it is cancelled,
        nothing of this call is left.
        """

        def waiting() -> None:
            if progress:
                progress("Waiting for another call that makes this worktree", None)

        await self._readable_name(branch)
        async with only_one(self._settings, repository.common_dir, slug(branch), waiting):
            completed = None
            for attempt in range(_ATTEMPTS):
                seen = await self._see(repository, branch, quickly=attempt == 0)
                unfinished = half_made.row_of(branch, seen.rows)
                if attempt == 0 and unfinished is not None:
                    completed = await half_made.complete(
                        self._git, self._store, repository, unfinished, progress
                    )
                    seen = await self._see(repository, branch)
                plan = await self._decide(
                    repository, branch, base, None if completed and new_branch else new_branch, seen
                )
                if plan.reused:
                    row = seen.rows.get(plan.worktree_path)
                    interrupted = row is not None and row.state == "carrying"
                    found = added_by(plan, reused=True)
                    if completed is not None:
                        warned = [w for w in plan.warnings if w.code != "base_ignored"]
                        found = replace(
                            found, reused=False, branch_existed=not completed.branch_made, warnings=warned
                        )
                    if row is None or not interrupted:
                        return found
                    return carried_to(found, await self._carried(repository, row, carry, progress, resumes=True))
                await self._require_nothing_lost(repository, plan)
                base_told = asyncio.ensure_future(self._dated(repository, plan.base))
                try:
                    return await Making(
                        self._git, self._store, repository, plan, base_told,
                        lambda row: self._carried(repository, row, carry, progress),
                    ).run(progress)  # fmt: skip
                except Raced as raced:
                    if attempt == _ATTEMPTS - 1:
                        raise raced.error from None
                finally:
                    base_told.cancel()
            raise AssertionError("unreachable")

    async def _carried(
        self, repository: Repository, row: Made, carry: bool, progress: Progress | None, resumes: bool = False
    ) -> CarryPlan:
        """Carry ignored files to the worktree of ``row``, which is finished then."""
        plan = await self._carry.plan(repository) if carry else CarryPlan(repository.root)
        if plan:
            # Killed meanwhile, the next call goes on.
            await made.save(self._store, replace(row, state="carrying"))
            plan = await self._carry.carry(plan, row.path, progress, resumes)
        await made.save(self._store, replace(row, state="made"))
        return plan

    async def _dated(self, repository: Repository, base: Base | None) -> Base | None:
        """``base`` with the age of its commit, where that is not known yet."""
        if base is None or base.age_seconds is not None:
            return base
        try:
            found = await commits(self._git, [base.sha], repository.common_dir)
        except OcmanError:
            return base
        return base.model_copy(update={"age_seconds": age(found.get(base.sha))})


def _not_in_use_by_another_name(branch: str, refs: Refs, places: list[Checkout]) -> None:
    target = refs.other_names.get(branch)
    holder = next((one for one in places if target is not None and target in one.in_use), None)
    if holder is not None:
        raise BranchCheckedOut(
            f"The branch {branch} is another name of {target}, which is checked out in {shown(holder.path)}.",
            details={"branch": branch, "path": shown(holder.path)},
        )


def _warnings(branch: str, base: str | None, exists: bool, refs: Refs) -> list[Warned]:
    if exists:
        return (
            [Warned("base_ignored", f"The branch {branch} exists; it is not started from {base}.")]
            if base
            else []
        )
    if refs.remote_branch and base is None:
        return [
            Warned(
                "branch_on_remote",
                f'origin has a branch {branch}; give base="origin/{branch}" to continue it.',
            )
        ]
    return []


def _free_place(repository: Repository, branch: str, places: list[Checkout]) -> str:
    """The folder for a branch that is checked out nowhere.  Raises ``PathConflict``, ``ForbiddenPath``."""
    taken = {one.path for one in places if one.state != "not_a_worktree" or one.admin}
    names = [slug(branch)]
    if os.path.join(repository.worktrees_root, names[0]) in taken:
        names = [distinct_slug(branch)]
    path = os.path.join(repository.worktrees_root, names[0])
    parent = os.path.dirname(path)
    while not os.path.lexists(parent):
        parent = os.path.dirname(parent)
    if not os.path.isdir(parent):
        raise PathConflict(
            f"{shown(parent)} is in the way: it is not a folder.", details={"path": shown(parent)}
        )
    try:
        info = os.lstat(path)
    except FileNotFoundError:
        info = None
    except OSError as error:
        raise cannot_make(path, error) from error
    if info is not None and not (stat.S_ISDIR(info.st_mode) and _is_empty(path)) or path in taken:
        raise PathConflict(
            f"Something else is at {shown(path)}, where the worktree of {branch} belongs.",
            details={"path": shown(path), "branch": branch},
        )
    if not os.access(parent, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
        raise cannot_make(parent, PermissionError(errno.EACCES, os.strerror(errno.EACCES)))
    return path


def _is_empty(path: str) -> bool:
    try:
        with os.scandir(path) as entries:
            return next(entries, None) is None
    except OSError:
        return False


def _is_file(path: str) -> bool:
    return os.path.lexists(path) and not os.path.isdir(path)
