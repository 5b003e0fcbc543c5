"""Removes a worktree: fails closed with the reasons, each to be accepted by name or rescued first."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection

from ocman_jupyter.errors import MainWorktree, NoSuchWorktree, PathConflict, WouldLoseWork
from ocman_jupyter.git import made
from ocman_jupyter.git.adding import together
from ocman_jupyter.git.checkouts import Checkout, checkouts
from ocman_jupyter.git.command import Git, GitFailed, explain
from ocman_jupyter.git.lock import only_one
from ocman_jupyter.git.losses import Loss, losses
from ocman_jupyter.git.made import Made
from ocman_jupyter.git.names import slug
from ocman_jupyter.git.paths import is_within, shown
from ocman_jupyter.git.records import Reason, Rescued, Worktree
from ocman_jupyter.git.refs import HEADS
from ocman_jupyter.git.repository import Repository
from ocman_jupyter.git.rescue import copy_out, target, write_out
from ocman_jupyter.git.status import read_status
from ocman_jupyter.git.worktrees import record
from ocman_jupyter.settings import OcmanSettings
from ocman_jupyter.store import Store

_ANY = range(-255, 256)


async def reasons(
    git: Git, store: Store, repository: Repository, worktree: Worktree, delete_branch: bool = False
) -> list[Reason]:
    """Why removing ``worktree`` could lose something; empty when it is safe.

    Raises ``MainWorktree``, ``NoSuchWorktree``.
    """
    removal = await _Removal.of(git, store, repository, worktree.path, delete_branch)
    return [loss.reason() for loss in await removal.losses()]


async def remove(
    git: Git,
    store: Store,
    settings: OcmanSettings,
    repository: Repository,
    worktree: Worktree,
    *,
    accept: Collection[str] = (),
    delete_branch: bool = False,
    rescue_to: str | None = None,
    rescue: Collection[str] = ("ignored",),
) -> tuple[bool, list[Rescued]]:
    """Remove ``worktree``; returns whether its branch was deleted, and what was rescued.

    Parameters
    ----------
    accept:
        Codes of reasons that may be lost.
    delete_branch:
        Delete the branch as well: only when we made it and it is checked out nowhere else.
    rescue_to, rescue:
        Copy the files of these reasons to this folder first; they count as accepted then.

    Raises
    ------
    MainWorktree, NoSuchWorktree
    WouldLoseWork
        Reasons that were not accepted are in ``details["reasons"]``; nothing was removed.
    PathConflict
        Rescuing or removing did not work; what git said is in the details.
    """
    name = slug(worktree.branch) if worktree.branch else worktree.name
    async with only_one(settings, repository.common_dir, name):
        removal = await _Removal.of(git, store, repository, worktree.path, delete_branch)
        found = await removal.losses()
        accepted = set(accept)
        rescued: list[Rescued] = []
        if rescue_to is not None:
            chosen = [loss for loss in found if loss.code in rescue]
            _refuse([loss for loss in found if loss not in chosen and loss.code not in accepted], [])
            rescued = await removal.rescue(chosen, rescue_to)
            found, before = await removal.losses(), {loss.code: loss for loss in chosen}
            accepted |= {
                loss.code for loss in found if loss.code in before and loss.items == before[loss.code].items
            }
        _refuse([loss for loss in found if loss.code not in accepted], rescued)
        await removal.delete(found, accepted)
        return await removal.delete_branch(), rescued


def _refuse(left: list[Loss], rescued: list[Rescued]) -> None:
    if left:
        listed = []
        for reason in (loss.reason() for loss in left):
            items = [item._asdict() for item in reason.items]
            listed.append({**reason._asdict(), "items": items})
        details: dict[str, object] = {"reasons": listed}
        if rescued:
            details["rescued"] = [one._asdict() for one in rescued]
        raise WouldLoseWork(" ".join(loss.message for loss in left), details=details)


class _Removal:
    """One worktree as it is now, on its way out."""

    def __init__(
        self,
        git: Git,
        store: Store,
        repository: Repository,
        places: list[Checkout],
        one: Checkout,
        row: Made | None,
        delete_branch: bool,
    ) -> None:
        self._git, self._store, self._repository = git, store, repository
        self._one, self._row = one, row
        self._worktree = record(one, row)
        elsewhere = any(one.branch in other.in_use for other in places if other is not one)
        ours = row is not None and row.branch_made and row.branch == one.branch
        self._takes_branch = delete_branch and ours and not elsewhere

    @classmethod
    async def of(
        cls, git: Git, store: Store, repository: Repository, path: str, delete_branch: bool
    ) -> _Removal:
        places, row = await together(checkouts(git, repository), made.at(store, path))
        one = next((one for one in places if one.path == path), None)
        if one is None:
            raise NoSuchWorktree(f"There is no worktree at {shown(path)}.", details={"path": shown(path)})
        if one.is_main:
            raise MainWorktree(details={"path": shown(path)})
        return cls(git, store, repository, places, one, row, delete_branch)

    async def losses(self) -> list[Loss]:
        return await losses(self._git, self._repository, self._worktree, self._row, self._takes_branch)

    async def rescue(self, chosen: list[Loss], rescue_to: str) -> list[Rescued]:
        top = self._one.path
        to = await self._git.disk(target, rescue_to, top)
        names = [item.path for loss in chosen for item in loss.items]
        rescued = await self._git.disk(copy_out, top, names, to)
        if any(loss.code == "uncommitted" for loss in chosen):
            entries = await read_status(self._git, top, untracked="no")
            if any(entry.kind in "12" and entry.xy[0] != "." for entry in entries):
                staged = await self._git.run(
                    "diff", "--cached", "--binary", "--no-ext-diff", "--no-textconv", "--no-color", cwd=top
                )
                name = f"{os.path.basename(top)}.staged.patch"
                goal = await self._git.disk(write_out, staged.out, os.path.join(to, name))
                rescued.append(Rescued(name, shown(goal), len(staged.out)))
        return rescued

    async def delete(self, found: list[Loss], accepted: set[str]) -> None:
        one = self._one
        codes = {loss.code for loss in found}
        said = None
        if one.state in ("moved", "not_a_worktree"):
            await self._git.disk(self._delete_folder)
        if one.state == "ok" or one.admin is not None:
            force = ["--force"] if codes & {"uncommitted", "untracked", "unverified"} else []
            if "locked" in codes:  # git wants it twice
                force = ["--force", "--force"]
            said = await self._git.run(
                "worktree",
                "remove",
                *force,
                "--",
                one.path,
                cwd=self._repository.common_dir,
                write=True,
                ok=_ANY,
            )
        if await self._git.disk(os.path.lexists, one.path) or (said and said.code and one.state == "ok"):
            _refuse([loss for loss in await self.losses() if loss.code not in accepted], [])
            error = explain(("worktree", "remove"), said, one.path) if said else None
            if error is not None and not isinstance(error, GitFailed):
                raise error
            raise PathConflict(
                f"{shown(one.path)} could not be removed wholly.",
                hint="See git's output in the details.",
                details={"path": shown(one.path), "output": said.complaint if said else ""},
            )
        await made.forget(self._store, one.path)

    def _delete_folder(self) -> None:
        """A folder that git does not know, or not any more: of ours only."""
        path = self._one.path
        if self._one.admin is None and not is_within(path, self._repository.worktrees_root):
            raise PathConflict(f"{shown(path)} is not ours to remove.", details={"path": shown(path)})
        try:
            shutil.rmtree(path)
        except OSError as error:
            raise PathConflict(
                f"{shown(path)} could not be removed wholly: {error.strerror or error}.",
                details={"path": shown(path)},
            ) from error

    async def delete_branch(self) -> bool:
        """Only at the very commit that the reasons were checked for."""
        branch, head = self._one.branch, self._one.head
        if not self._takes_branch or branch is None or head is None:
            return False
        done = await self._git.run(
            "update-ref", "-d", HEADS + branch, head, cwd=self._repository.common_dir, write=True, ok=_ANY
        )
        if done.code != 0:
            return False
        await self._git.run(
            "config",
            "--local",
            "--remove-section",
            f"branch.{branch}",
            cwd=self._repository.common_dir,
            write=True,
            ok=_ANY,
        )
        return True
