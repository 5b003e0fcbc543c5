"""The worktrees of a repository: list, find, plan, add and verify; the face of the git domain."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable

from ocman_jupyter.errors import DirectoryMissing, NoSuchDirectory, NoSuchWorktree, NotARepository, OcmanError
from ocman_jupyter.git import made
from ocman_jupyter.git.adding import Adding
from ocman_jupyter.git.checkouts import checkouts, current_branch, record
from ocman_jupyter.git.command import Git, GitFailed
from ocman_jupyter.git.history import History, Pair, Standing
from ocman_jupyter.git.links import link_of, link_stamp
from ocman_jupyter.git.made import Made
from ocman_jupyter.git.paths import shown
from ocman_jupyter.git.records import Added, Base, Changes, Plan, Progress, Worktree
from ocman_jupyter.git.refs import BaseChoice, commits, full_names, read_refs
from ocman_jupyter.git.repository import Repositories, Repository
from ocman_jupyter.git.status import Statuses
from ocman_jupyter.git.together import together
from ocman_jupyter.settings import OcmanSettings
from ocman_jupyter.store import Store


class Worktrees:
    """Worktrees of any repository of this machine."""

    def __init__(
        self, git: Git, store: Store, settings: OcmanSettings, repositories: Repositories | None = None
    ) -> None:
        self._git, self._store = git, store
        self.repositories = repositories or Repositories(git)
        self._adding = Adding(git, store, settings, self.repositories)
        self._statuses = Statuses(git)
        self._history = History(git)
        self._verified: dict[str, tuple[object, ...]] = {}

    def close(self) -> None:
        """Stop watching the worktrees."""
        self._statuses.close()

    # --- read -----------------------------------------------------------------------------------

    async def list(self, repository: Repository, changes: bool = True) -> tuple[Base | None, list[Worktree]]:
        """The default base and all worktrees, the main checkout first.

        With ``changes=False`` two git processes (a third without a default branch), whatever the number
        of worktrees; ``changes``, ``ahead``, ``behind`` are ``None`` and ``merged`` is "unknown" then.
        """
        choice = BaseChoice(None)
        places, refs, rows = await together(
            checkouts(self._git, repository),
            read_refs(self._git, repository),
            made.of_repository(self._store, repository.common_dir),
        )
        found = await choice.read(self._git, refs, repository.root)
        current = current_branch(repository, places, repository.root)
        base = choice.choose(found, refs.remote_default, current)
        listed = [record(one, rows.get(one.path)) for one in places]
        if changes:
            listed = await self.details(repository, base, listed)
        return base, listed

    async def details(
        self,
        repository: Repository,
        default_base: Base | None,
        worktrees: Iterable[Worktree],
        on_ready: Callable[[Worktree], None] | None = None,
    ) -> list[Worktree]:
        """Fill in the slow parts; ``on_ready`` gets each worktree as soon as its own are there.

        What cannot be read of one worktree stays ``None`` (``merged``: "unknown") and keeps no other waiting.
        """
        listed = list(worktrees)
        standings = asyncio.ensure_future(self._standings(repository, default_base, listed))

        async def complete(one: Worktree) -> Worktree:
            changes = await self._changes(repository, one)
            ahead_behind = await standings
            update: dict[str, object] = {"changes": changes}
            standing = ahead_behind.get(one.path)
            if standing is not None and one.head is not None:
                update["ahead"], update["behind"] = standing.ahead, standing.behind
                if not one.is_main:
                    update["merged"] = standing.merged(one.head, one.base.sha if one.base else None)
            full = one.model_copy(update=update)
            if on_ready:
                on_ready(full)
            return full

        try:
            return await together(*(complete(one) for one in listed))
        finally:
            standings.cancel()

    async def _changes(self, repository: Repository, one: Worktree) -> Changes | None:
        if one.state != "ok":
            return None
        admin = repository.common_dir if one.is_main else await self._git.disk(link_of, one.path)
        if admin is None:
            return None
        try:
            return await self._statuses.changes(one.path, admin, repository.common_dir, one.head)
        except OcmanError:
            return None

    async def _standings(
        self, repository: Repository, default_base: Base | None, worktrees: list[Worktree]
    ) -> dict[str, Standing]:
        """By path: each head against where its base is now, else where it was."""
        refs = {one.base.ref for one in worktrees if one.base}
        full = {ref: full_names(ref) for ref in refs}
        try:
            found = (
                await commits(self._git, [name for names in full.values() for name in names], repository.root)
                if refs
                else {}
            )
            pairs: dict[str, Pair] = {}
            for one in worktrees:
                base = default_base.sha if default_base else None
                if one.base is not None:
                    now = next((found[name] for name in full[one.base.ref] if name in found), None)
                    base = now.sha if now else one.base.sha
                if one.head and base:
                    pairs[one.path] = (one.head, base)
            known = await self._history.compare(pairs.values(), repository.common_dir)
        except OcmanError:
            return {}
        return {path: known[pair] for path, pair in pairs.items() if pair in known}

    async def find(self, path: str) -> tuple[Repository, Worktree]:
        """The worktree (or main checkout) whose top is ``path``, also one that is missing.

        Raises ``NoSuchWorktree``.
        """
        try:
            missing = NoSuchWorktree(f"There is no worktree at {shown(path)}.", details={"path": shown(path)})
            path.encode()
            real = await self._git.disk(os.path.realpath, path)
            real.encode()
        except ValueError:  # a NUL byte, or not UTF-8
            raise NoSuchWorktree(details={"path": ascii(path)}) from None
        except OSError as error:
            raise missing from error
        if not os.path.isabs(path):
            raise missing
        row = await made.at(self._store, real)
        try:
            owners = await self._git.disk(_owners, real, row)
        except (OSError, ValueError) as error:
            raise missing from error
        for directory in owners:
            try:
                repository = await self.repositories.resolve(directory)
            except (NotARepository, NoSuchDirectory, GitFailed, OSError, ValueError):
                continue
            _, listed = await self.list(repository, changes=False)
            for one in listed:
                if one.path == real:
                    return repository, one
        raise missing

    async def verify(self, path: str) -> None:
        """Is ``path`` the top of a checkout of its own?  To be asked before work is sent there.

        Raises ``DirectoryMissing``: it is gone, or lost its ``.git`` and would resolve to another repository.
        """
        try:
            gone = DirectoryMissing(f"{shown(path)} is not a worktree any more.", details={"path": shown(path)})
        except ValueError:  # half of a surrogate pair
            raise DirectoryMissing(details={"path": ascii(path)}) from None
        stamp = await self._git.disk(link_stamp, path)
        if stamp is None:
            raise gone
        if self._verified.get(path) == stamp:
            return
        try:
            done = await self._git.run("rev-parse", "--show-toplevel", cwd=path)
        except (NotARepository, NoSuchDirectory) as error:
            raise gone from error
        try:
            top = await self._git.disk(os.path.realpath, done.text.removesuffix("\n"))
            real = await self._git.disk(os.path.realpath, path)
        except (OSError, ValueError) as error:
            raise gone from error
        if top != real:
            gone.details["toplevel"] = shown(top)
            raise gone
        self._verified[path] = stamp

    # --- plan and add -----------------------------------------------------------------------------

    async def plan(
        self,
        repository: Repository,
        branch: str,
        base: str | None = None,
        new_branch: bool | None = None,
        carry: bool = True,
    ) -> Plan:
        """What :meth:`add` would do; changes nothing.  See ``Adding.plan`` for its errors."""
        return await self._adding.plan(repository, branch, base, new_branch, carry)

    async def add(
        self,
        repository: Repository,
        branch: str,
        base: str | None = None,
        new_branch: bool | None = None,
        progress: Progress | None = None,
        carry: bool = True,
    ) -> Added:
        """Make the worktree of a branch, or find the one there.  See ``Adding.add`` for its errors."""
        added = await self._adding.add(repository, branch, base, new_branch, progress, carry)
        if added.stamp is not None:
            self._verified[added.path] = added.stamp
        return added


def _owners(path: str, row: Made | None) -> list[str]:
    """Directories from which the repository of a worktree can be found, the surest first."""
    owners = [row.identity] if row else []
    folder, name = os.path.split(os.path.dirname(path))
    if os.path.basename(folder) == ".worktrees":
        main = os.path.join(os.path.dirname(folder), name)
        owners += [main, f"{main}.git"]
    link = link_of(path)
    if link is not None and os.path.basename(os.path.dirname(link)) == "worktrees":
        owners.append(os.path.dirname(os.path.dirname(link)))
    owners.append(path)
    while not os.path.isdir(path) and path != os.path.dirname(path):
        path = os.path.dirname(path)
        owners.append(path)
    return list(dict.fromkeys(owner for owner in owners if os.path.isdir(owner)))
