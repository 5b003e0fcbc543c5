"""A host in memory for the tests of the server: answers at once, fails as it is told to, tells events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from ocman_jupyter.errors import NoSuchSession, NotFound
from ocman_jupyter.git.records import Against, CellChange, FileDiff
from ocman_jupyter.hosts.host import (
    LOCAL,
    Ask,
    Base,
    Capabilities,
    Check,
    Choice,
    Diff,
    Event,
    Host,
    InstanceDetails,
    InstanceInfo,
    ModelChoice,
    Progress,
    PromptRequest,
    Removal,
    Removed,
    RemoveRequest,
    ReplyRequest,
    Session,
    SessionList,
    SessionOptions,
    SessionRequest,
    Snapshot,
    Tool,
    Worktree,
    WorktreeList,
    WorktreePlan,
    WorktreeRequest,
    WorktreeSession,
)

NOW = "2026-01-02T03:04:05Z"


class FakeSubscription:
    """Coalesces what was not read: deltas per part, the newest record per session; asks are all kept."""

    def __init__(self, machine: FakeMachine) -> None:
        self.machine = machine
        self.followed: set[str] | None = set()
        self.waiting: dict[Any, Event] = {}
        self.ready = asyncio.Event()
        self.most = 0
        self.broken: Exception | None = None
        self.ended = False

    def put(self, event: Event) -> None:
        if event.type.startswith("message."):
            session = event.data.get("session_id")
            if self.followed is not None and session not in self.followed:
                return
        key = self._key(event)
        old = self.waiting.get(key)
        if old is not None and event.type == "message.delta":
            joined = {**old.data, "delta": old.data["delta"] + event.data["delta"]}
            event = Event(type=event.type, host=event.host, data=joined)
        self.waiting[key] = event
        self.most = max(self.most, len(self.waiting))
        self.ready.set()

    def _key(self, event: Event) -> Any:
        data = event.data
        if event.type == "message.delta":
            return (event.type, data["session_id"], data["part_id"])
        return (event.type, data.get("id"), data.get("path"), data.get("status"))

    def follow(self, sessions: set[str] | None) -> None:
        self.followed = sessions

    async def next(self) -> list[Event]:
        await self.ready.wait()
        if self.broken is not None:
            raise self.broken
        if self.ended:
            return []
        self.ready.clear()
        events = list(self.waiting.values())
        self.waiting.clear()
        return events


class FakeMachine:
    """All services of the fake host in one.  ``fail`` is raised by the next call of any of them."""

    def __init__(self, name: str = LOCAL) -> None:
        self.id = name
        self.fail: BaseException | None = None
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self.subscriptions: set[FakeSubscription] = set()
        self.known: dict[str, Session] = {"ses_1": session("ses_1", host=name)}
        self.pending: dict[str, Ask] = {"per_1": ask("per_1")}
        self.started = 0
        self.closed = False
        self.start_fails: Exception | None = None
        self.hold: asyncio.Event | None = None
        """While it is there and not set, long operations do not end."""
        self.streams = 0

    # --- driving it

    def tell(self, kind: str, /, **data: Any) -> None:
        """An event for every listener: one object for all, as the real host does."""
        event = Event(type=kind, host=self.id, data=data)
        for subscription in self.subscriptions:
            subscription.put(event)

    def break_streams(self, error: Exception) -> None:
        for subscription in list(self.subscriptions):
            subscription.broken = error
            subscription.ready.set()

    def end_streams(self) -> None:
        for subscription in list(self.subscriptions):
            subscription.ended = True
            subscription.ready.set()

    def _called(self, name: str, *args: Any) -> None:
        self.calls.append((name, args))
        if self.fail is not None:
            error, self.fail = self.fail, None
            raise error

    async def _long(self, progress: Progress | None) -> None:
        if progress is not None:
            progress("Starting OpenCode", 0.5)
        if self.hold is not None:
            await self.hold.wait()

    def _session(self, name: str) -> Session:
        if name not in self.known:
            raise NoSuchSession()
        return self.known[name]

    # --- machine, instances

    async def capabilities(self) -> Capabilities:
        self._called("capabilities")
        return Capabilities(
            version="0",
            host={"id": self.id, "name": self.id},
            worktree_sessions=True,
            missing=[],
            git=Tool(path="/usr/bin/git", version="2.39.5"),
            tmux=None,
            opencode=None,
            launcher="process",
            sandbox={"available": [], "active": "none"},
            hosts=[],
        )

    async def doctor(self) -> list[Check]:
        self._called("doctor")
        return [Check(name="git", status="ok", message="git 2.39.5")]

    async def ensure(self, directory: str, progress: Progress | None = None) -> InstanceInfo:
        self._called("ensure", directory)
        await self._long(progress)
        return InstanceInfo.model_validate(instance(directory))

    async def instances(self) -> list[InstanceDetails]:
        self._called("instances")
        more = {"sessions": 1, "busy": 0, "rss_bytes": None, "started_at": NOW}
        return [InstanceDetails(**instance("/repo"), **more)]

    async def stop(self, directory: str, force: bool = False) -> None:
        self._called("stop", directory, force)

    async def restart(
        self, directory: str, force: bool = False, progress: Progress | None = None
    ) -> InstanceInfo:
        self._called("restart", directory, force)
        await self._long(progress)
        return InstanceInfo.model_validate(instance(directory))

    # --- worktrees

    async def worktrees(self, directory: str, changes: bool = True) -> WorktreeList:
        self._called("worktrees", directory, changes)
        return WorktreeList(
            repo_root=directory,
            default_base=Base(ref="main", sha="0" * 40),
            worktrees=[worktree()],
            sessions_elsewhere=[],
        )

    async def plan(self, request: WorktreeRequest) -> WorktreePlan:
        self._called("plan", request)
        return WorktreePlan(
            worktree_path="/repo/.worktrees/w",
            branch=request.branch,
            base=None,
            reused=False,
            branch_existed=False,
        )

    async def create_worktree(
        self, request: WorktreeRequest, progress: Progress | None = None
    ) -> WorktreeSession:
        self._called("create_worktree", request)
        await self._long(progress)
        return WorktreeSession(
            session_id="ses_1",
            worktree_path="/repo/.worktrees/w",
            branch=request.branch,
            repo_root="/repo",
            base=None,
            reused=request.new_branch is False,
            branch_existed=False,
            session=self.known.get("ses_1"),
        )

    async def removal(self, path: str, delete_branch: bool = False) -> Removal:
        self._called("removal", path, delete_branch)
        return Removal(reasons=[], safe=True)

    async def remove(self, request: RemoveRequest) -> Removed:
        self._called("remove", request)
        return Removed(branch_deleted=False)

    # --- sessions

    async def sessions(self, directory: str) -> SessionList:
        self._called("sessions", directory)
        return SessionList(sessions=list(self.known.values()), hidden=0)

    async def create_session(self, request: SessionRequest, progress: Progress | None = None) -> Session:
        self._called("create_session", request)
        await self._long(progress)
        return session("ses_2", host=self.id)

    async def get(self, session_id: str) -> Session:
        self._called("get", session_id)
        return self._session(session_id)

    async def rename(self, session_id: str, title: str) -> Session:
        self._called("rename", session_id, title)
        return self._session(session_id).model_copy(update={"title": title})

    async def delete(self, session_id: str) -> None:
        self._called("delete", session_id)
        self._session(session_id)

    async def messages(self, session_id: str, limit: int = 100, before: str | None = None) -> dict[str, Any]:
        self._called("messages", session_id, limit, before)
        self._session(session_id)
        return {"messages": [{"info": {"id": "msg_1"}, "parts": []}], "next": None}

    async def todos(self, session_id: str) -> list[dict[str, Any]]:
        self._called("todos", session_id)
        self._session(session_id)
        return [{"content": "x", "status": "pending", "priority": "low"}]

    async def diff(self, path: str, against: str = "base") -> Diff:
        self._called("diff", path, against)
        return diff()

    async def session_diff(self, session_id: str) -> Diff:
        self._called("session_diff", session_id)
        self._session(session_id)
        return diff()

    async def options(self, session_id: str) -> SessionOptions:
        self._called("options", session_id)
        self._session(session_id)
        return SessionOptions(
            agents=[Choice(name="build", description=None)],
            models=[ModelChoice(id="p/m", name="M", provider="P")],
            commands=[Choice(name="init", description="Begin")],
            default_model="p/m",
        )

    async def files(self, session_id: str, query: str = "", limit: int = 50) -> list[str]:
        self._called("files", session_id, query, limit)
        self._session(session_id)
        return ["src/a.py"]

    async def prompt(self, session_id: str, request: PromptRequest) -> bool:
        self._called("prompt", session_id, request)
        self._session(session_id)
        return False

    async def shell(self, session_id: str, command: str) -> None:
        self._called("shell", session_id, command)
        self._session(session_id)

    async def command(self, session_id: str, name: str, arguments: str = "") -> None:
        self._called("command", session_id, name, arguments)
        self._session(session_id)

    async def abort(self, session_id: str) -> None:
        self._called("abort", session_id)
        self._session(session_id)

    async def fork(
        self, session_id: str, message_id: str | None = None, request_id: str | None = None
    ) -> Session:
        self._called("fork", session_id, message_id, request_id)
        return self._session(session_id).model_copy(update={"id": "ses_3"})

    async def summarize(self, session_id: str) -> None:
        self._called("summarize", session_id)
        self._session(session_id)

    # --- asks, events

    async def asks(self) -> list[Ask]:
        self._called("asks")
        return list(self.pending.values())

    async def reply(self, ask_id: str, request: ReplyRequest) -> None:
        self._called("reply", ask_id, request)
        if ask_id not in self.pending:
            raise NotFound("It was answered elsewhere.")

    @asynccontextmanager
    async def subscribe(self) -> AsyncIterator[tuple[Snapshot, FakeSubscription]]:
        self._called("subscribe")
        subscription = FakeSubscription(self)
        self.subscriptions.add(subscription)
        try:
            state = Snapshot(
                instances=[],
                sessions=list(self.known.values()),
                asks=list(self.pending.values()),
                repositories=[],
            )
            yield state, subscription
        finally:
            self.subscriptions.discard(subscription)

    async def session(self, session_id: str) -> AsyncIterator[Event]:
        subscription = FakeSubscription(self)
        subscription.follow({session_id})
        self.subscriptions.add(subscription)
        self.streams += 1
        try:
            yield Event(type="session.updated", host=self.id, data=self._session(session_id).model_dump())
            while events := await subscription.next():
                for event in events:
                    yield event
        finally:
            self.streams -= 1
            self.subscriptions.discard(subscription)

    # --- its life

    async def start(self) -> None:
        self.started += 1
        if self.start_fails is not None:
            raise self.start_fails

    async def close(self) -> None:
        self.closed = True

    def host(self) -> Host:
        return Host(
            id=self.id,
            name=self.id,
            machine=self,
            instances=_Names(ensure=self.ensure, list=self.instances, stop=self.stop, restart=self.restart),
            worktrees=_Names(
                list=self.worktrees,
                plan=self.plan,
                create=self.create_worktree,
                removal=self.removal,
                remove=self.remove,
            ),
            sessions=_Names(
                list=self.sessions,
                create=self.create_session,
                get=self.get,
                rename=self.rename,
                delete=self.delete,
                messages=self.messages,
                todos=self.todos,
                prompt=self.prompt,
                shell=self.shell,
                command=self.command,
                abort=self.abort,
                fork=self.fork,
                summarize=self.summarize,
            ),
            diffs=_Names(worktree=self.diff, session=self.session_diff),
            composing=_Names(options=self.options, files=self.files),
            asks=_Names(list=self.asks, reply=self.reply),
            events=_Names(subscribe=self.subscribe, session=self.session),
            start=self.start,
            close=self.close,
        )


class _Names:
    """A service made of functions."""

    def __init__(self, **functions: Callable[..., Awaitable[Any]] | Callable[..., Any]) -> None:
        self.__dict__.update(functions)


def instance(directory: str) -> dict[str, Any]:
    return {
        "url": "http://127.0.0.1:4096",
        "port": 4096,
        "repo_root": directory,
        "tmux_session": None,
        "launched": False,
        "owner": "ocman",
        "permission_seeded": True,
        "opencode_version": "1.18.33",
        "pid": 1,
    }


def session(name: str, directory: str = "/repo", host: str = LOCAL) -> Session:
    return Session(
        id=name,
        title="A session",
        directory=directory,
        host=host,
        repo_root="/repo",
        status="idle",
        parent_id=None,
        created=NOW,
        updated=NOW,
    )


def ask(name: str, session_id: str = "ses_1") -> Ask:
    return Ask(
        id=name, kind="permission", session_id=session_id, title="A session", permission="bash", created=NOW
    )


def worktree(path: str = "/repo/.worktrees/w") -> Worktree:
    return Worktree(
        path=path,
        name="w",
        branch="w",
        head="0" * 40,
        is_main=False,
        state="ok",
        prunable=False,
        detached=False,
        locked=False,
        lock_reason=None,
        made_by_ocman=True,
        base=None,
        changes=None,
        ahead=None,
        behind=None,
        merged="unknown",
        operation=None,
        last_activity=None,
    )


def diff() -> Diff:
    cell = CellChange(
        kind="added", cell_type="code", index=0, source_patch="+x\n", outputs_changed=True, metadata_changed=False
    )
    notebook = FileDiff(
        path="a.ipynb",
        old_path="b.ipynb",
        status="renamed",
        additions=1,
        deletions=0,
        binary=False,
        notebook=True,
        patch="",
        notebook_diff=[cell],
    )
    image = FileDiff(
        path="i.png", status="untracked", additions=None, deletions=None, binary=True, notebook=False, patch=None
    )
    return Diff(files=[notebook, image], truncated=False, against=Against(ref="main", sha="0" * 40))
