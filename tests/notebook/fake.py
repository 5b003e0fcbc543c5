"""A host in memory that behaves as one: worktrees are made once, prompts become turns told as events."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any

from ocman_jupyter.errors import NoSuchSession, NotFound, OpenCodeUnreachable, ServerUnreachable, WouldLoseWork
from ocman_jupyter.hosts.host import (
    Ask,
    Base,
    Capabilities,
    Check,
    Diff,
    Event,
    Host,
    InstanceInfo,
    LossItem,
    LossReason,
    Progress,
    PromptRequest,
    Removal,
    Removed,
    RemoveRequest,
    ReplyRequest,
    Session,
    SessionList,
    SessionRequest,
    Snapshot,
    Worktree,
    WorktreeList,
    WorktreePlan,
    WorktreeRequest,
    WorktreeSession,
)


def now() -> str:
    return datetime.now(timezone.utc).isoformat().replace("+00:00", "Z")


def instance(directory: str) -> InstanceInfo:
    return InstanceInfo(
        url="http://127.0.0.1:4096",
        port=4096,
        repo_root=directory,
        tmux_session=None,
        launched=True,
        owner="ocman",
        permission_seeded=True,
        opencode_version="1.18.33",
        pid=1,
    )


class Place:
    """A listener's place in the stream of everything."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[Event | None] = asyncio.Queue()
        self.sessions: set[str] | None = set()

    def follow(self, sessions: set[str] | None) -> None:
        self.sessions = sessions

    async def next(self) -> list[Event]:
        event = await self.queue.get()
        return [] if event is None else [event]


class FakeHost:
    """All services.  ``fail`` is raised by the next call; ``hold`` keeps long work until it is set."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []
        self.fail: BaseException | None = None
        self.hold: asyncio.Event | None = None
        self.finished: list[str] = []
        self.cancelled: list[str] = []
        self.known: dict[str, Session] = {}
        self.trees: dict[str, Worktree] = {}
        self.first_prompts: dict[str, str | None] = {}
        self.history: dict[str, list[dict[str, Any]]] = {}
        self.pending: dict[str, Ask] = {}
        self.listeners: list[tuple[str, asyncio.Queue[Event]]] = []
        self.places: list[Place] = []
        self.unreachable = False
        """Whoever asks for the events is refused."""
        self.todo: list[dict[str, Any]] = []
        self.differences = differences()
        self.reasons: list[LossReason] = []
        self.refuses: list[LossReason] = []
        """Why no worktree can be removed."""
        self.keeps_branches = False
        self.checks = [Check(name="git", status="ok", message="git 2.39.5")]
        self.turn_seconds = 0.05
        self.turn_error: str | None = None
        self.broken: str | None = None
        """A reason: the next turns fail with it, outside of any message."""
        self.dead = False
        """No OpenCode runs: reading fails, sending and ``ensure`` launch one."""
        self.turn_ask: Ask | None = None
        self.numbers = itertools.count(1)
        self.closed = False

    def called(self, name: str, given: Any = None) -> None:
        self.calls.append((name, given))
        if self.fail is not None:
            error, self.fail = self.fail, None
            raise error

    def names(self) -> list[str]:
        return [name for name, _ in self.calls]

    def given(self, name: str) -> Any:
        return next(given for called, given in reversed(self.calls) if called == name)

    async def long(self, name: str, progress: Progress | None) -> None:
        try:
            if progress is not None:
                progress("Starting OpenCode", 0.5)
            if self.hold is not None:
                await self.hold.wait()
            self.finished.append(name)
        except asyncio.CancelledError:
            self.cancelled.append(name)
            raise

    # --- what is there

    def add_session(self, directory: str, title: str, **more: Any) -> Session:
        session_id = more.pop("id", f"ses_{next(self.numbers):026d}")
        session = Session(
            id=session_id,
            title=title,
            directory=directory,
            repo_root=more.pop("repo_root", "/repo"),
            status=more.pop("status", "idle"),
            parent_id=None,
            created=more.pop("created", now()),
            updated=now(),
            **more,
        )
        self.known[session.id] = session
        self.history.setdefault(session.id, [])
        return session

    def add_tree(self, branch: str, path: str | None = None, **more: Any) -> Worktree:
        path = path or f"/repo/.worktrees/{branch.replace('/', '-')}"
        values: dict[str, Any] = {
            "path": path,
            "name": path.rsplit("/", 1)[-1],
            "branch": branch,
            "head": "1" * 40,
            "is_main": False,
            "state": "ok",
            "prunable": False,
            "detached": False,
            "locked": False,
            "lock_reason": None,
            "made_by_ocman": True,
            "base": Base(ref="main", sha="0" * 40),
            "changes": None,
            "ahead": None,
            "behind": None,
            "merged": "no",
            "operation": None,
            "last_activity": None,
            **more,
        }
        tree = Worktree(**values)
        self.trees[path] = tree
        return tree

    # --- services

    async def capabilities(self) -> Capabilities:
        self.called("capabilities")
        return Capabilities(
            version="0",
            host={"id": "local", "name": "x"},
            worktree_sessions=True,
            missing=[],
            git=None,
            tmux=None,
            opencode=None,
            launcher="process",
            sandbox={},
            hosts=[],
        )

    async def doctor(self) -> list[Check]:
        self.called("doctor")
        return self.checks

    async def ensure(self, directory: str, progress: Progress | None = None) -> InstanceInfo:
        self.called("ensure", directory)
        self.dead = False
        await self.long("ensure", progress)
        return instance(directory)

    async def stop(self, directory: str, force: bool = False) -> None:
        self.called("stop", (directory, force))

    async def restart(
        self, directory: str, force: bool = False, progress: Progress | None = None
    ) -> InstanceInfo:
        self.called("restart", (directory, force))
        return instance(directory)

    async def worktrees(self, directory: str, changes: bool = True) -> WorktreeList:
        self.called("worktrees", directory)
        sessions = [self.joined(session) for session in self.known.values()]
        trees = [
            tree.model_copy(update={"sessions": [s for s in sessions if s.directory == tree.path]})
            for tree in self.trees.values()
        ]
        elsewhere = [s for s in sessions if s.directory not in self.trees]
        return WorktreeList(
            repo_root="/repo", default_base=None, worktrees=trees, sessions_elsewhere=elsewhere
        )

    async def plan(self, request: WorktreeRequest) -> WorktreePlan:
        self.called("plan", request)
        return WorktreePlan(
            worktree_path=f"/repo/.worktrees/{request.branch}",
            branch=request.branch,
            reused=False,
            base=Base(ref="origin/main", sha="a" * 40, age_seconds=7200),
            branch_existed=False,
        )

    async def create(self, request: WorktreeRequest, progress: Progress | None = None) -> WorktreeSession:
        self.called("create", request)
        await self.long("create", progress)
        tree = next((t for t in self.trees.values() if t.branch == request.branch), None)
        made = tree is None
        tree = tree or self.add_tree(request.branch)
        if made:
            self.tell("", "worktree.changed", **tree.model_dump(mode="json", exclude={"sessions"}), repo_root="/repo")
        there = [s for s in self.known.values() if s.directory == tree.path]
        session, sent = None, False
        if request.session != "none":
            same = [
                s for s in there if request.prompt is None or self.first_prompts.get(s.id) == request.prompt
            ]
            if request.session == "auto" and same:
                session = same[0]
            else:
                session = self.add_session(tree.path, request.title or request.branch)
                self.first_prompts[session.id] = request.prompt
                self.tell(session.id, "session.updated", **session.model_dump(mode="json"))
                if request.prompt is not None:
                    sent = True
                    self.begin(session.id, request.prompt)
                there = [*there, session]
        return WorktreeSession(
            session_id=session.id if session else None,
            worktree_path=tree.path,
            branch=request.branch,
            repo_root="/repo",
            base=tree.base,
            reused=not made,
            branch_existed=not made,
            session_reused=bool(session) and not sent and session in there and not made,
            prompt_sent=sent,
            session=session,
        )

    async def diff(self, path: str, against: str = "base") -> Diff:
        self.called("diff", (path, against))
        return self.differences

    async def removal(self, path: str, delete_branch: bool = False) -> Removal:
        self.called("removal", (path, delete_branch))
        return Removal(reasons=self.reasons, safe=not self.reasons)

    async def remove(self, request: RemoveRequest) -> Removed:
        self.called("remove", request)
        if self.refuses:
            raise WouldLoseWork(details={"reasons": [reason.model_dump() for reason in self.refuses]})
        self.trees.pop(request.path, None)
        return Removed(branch_deleted=request.delete_branch and not self.keeps_branches)

    async def sessions(self, directory: str) -> SessionList:
        self.called("sessions", directory)
        return SessionList(sessions=list(self.known.values()), hidden=0)

    async def create_session(self, request: SessionRequest, progress: Progress | None = None) -> Session:
        self.called("create_session", request)
        session = self.add_session(request.directory or "", request.title or "New session")
        if request.prompt:
            self.begin(session.id, request.prompt)
        return session

    async def get(self, session_id: str) -> Session:
        self.called("get", session_id)
        if session_id not in self.known:
            raise NoSuchSession()
        return self.joined(self.known[session_id])

    def joined(self, session: Session) -> Session:
        """``session`` with what it asks."""
        pending = [ask for ask in self.pending.values() if ask.session_id == session.id]
        return session.model_copy(update={"pending": pending})

    async def todos(self, session_id: str) -> list[dict[str, Any]]:
        return self.todo

    async def messages(self, session_id: str, limit: int = 100, before: str | None = None) -> dict[str, Any]:
        if self.dead:
            raise OpenCodeUnreachable("No OpenCode runs that could read this session.")
        return {"messages": self.history[session_id][-limit:], "next": None}

    async def prompt(self, session_id: str, request: PromptRequest) -> bool:
        self.called("prompt", (session_id, request))
        self.dead = False
        busy = self.known[session_id].status == "busy"
        self.begin(session_id, request.text)
        return busy

    async def abort(self, session_id: str) -> None:
        self.called("abort", session_id)
        self.status(session_id, "idle")

    async def asks(self) -> list[Ask]:
        self.called("asks")
        return list(self.pending.values())

    async def reply(self, ask_id: str, request: ReplyRequest) -> None:
        self.called("reply", (ask_id, request))
        ask = self.pending.pop(ask_id, None)
        if ask is None:
            raise NotFound()
        self.tell(
            ask.session_id, "ask.resolved", id=ask_id, session_id=ask.session_id, reply=request.reply or "answered"
        )

    async def session(self, session_id: str) -> AsyncIterator[Event]:
        queue: asyncio.Queue[Event] = asyncio.Queue()
        entry = (session_id, queue)
        self.listeners.append(entry)
        try:
            yield Event(type="session.updated", data=(await self.get(session_id)).model_dump(mode="json"))
            while True:
                yield await queue.get()
        finally:
            self.listeners.remove(entry)

    @asynccontextmanager
    async def subscribe(self) -> AsyncIterator[tuple[Snapshot, Place]]:
        if self.unreachable:
            raise ServerUnreachable("The Jupyter server does not answer.")
        place = Place()
        self.places.append(place)
        try:
            yield Snapshot(instances=[], sessions=list(self.known.values()), asks=[], repositories=[]), place
        finally:
            self.places.remove(place)

    def break_off(self) -> None:
        """End every stream, as a server does that goes away."""
        for place in self.places:
            place.queue.put_nowait(None)

    # --- turns

    def tell(self, session_id: str, kind: str, /, **data: Any) -> None:
        for listener, queue in self.listeners:
            if listener == session_id:
                queue.put_nowait(Event(type=kind, data=data))
        for place in self.places:
            if not kind.startswith("message.") or place.sessions is None or session_id in place.sessions:
                place.queue.put_nowait(Event(type=kind, data=data))

    def status(self, session_id: str, status: str, error: str | None = None) -> None:
        self.known[session_id] = self.known[session_id].model_copy(update={"status": status, "error": error})
        self.tell(session_id, "session.status", id=session_id, directory="", status=status, error=error)

    def begin(self, session_id: str, text: str) -> None:
        self._turn = asyncio.get_running_loop().create_task(self.turn(session_id, text))

    async def turn(self, session_id: str, text: str) -> None:
        """Busy, the user's message, a tool, streamed text, idle."""
        user, said = (f"msg_{next(self.numbers)}" for _ in range(2))

        def message(key: str, role: str, parts: list[dict[str, Any]], **info: Any) -> None:
            whole = {"info": {"id": key, "role": role, **info}, "parts": parts}
            history = self.history[session_id]
            history[:] = [m for m in history if m["info"]["id"] != key] + [whole]
            self.tell(session_id, "message.updated", session_id=session_id, message=whole)

        await asyncio.sleep(self.turn_seconds)
        message(user, "user", [{"id": user + "p", "type": "text", "text": text}])
        self.status(session_id, "busy")
        if self.broken is not None:
            self.status(session_id, "error", self.broken)
            return
        tool = {
            "id": said + "t",
            "type": "tool",
            "tool": "bash",
            "state": {"status": "running", "input": {"command": "pwd"}},
        }
        answer = {"id": said + "x", "type": "text", "text": ""}
        message(said, "assistant", [tool, answer])
        if self.turn_ask is not None:
            self.pending[self.turn_ask.id] = self.turn_ask
            self.tell(session_id, "ask.created", **self.turn_ask.model_dump(mode="json"))
            self.status(session_id, "needs_you")
        await asyncio.sleep(self.turn_seconds)
        done = {
            **tool,
            "state": {
                "status": "completed",
                "input": {"command": "pwd"},
                "output": "/x",
                "time": {"start": 1000, "end": 3500},
            },
        }
        message(said, "assistant", [done, answer])
        for piece in ("did: ", text):
            self.tell(
                session_id,
                "message.delta",
                session_id=session_id,
                message_id=said,
                part_id=said + "x",
                field="text",
                delta=piece,
            )
        await asyncio.sleep(self.turn_seconds)
        error = (
            {"error": {"name": "APIError", "data": {"message": self.turn_error}}} if self.turn_error else {}
        )
        whole = {**answer, "text": "did: " + text}
        message(said, "assistant", [done, whole], time={"completed": 1}, **error)
        self.status(session_id, "error" if self.turn_error else "idle", self.turn_error)

    # --- its life

    async def start(self) -> None:
        self.called("start")

    async def close(self) -> None:
        self.closed = True

    def host(self) -> Host:
        names = SimpleNamespace
        return Host(
            id="local",
            name="x",
            machine=self,
            instances=names(ensure=self.ensure, stop=self.stop, restart=self.restart),
            worktrees=names(
                list=self.worktrees,
                plan=self.plan,
                create=self.create,
                removal=self.removal,
                remove=self.remove,
            ),
            sessions=names(
                list=self.sessions,
                create=self.create_session,
                get=self.get,
                messages=self.messages,
                todos=self.todos,
                prompt=self.prompt,
                abort=self.abort,
            ),
            asks=names(list=self.asks, reply=self.reply),
            events=names(session=self.session, subscribe=self.subscribe),
            diffs=names(worktree=self.diff),
            composing=names(),
            start=self.start,
            close=self.close,
        )


def permission(ask_id: str = "per_1", session_id: str = "ses_1") -> Ask:
    return Ask(
        id=ask_id,
        kind="permission",
        session_id=session_id,
        title="Fix the loader",
        created=now(),
        permission="external_directory",
        patterns=["/etc/*"],
        always=["/etc/*"],
        metadata={"filepath": "/etc/hosts"},
    )


def question(ask_id: str = "que_1", count: int = 1, multiple: bool = False) -> Ask:
    one = {"question": "Which column?", "options": [{"label": "price"}, {"label": "weight"}], "custom": False}
    return Ask(
        id=ask_id, kind="question", session_id="ses_1", title="Plots", created=now(), questions=[one] * count
    )


def differences(*files: dict[str, Any], truncated: bool = False) -> Diff:
    against = {"ref": "main", "sha": "abcdef0123" * 4}
    bare = {"status": "modified", "additions": 1, "deletions": 0, "binary": False, "notebook": False, "patch": None}
    return Diff.model_validate(
        {"files": [{**bare, **file} for file in files], "truncated": truncated, "against": against}
    )


def loss(code: str = "ignored") -> LossReason:
    return LossReason(
        code=code,
        message="Ignored files would go.",
        items=[LossItem(path="out/x.csv", bytes=2_000_000)],
        total_bytes=2_000_000,
    )


def install(host: FakeHost | None = None) -> FakeHost:
    """Let the API, the magics and the command of this process work on a fake host; returns it."""
    from ocman_jupyter.notebook import api
    from ocman_jupyter.notebook.client import InProcessClient
    from ocman_jupyter.notebook.verbs import Verbs

    host = host or FakeHost()
    client = InProcessClient(host.host())
    api.in_process = lambda: client  # type: ignore[assignment]
    api.DESK.use(Verbs(client))
    return host
