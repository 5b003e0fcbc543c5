"""Removes a worktree: fails closed with the reasons, each to be accepted by name or rescued first."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Collection

from ocman_jupyter.errors import MainWorktree, NoSuchWorktree, OcmanError, PathConflict, StateUnusable, WouldLoseWork
from ocman_jupyter.git import made
from ocman_jupyter.git.checkouts import Checkout, checkouts, record
from ocman_jupyter.git.command import ANY, Completed, Git, GitFailed, explain
from ocman_jupyter.git.lock import only_one
from ocman_jupyter.git.losses import Loss, joined, losses
from ocman_jupyter.git.made import Made
from ocman_jupyter.git.names import slug
from ocman_jupyter.git.paths import is_within, shown, size_of
from ocman_jupyter.git.records import Item, Reason, Rescued, Worktree
from ocman_jupyter.git.refs import HEADS
from ocman_jupyter.git.repository import Repository
from ocman_jupyter.git.rescue import Copies, target, write_out
from ocman_jupyter.git.together import together
from ocman_jupyter.settings import OcmanSettings
from ocman_jupyter.store import Store


async def reasons(
    git: Git, store: Store, repository: Repository, worktree: Worktree, delete_branch: bool = False
) -> list[Reason]:
    """Why removing ``worktree`` could lose something; empty when it is safe.

    Raises ``MainWorktree``, ``NoSuchWorktree``.
    """
    removal = await _Removal.of(git, store, repository, worktree.path, delete_branch)
    return [loss.reason() for loss in await removal.losses()]


async def require_nothing_lost(git: Git, store: Store, repository: Repository, path: str) -> None:
    """To be asked before the missing worktree at ``path`` is made again: git throws away what it remembers of it.

    Raises ``WouldLoseWork``.
    """
    with contextlib.suppress(NoSuchWorktree):  # forgotten meanwhile
        removal = await _Removal.of(git, store, repository, path, False)
        found = await removal.losses() if removal.is_missing else []
        if not found:
            return
        error = _refusal(found, f"Making {shown(path)} again would lose work.")
        error.hint = "Remove it with these reasons accepted, or rescued, then make it again."
        commits = next((loss.items for loss in found if loss.code == "unreachable_commits"), None)
        if commits:
            sha = commits[0].path.partition(" ")[0]
            keep = f"Keep its commits (the newest is {sha}): git -C '{shown(repository.root)}' branch NAME SHA."
            error.hint = f"{keep} {error.hint}"
        raise error


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
        copied: set[str] = set()
        if rescue_to is not None:
            chosen = [loss for loss in found if loss.code in rescue]
            _refuse([loss for loss in found if loss not in chosen and loss.code not in accepted], [])
            rescued = await removal.rescue(chosen, rescue_to)
            copied = {loss.code for loss in chosen} - accepted
            accepted |= copied
        _refuse([loss for loss in found if loss.code not in accepted], rescued)
        try:
            await removal.delete(found, accepted, copied)
        except (WouldLoseWork, PathConflict, StateUnusable) as error:
            if rescued:
                error.details["rescued"] = [one._asdict() for one in rescued]
            raise
        return await removal.delete_branch(), rescued


def _refuse(left: list[Loss], rescued: list[Rescued]) -> None:
    if left:
        error = _refusal(left)
        if rescued:
            error.details["rescued"] = [one._asdict() for one in rescued]
        raise error


def _refusal(left: list[Loss], *before: str) -> OcmanError:
    listed = []
    for reason in (loss.reason() for loss in left):
        items = [item._asdict() for item in reason.items]
        listed.append({**reason._asdict(), "items": items})
    return WouldLoseWork(" ".join([*before, *(loss.message for loss in left)]), details={"reasons": listed})


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
        self._worktree = record(one, row).model_copy(update={"path": one.path})
        elsewhere = any(one.branch in other.in_use for other in places if other is not one)
        ours = row is not None and row.branch_made and row.branch == one.branch
        self._takes_branch = delete_branch and ours and not elsewhere
        self._closed = (one.path, repository.common_dir)
        self._copies = Copies(*self._closed)
        self._staged_then = b""

    @classmethod
    async def of(cls, git: Git, store: Store, repository: Repository, path: str, delete_branch: bool) -> _Removal:
        try:
            path.encode()
        except UnicodeEncodeError:
            raise NoSuchWorktree(details={"path": ascii(path)}) from None
        places, row = await together(checkouts(git, repository), made.at(store, path))
        one = next((one for one in places if one.path == path), None)
        if one is None:
            raise NoSuchWorktree(f"There is no worktree at {shown(path)}.", details={"path": shown(path)})
        if one.is_main:
            raise MainWorktree(details={"path": shown(path)})
        return cls(git, store, repository, places, one, row, delete_branch)

    @property
    def is_missing(self) -> bool:
        return self._one.state == "missing"

    async def losses(self, path: str | None = None) -> list[Loss]:
        """Of its folder, which may be at ``path`` for the moment."""
        worktree = self._worktree.model_copy(update={"path": path}) if path else self._worktree
        return await losses(self._git, self._repository, worktree, self._row, self._takes_branch, self._one.admin)

    async def rescue(self, chosen: list[Loss], rescue_to: str) -> list[Rescued]:
        top, copies = self._one.path, self._copies
        to = await self._git.disk(target, rescue_to, *self._closed)
        names = [item.path for loss in chosen for item in loss.items]
        await self._git.disk(copies.copy_out, top, names, to)
        if any(loss.code == "uncommitted" for loss in chosen):
            self._staged_then = staged = await self._staged(top)
            if staged:
                name = f"{os.path.basename(top)}.staged.patch"
                goal = await self._git.disk(write_out, staged, os.path.join(to, name))
                copies.rescued.append(Rescued(name, shown(goal), len(staged)))
        return copies.rescued

    async def _staged(self, top: str) -> bytes:
        """What is in the index of the worktree, which is at ``top`` now, and not in its commit, as a patch."""
        plain = ("--no-ext-diff", "--no-textconv", "--no-color", "--diff-filter=u")
        admin = self._one.admin if self.is_missing else None
        where = [f"--git-dir={admin}"] if admin else []
        return (await self._git.run(*where, "diff", "--cached", "--binary", *plain, cwd=admin or top)).out

    async def _later(self, found: list[Loss], accepted: set[str], copied: set[str], top: str) -> list[Loss]:
        """What may not be lost of what is there now, at ``top``: it came after the look, or after the copy."""
        now = await self.losses(top)
        later = _came_later(found, now, accepted)
        known = {(loss.code, item.path) for loss in found for item in loss.items}
        for loss in now:
            if loss.code not in copied:
                continue
            names = [item.path for item in loss.items if (loss.code, item.path) in known]
            try:
                items = await self._git.disk(self._not_copied, top, names)
            except OSError as error:
                later.append(Loss("unverified", f"Could not compare what was copied: {error}"))
                continue
            if items:
                more = f" and {len(items) - 1} more are" if len(items) > 1 else " is"
                later.append(Loss(loss.code, f"{shown(items[0].path)}{more} not what was copied.", items))
            if loss.code == "uncommitted" and await self._staged(top) != self._staged_then:
                later.append(Loss(loss.code, "Something was staged after the staged changes were copied."))
        return joined(later)

    def _not_copied(self, top: str, names: list[str]) -> list[Item]:
        changed = self._copies.changed(top, names)
        return [Item(name, size_of(os.path.join(top, name))) for name in changed]

    async def delete(self, found: list[Loss], accepted: set[str], copied: set[str]) -> None:
        """Delete what was ``found``; what came later is kept.

        The folder is put aside first, so that nobody meets it by its name any more, then compared once
        more, and only the files that were there before that look are deleted.  Cut short at any point, all
        that was not to be lost is still on the disk.

        ``copied``: codes that are accepted only because their files were copied as they were found.
        """
        one = self._one
        if self.is_missing:
            await self._finish(await self._unregister([]), accepted)
            return
        if one.admin is None and not is_within(one.path, self._repository.worktrees_root):
            raise PathConflict(f"{shown(one.path)} is not ours to remove.", details={"path": shown(one.path)})
        aside = os.path.join(os.path.dirname(one.path), f".removing-{secrets.token_hex(8)}")
        try:
            os.rename(one.path, aside)
        except FileNotFoundError:
            raise NoSuchWorktree(
                f"There is no worktree at {shown(one.path)}.", details={"path": shown(one.path)}
            ) from None
        except OSError:  # another file system is mounted there, or its parent is not ours to write
            _refuse(await self._later(found, accepted, copied, one.path), [])
            await self._delete_in_place({loss.code for loss in found}, accepted)
            return
        try:
            known = await self._git.disk(_inventory, aside)
            _refuse(await self._later(found, accepted, copied, aside), [])
            force = ["--force", "--force"] if any(loss.code == "locked" for loss in found) else []
            said = await self._unregister(force)
        except OSError as error:
            self._move_back(aside)
            raise PathConflict(
                f"{shown(one.path)} could not be looked at: {error.strerror or error}.",
                details={"path": shown(one.path)},
            ) from error
        except BaseException:
            self._move_back(aside)
            raise
        if said is not None and said.code != 0 and one.state == "ok":
            self._move_back(aside)
        else:
            left, error = await self._git.disk(_delete_known, aside, known)
            if left or error:
                self._move_back(aside)
                _refuse(left, [])
                raise PathConflict(
                    f"{shown(one.path)} could not be removed wholly: {error}.", details={"path": shown(one.path)}
                )
        await self._finish(said, accepted)

    async def _unregister(self, force: list[str]) -> Completed | None:
        one = self._one
        if one.state != "ok" and one.admin is None:
            return None
        if self.is_missing and one.locked:
            force = ["--force", "--force"]  # git wants it twice
        return await self._git.run(
            "worktree",
            "remove",
            *force,
            "--",
            one.path,
            cwd=self._repository.common_dir,
            write=True,
            ok=ANY,
        )

    async def _delete_in_place(self, codes: set[str], accepted: set[str]) -> None:
        if self._one.state in ("moved", "not_a_worktree"):
            await self._git.disk(self._delete_folder)
        force = ["--force"] if codes & {"uncommitted", "untracked", "unverified"} else []
        await self._finish(await self._unregister(["--force", "--force"] if "locked" in codes else force), accepted)

    def _move_back(self, aside: str) -> None:
        try:
            os.rename(aside, self._one.path)
        except OSError as error:
            raise PathConflict(
                f"{shown(self._one.path)} could not be removed; its files are in {shown(aside)} now.",
                hint="Move them back, then run `git worktree repair` there.",
                details={"path": shown(self._one.path), "moved_to": shown(aside)},
            ) from error

    async def _finish(self, said: Completed | None, accepted: set[str]) -> None:
        """Raise unless it is gone, then forget it."""
        one = self._one
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
        """A folder that git does not know, or not any more."""
        path = self._one.path
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
            "update-ref", "-d", HEADS + branch, head, cwd=self._repository.common_dir, write=True, ok=ANY
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
            ok=ANY,
        )
        return True


def _came_later(before: list[Loss], now: list[Loss], accepted: set[str]) -> list[Loss]:
    """What may not be lost of what there is ``now``: of another kind, or not there ``before``."""
    known = {loss.code: {item.path for item in loss.items} for loss in before}
    later = []
    for loss in now:
        if loss.code not in accepted or loss.code not in known:
            later.append(loss)
            continue
        items = [item for item in loss.items if item.path not in known[loss.code]]  # which may have grown
        if items:
            later.append(Loss(loss.code, loss.message, items))
    return later


def _inventory(top: str) -> tuple[list[str], list[str]]:
    """All files, and all folders with the deepest last; links are not followed."""
    files, folders = [], [top]
    for folder in folders:  # grows meanwhile
        with os.scandir(folder) as entries:
            for entry in entries:
                (folders if entry.is_dir(follow_symlinks=False) else files).append(entry.path)
    return files, folders


def _delete_known(top: str, known: tuple[list[str], list[str]]) -> tuple[list[Loss], str | None]:
    """Delete these files and folders; returns what is there besides, and why something could not go."""
    files, folders = known
    why = None
    for delete, paths in ((os.unlink, files), (os.rmdir, reversed(folders))):
        for path in paths:
            try:
                delete(path)
            except FileNotFoundError:
                pass
            except OSError as error:
                why = why or error.strerror or str(error)
    if why is None:
        return [], None
    expected = {*files, *folders}
    try:
        there = [path for paths in _inventory(top) for path in paths]
        items = [Item(os.path.relpath(path, top), size_of(path)) for path in there if path not in expected]
    except OSError:
        return [], why
    if not items:
        return [], why
    return [Loss("untracked", "Files appeared while the worktree was being removed; they were kept.", items)], why
