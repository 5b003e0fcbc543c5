"""Worktrees of this machine, joined with the sessions that work in them."""

from __future__ import annotations

import asyncio
import logging
import time

from ...errors import DirectoryMissing, MainWorktree, NoSuchWorktree, OcmanError, WouldLoseWork
from ...git import removal
from ...git.records import Added
from ...git.records import Worktree as GitWorktree
from ...git.repository import Repository
from ..host import (
    LOCAL,
    Event,
    LossItem,
    LossReason,
    Notice,
    Progress,
    Removal,
    Removed,
    RemoveRequest,
    Rescued,
    Session,
    SessionRequest,
    Worktree,
    WorktreeList,
    WorktreePlan,
    WorktreeRequest,
    WorktreeSession,
)
from .feeds import Feeds
from .locks import directory_lock
from .occupants import occupants
from .parts import Parts
from .paths import deepest, real
from .records import prompt_digest
from .sessions import Sessions
from .warming import Warming

log = logging.getLogger(__name__)

ATTEMPTS = 3
"""How often a worktree is made again that somebody removes meanwhile."""


class Worktrees:
    """Plan, make, list and remove worktrees; open sessions in them."""

    def __init__(self, parts: Parts, feeds: Feeds, sessions: Sessions, warming: Warming) -> None:
        self._parts = parts
        self._feeds = feeds
        self._sessions = sessions
        self._warming = warming
        self._refreshing: set[str] = set()

    # --- reading -----------------------------------------------------------------------------

    async def list(self, directory: str, changes: bool = True) -> WorktreeList:
        """The repository's worktrees with their sessions; with ``changes`` also what takes longer to find out."""
        repository = await self._parts.repository(directory)
        base, found = await self._parts.worktrees.list(repository, changes=changes)
        sessions = await self._sessions.of_repository(repository, [w.path for w in found])
        return self._join(repository, base, found, sessions.sessions)

    def _join(
        self, repository: Repository, base: object, found: list[GitWorktree], sessions: list[Session]
    ) -> WorktreeList:
        by_path: dict[str, list[Session]] = {w.path: [] for w in found}
        elsewhere = []
        for session in sessions:
            # A folder of ours without its .git is listed too: its sessions stand beside it.
            home = deepest(session.directory, by_path)
            (elsewhere if home is None else by_path[home]).append(session)
        return WorktreeList.model_construct(
            repo_root=repository.root,
            default_base=base,
            worktrees=[Worktree.model_construct(**dict(w), sessions=by_path[w.path]) for w in found],
            sessions_elsewhere=elsewhere,
        )

    async def plan(self, request: WorktreeRequest) -> WorktreePlan:
        """What `create` would do; nothing is changed."""
        repository = await self._parts.repository(request.directory)
        plan = await self._parts.worktrees.plan(
            repository, request.branch, request.base, request.new_branch, request.carry
        )
        warnings = [Notice(code=w.code, message=w.message) for w in plan.warnings]
        return WorktreePlan(
            worktree_path=plan.worktree_path,
            branch=plan.branch,
            base=plan.base,
            reused=plan.reused,
            branch_existed=plan.branch_existed,
            carry=plan.carry,
            warnings=warnings,
        )

    # --- making ------------------------------------------------------------------------------

    async def create(self, request: WorktreeRequest, progress: Progress | None = None) -> WorktreeSession:
        """The worktree of a branch, made or reused, and a session in it.

        A failure takes back what this call made, and nothing else.
        """
        return await self._parts.requests.once(
            request.request_id,
            "worktrees",
            request.model_dump(mode="json"),
            WorktreeSession,
            lambda: self._create(request, progress),
        )

    async def _create(self, request: WorktreeRequest, progress: Progress | None) -> WorktreeSession:
        repository = await self._parts.repository(request.directory)
        wanted = request.session != "none"
        if wanted and not self._feeds.warm(repository.common_dir):
            # What is not valid must not launch anything, and a launch that fails must leave nothing behind.
            await self._parts.worktrees.plan(
                repository, request.branch, request.base, request.new_branch, carry=False
            )
            await self._feeds.ensure(repository, progress)
        for attempt in range(ATTEMPTS):
            added = await self._parts.worktrees.add(
                repository, request.branch, request.base, request.new_branch, progress, request.carry
            )
            try:
                if added.reused and not wanted:
                    await self._hand_out(added.path)
                return await self._complete(repository, request, added, progress)
            except DirectoryMissing:
                # It was removed between the two, also by somebody who saw it come: make it again.
                if attempt == ATTEMPTS - 1:
                    raise
        raise AssertionError("unreachable")

    async def _complete(
        self, repository: Repository, request: WorktreeRequest, added: Added, progress: Progress | None
    ) -> WorktreeSession:
        """Open the session in a worktree that is there now."""
        wanted, began = request.session != "none", time.time()
        answer = WorktreeSession(
            session_id=None,
            worktree_path=added.path,
            branch=added.branch,
            repo_root=repository.root,
            base=added.base,
            reused=added.reused,
            branch_existed=added.branch_existed,
            carried=added.carried,
            warnings=[Notice(code=w.code, message=w.message) for w in added.warnings],
        )
        if added.recreated:
            answer.warnings.append(
                Notice(code="recreated", message="The worktree's directory was gone; it was made again.")
            )
        try:
            if not added.reused:
                if wanted:
                    # OpenCode may remember the configuration of an earlier worktree at this path.
                    await self._forget_context(repository, added.path)
                # Sessions of that one go on.
                await self._feeds.look_for(repository.common_dir, added.path)
            if wanted:
                await self._open_session(repository, request, added, answer, began, progress)
        except BaseException:
            if not added.reused and not added.recreated:
                await asyncio.shield(self._take_back(repository, added, began))
            raise
        self._publish_soon(repository, added.path)
        return answer

    async def _hand_out(self, path: str) -> None:
        """Keep who made this worktree from taking it back.  Raises `DirectoryMissing` when that was done already."""
        if not await self._parts.handed_out.add(path):
            async with directory_lock(self._parts.settings, path):
                # Nobody takes it back now; one that was killed while it did left it as it is.
                await self._parts.handed_out.add(path, even_going=True)
        await self._parts.worktrees.verify(path)

    async def _take_back(self, repository: Repository, added: Added, began: float) -> None:
        """Remove the worktree that this call made.

        A hook's files in it keep it, and so does whoever uses it by now: a process inside, another call that was
        given it, a session that may have got its prompt.  The next call finds it.
        """
        try:
            # Nobody opens a session in it meanwhile; what one began before is seen.
            async with directory_lock(self._parts.settings, added.path):
                if await self._is_used(added.path, began):
                    self._publish_soon(repository, added.path)
                    return
                try:
                    await self._remove_made(repository, added, began)
                finally:
                    await self._parts.handed_out.taken_back(added.path)
        except NoSuchWorktree:
            pass  # somebody else removed it
        except OcmanError as error:
            log.warning("%s was made and stays: %s", added.path, error)

    async def _is_used(self, path: str, began: float) -> bool:
        if any(note.created >= began for note in await self._parts.notes.in_directory(path)):
            return True
        if await asyncio.to_thread(occupants, path):
            return True
        return not await self._parts.handed_out.begin_to_take_back(path, began)

    async def _remove_made(self, repository: Repository, added: Added, began: float) -> None:
        # Before it goes: OpenCode may be making the session just now.
        await self._parts.taken_back.add(repository.common_dir, added.path, began)
        await self._parts.git.disk(added.take_back_carried)
        _, worktree = await self._parts.worktrees.find(added.path)
        await removal.remove(
            self._parts.git, self._parts.store, self._parts.settings, repository, worktree,
            delete_branch=not added.branch_existed,
        )

    async def _open_session(
        self,
        repository: Repository,
        request: WorktreeRequest,
        added: Added,
        answer: WorktreeSession,
        began: float,
        progress: Progress | None,
    ) -> None:
        async with directory_lock(self._parts.settings, added.path):
            await self._parts.worktrees.verify(added.path)
            noted = await self._parts.notes.in_directory(added.path)
            # Who waited for this worktree may have been here before the one that made it.
            others = added.reused or added.recreated or any(note.created >= began for note in noted)
            if request.session == "auto" and others:
                session = await self._same_work(repository, added.path, request.prompt)
                if session is not None:
                    await self._parts.handed_out.add(added.path, even_going=True)
                    answer.session, answer.session_id, answer.session_reused = session, session.id, True
                    return
            title = request.title
            if title is None:
                before = len(noted) if added.reused else 0
                # Sessions of one worktree can be told apart by their names.
                title = f"{added.branch} ({before + 1})" if before else added.branch
            if progress is not None:
                progress("Opening the session", None)
            opened = await self._sessions.open(
                repository,
                added.path,
                SessionRequest(
                    directory=added.path,
                    title=title,
                    prompt=request.prompt,
                    agent=request.agent,
                    model=request.model,
                    inherit_from=request.inherit_from,
                ),
                progress,
                take_up=True,
            )
        answer.session, answer.session_id = opened.session, opened.session.id
        answer.inherited_permissions = opened.inherited
        answer.prompt_sent = request.prompt is not None
        answer.warnings += opened.warnings
        if not opened.seeded:
            answer.warnings.append(
                Notice(
                    code="instance_not_seeded",
                    message="The running OpenCode was not launched by ocman; the session got the worktree "
                    "permissions itself.",
                )
            )
        if request.prompt is None:
            self._warming.begin(repository, added.path)

    async def _same_work(self, repository: Repository, path: str, prompt: str | None) -> Session | None:
        """The newest session of this worktree; with a prompt, the newest that began with it."""
        sessions = [
            s for s in (await self._sessions.of_repository(repository)).sessions if s.directory == path
        ]
        sessions.sort(key=lambda s: s.updated, reverse=True)
        if prompt is None:
            return sessions[0] if sessions else None
        notes = {n.id: n.prompt_sha256 for n in await self._parts.notes.in_directory(path)}
        digest = prompt_digest(prompt)
        for session in sessions:
            if notes.get(session.id) is not None:
                if notes[session.id] == digest:
                    return session
            elif await self._sessions.first_prompt(session.id) == prompt:
                return session
        return None

    async def _forget_context(self, repository: Repository, path: str) -> None:
        known, noted, taken = await asyncio.gather(
            self._parts.contexts.holds(repository.common_dir, path),
            self._parts.notes.in_directory(path),
            self._parts.taken_back.of(repository.common_dir),
        )
        # A request that was under way when the directory went may have made its context once more.
        if known or noted or path in taken:
            await self._feeds.dispose(repository.common_dir, path)

    # --- removing ----------------------------------------------------------------------------

    async def removal(self, path: str, delete_branch: bool = False) -> Removal:
        """Every reason why removing the worktree at ``path`` could lose something."""
        repository, worktree = await self._parts.worktrees.find(path)
        reasons = await self._reasons(repository, worktree, delete_branch)
        return Removal(reasons=reasons, safe=not reasons)

    async def _reasons(
        self, repository: Repository, worktree: GitWorktree, delete_branch: bool
    ) -> list[LossReason]:
        if worktree.is_main:
            raise MainWorktree(details={"path": worktree.path})
        from_git, inside, busy = await asyncio.gather(
            removal.reasons(self._parts.git, self._parts.store, repository, worktree, delete_branch),
            asyncio.to_thread(occupants, worktree.path),
            self._busy(repository, worktree.path),
        )
        reasons = [
            LossReason(
                code=r.code, message=r.message, total_bytes=r.total_bytes,
                items=[LossItem(path=i.path, bytes=i.bytes) for i in r.items],
            )
            for r in from_git
        ]
        if busy:
            reasons.append(
                LossReason(
                    code="busy_session",
                    message=f"{len(busy)} session{'s are' if len(busy) > 1 else ' is'} at work in it.",
                    items=[LossItem(path=s.title) for s in busy],
                )
            )
        reasons += inside
        return reasons

    async def _busy(self, repository: Repository, path: str) -> list[Session]:
        await self._feeds.reread_status(repository.common_dir, path)
        sessions = (await self._sessions.of_repository(repository)).sessions
        return [
            s for s in sessions
            if s.status in ("busy", "needs_you") and deepest(s.directory, {path}) is not None
        ]

    async def remove(self, request: RemoveRequest) -> Removed:
        """Remove a worktree.  Raises `WouldLoseWork` with every reason that was not accepted by name."""
        path = await asyncio.to_thread(real, request.path)
        # Nobody opens a session in it meanwhile; what one began before is seen.
        async with directory_lock(self._parts.settings, path):
            return await self._remove(request)

    async def _remove(self, request: RemoveRequest) -> Removed:
        repository, worktree = await self._parts.worktrees.find(request.path)
        rescued_codes = set(request.rescue) if request.rescue_to else set()
        accepted = set(request.accept)
        reasons = await self._reasons(repository, worktree, request.delete_branch)
        left = [r for r in reasons if r.code not in accepted | rescued_codes]
        if left:
            raise WouldLoseWork(
                f"Removing {worktree.name} would lose work: {', '.join(r.code for r in left)}.",
                details={"reasons": [r.model_dump() for r in left]},
            )
        for session in await self._busy(repository, worktree.path):
            await self._sessions.abort_and_wait(session.id)
        await self._warming.stop(worktree.path)
        branch_deleted, rescued = await removal.remove(
            self._parts.git,
            self._parts.store,
            self._parts.settings,
            repository,
            worktree,
            accept=accepted,
            delete_branch=request.delete_branch,
            rescue_to=request.rescue_to,
            rescue=set(request.rescue),
        )
        await self._forget_context(repository, worktree.path)
        self._parts.bus.publish(
            Event(type="worktree.removed", data={"path": worktree.path, "repo_root": repository.root})
        )
        await self._feeds.look_for(repository.common_dir, worktree.path)
        return Removed(
            branch_deleted=branch_deleted,
            rescued=[Rescued(path=r.path, to=r.to, bytes=r.bytes) for r in rescued],
        )

    # --- events ------------------------------------------------------------------------------

    def _publish_soon(self, repository: Repository, path: str) -> None:
        """Tell the pages about a worktree once its slow parts are known."""
        if self._parts.bus.listened:
            self._feeds.spawn(self.refresh(repository, path))

    async def refresh(self, repository: Repository, path: str | None = None) -> None:
        """Read worktrees again (one, or all) and publish each with its slow parts."""
        key = path or repository.root
        if key in self._refreshing:
            return
        self._refreshing.add(key)
        try:
            base, found = await self._parts.worktrees.list(repository, changes=False)
            if path is not None:
                found = [w for w in found if w.path == path]
            await self._parts.worktrees.details(
                repository, base, found, lambda worktree: self._publish(repository, worktree)
            )
        except OcmanError:
            pass  # the repository went away meanwhile: whoever asks next is told
        finally:
            self._refreshing.discard(key)

    async def refresh_at(self, directory: str) -> None:
        """`refresh` the worktree that ``directory`` is in."""
        try:
            repository = await self._parts.repository(directory)
        except OcmanError:
            return
        await self.refresh(repository, repository.toplevel)

    def _publish(self, repository: Repository, worktree: GitWorktree) -> None:
        data = {**worktree.model_dump(mode="json"), "repo_root": repository.root}
        self._parts.bus.publish(Event(type="worktree.changed", host=LOCAL, data=data))

