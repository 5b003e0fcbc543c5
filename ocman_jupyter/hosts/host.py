"""What can be done on a machine: `Host`, a record of small services, and the records they speak in.

Everything is asynchronous and knows no Jupyter.  The local host does the work, a remote one asks
another server over REST with these same shapes.  JSON names are the REST contract's.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Protocol

from pydantic import BaseModel, Field

from ..git import records as git
from ..git.records import Base, Carried, Diff
from .request import Request

LOCAL = "local"

Progress = Callable[[str, float | None], None]
"""Called with a short sentence and, where it is known, the fraction that is done (0–1)."""

AbsolutePath = Annotated[str, Field(min_length=1, max_length=4096, pattern="^/")]
"""A path on the host that owns it; a relative one would mean something else in every process."""

SessionStatus = Literal["idle", "busy", "needs_you", "error", "directory_missing", "unknown"]


# --- instances -------------------------------------------------------------------------------


class InstanceInfo(BaseModel):
    """The one running OpenCode of a repository, as REST tells it."""

    url: str
    port: int
    repo_root: str
    tmux_session: str | None
    launched: bool
    """This call launched it."""
    owner: Literal["ocman", "user"]
    permission_seeded: bool
    opencode_version: str | None
    pid: int | None


class InstanceDetails(InstanceInfo):
    sessions: int
    busy: int
    rss_bytes: int | None
    started_at: str | None


class EnsureRequest(Request):
    directory: AbsolutePath


class StopRequest(EnsureRequest):
    force: bool = False


# --- sessions and asks -----------------------------------------------------------------------


class Ask(BaseModel):
    """A session waits for a permission or an answer."""

    id: str
    kind: Literal["permission", "question"]
    session_id: str
    host: str = LOCAL
    title: str
    """Title of the session (of its top ancestor when a subagent asks)."""
    permission: str | None = None
    patterns: list[str] = []
    always: list[str] = []
    """Exactly what the reply "always" would allow from then on."""
    metadata: dict[str, Any] = {}
    questions: list[dict[str, Any]] = []
    created: str


class Retry(BaseModel):
    """The model failed, and is called again."""

    attempt: int
    message: str
    at: str | None
    """When."""


class Session(BaseModel):
    """An OpenCode session, joined with what the host knows of it."""

    id: str
    title: str
    directory: str
    host: str = LOCAL
    repo_root: str | None
    project: str | None = None
    status: SessionStatus
    parent_id: str | None
    created: str
    updated: str
    agent: str | None = None
    model: str | None = None
    """``provider/model``."""
    cost: float = 0.0
    tokens: dict[str, Any] = {}
    pending: list[Ask] = []
    error: str | None = None
    """Why its last turn failed, where the status is ``error``."""
    retry: Retry | None = None
    """While a busy session waits to call its model again."""


class SessionList(BaseModel):
    sessions: list[Session]
    hidden: int
    """How many were left out: subagents' own sessions and those of other clones."""


_SHORT = Field(default=None, max_length=1000)
_MODEL = Field(default=None, max_length=1000, pattern=r"^[^/]+/.+")
"""``provider/model``."""
_TEXT = Field(default=None, max_length=1_000_000)


class SessionRequest(Request):
    directory: AbsolutePath | None = None
    project: str | None = _SHORT
    title: str | None = _SHORT
    prompt: str | None = _TEXT
    agent: str | None = _SHORT
    model: str | None = _MODEL
    inherit_from: str | None = _SHORT
    request_id: str | None = Field(default=None, min_length=1, max_length=200)


class PromptRequest(Request):
    text: str = Field(min_length=1, max_length=1_000_000)
    files: list[str] = []
    agent: str | None = _SHORT
    model: str | None = _MODEL


class RenameRequest(Request):
    title: str = Field(min_length=1, max_length=1000)


class ShellRequest(Request):
    command: str = Field(min_length=1, max_length=100_000)


class CommandRequest(Request):
    name: str = Field(min_length=1, max_length=1000)
    arguments: str = Field(default="", max_length=1_000_000)


class ForkRequest(Request):
    message_id: str | None = Field(default=None, min_length=1, max_length=200)
    request_id: str | None = Field(default=None, min_length=1, max_length=200)


class ReplyRequest(Request):
    reply: Literal["once", "always", "reject"] | None = None
    message: str | None = _TEXT
    answers: list[list[str]] | None = None


class Choice(BaseModel):
    """An agent, or one of OpenCode's ``/`` commands."""

    name: str
    description: str | None


class ModelChoice(BaseModel):
    id: str
    """``provider/model``."""
    name: str
    provider: str


class SessionOptions(BaseModel):
    """What a prompt of a session can be given to."""

    agents: list[Choice]
    models: list[ModelChoice]
    commands: list[Choice]
    default_model: str | None
    """``provider/model``."""


# --- worktrees -------------------------------------------------------------------------------


class Worktree(git.Worktree):
    """A worktree, or the main checkout, with the sessions that work in it."""

    sessions: list[Session] = []


class WorktreeList(BaseModel):
    repo_root: str
    default_base: Base | None
    worktrees: list[Worktree]
    sessions_elsewhere: list[Session]


class Notice(BaseModel):
    code: str
    message: str


class Setup(BaseModel):
    exit_code: int
    output: str


class WorktreeRequest(Request):
    directory: AbsolutePath
    branch: str = Field(max_length=1000)
    base: str | None = _SHORT
    new_branch: bool | None = None
    title: str | None = _SHORT
    prompt: str | None = _TEXT
    agent: str | None = _SHORT
    model: str | None = _MODEL
    session: Literal["none", "new", "auto"] = "auto"
    carry: bool = True
    setup: bool = True
    inherit_from: str | None = _SHORT
    dry_run: bool = False
    request_id: str | None = Field(default=None, min_length=1, max_length=200)


class WorktreePlan(BaseModel):
    worktree_path: str
    branch: str
    base: Base | None
    reused: bool
    branch_existed: bool
    carry: list[Carried] = []
    setup: list[str] = []
    warnings: list[Notice] = []


class WorktreeSession(BaseModel):
    """What ``POST worktrees`` answers."""

    session_id: str | None
    worktree_path: str
    branch: str
    repo_root: str
    host: str = LOCAL
    base: Base | None
    reused: bool
    branch_existed: bool
    carried: list[Carried] = []
    setup: Setup | None = None
    inherited_permissions: int = 0
    session_reused: bool = False
    prompt_sent: bool = False
    warnings: list[Notice] = []
    session: Session | None = None


class LossItem(BaseModel):
    path: str
    bytes: int | None = None


LossCode = Literal[
    "uncommitted", "untracked", "ignored", "unreachable_commits", "operation", "locked",
    "busy_session", "kernel", "process", "unverified",
]


class LossReason(BaseModel):
    """One reason why removing a worktree could lose something."""

    code: LossCode
    message: str
    items: list[LossItem] = []
    total_bytes: int = 0


class Removal(BaseModel):
    reasons: list[LossReason]
    safe: bool


class RemoveRequest(Request):
    path: AbsolutePath
    accept: list[LossCode] = []
    rescue_to: AbsolutePath | None = None
    rescue: list[Literal["ignored", "untracked", "uncommitted"]] = ["ignored"]
    delete_branch: bool = False


class Rescued(BaseModel):
    path: str
    to: str
    bytes: int


class Removed(BaseModel):
    removed: Literal[True] = True
    branch_deleted: bool
    rescued: list[Rescued] = []


# --- the machine -----------------------------------------------------------------------------


class Tool(BaseModel):
    path: str
    version: str


class MissingTool(BaseModel):
    name: str
    required: bool
    reason: str
    hint: str


class Capabilities(BaseModel):
    version: str
    host: dict[str, str]
    worktree_sessions: bool
    missing: list[MissingTool]
    git: Tool | None
    tmux: Tool | None
    opencode: Tool | None
    launcher: Literal["tmux", "process"]
    sandbox: dict[str, Any]
    hosts: list[dict[str, Any]]


class Check(BaseModel):
    name: str
    status: Literal["ok", "warning", "error"]
    message: str
    hint: str | None = None


# --- events ----------------------------------------------------------------------------------


class Event(BaseModel):
    """One thing that happened.  ``type`` and ``data`` are the REST contract's.

    | type | data |
    | --- | --- |
    | session.updated | Session |
    | session.removed | {"id", "directory"} |
    | session.status | {"id", "directory", "status", "error": str or null, "retry": Retry or null} |
    | message.updated | {"session_id", "message": {"info", "parts"}}: the whole message so far |
    | message.delta | {"session_id", "message_id", "part_id", "field", "delta"} |
    | ask.created | Ask |
    | ask.resolved | {"id", "session_id", "reply": str or null} |
    | worktree.changed | Worktree without its sessions, and {"repo_root"} |
    | worktree.removed | {"path", "repo_root"} |
    | instance.changed | InstanceInfo with "state": running, starting, stopped, failed |
    | progress | {"operation", "message", "fraction", "directory"} |

    Who begins to follow a session is told the messages of its running turn at once.
    """

    type: str
    host: str = LOCAL
    data: dict[str, Any]


class Snapshot(BaseModel):
    """All that a page needs to begin: taken together with the start of its event stream."""

    instances: list[dict[str, Any]]
    """``InstanceInfo`` with ``state``."""
    sessions: list[Session]
    asks: list[Ask]
    repositories: list[WorktreeList]
    """Known repositories; worktrees without the slow parts."""


class Subscription(Protocol):
    """One listener's place in the stream.  Never blocks the others: what it did not read in time is coalesced
    per session, part and ask; an edge (status, ask) is never dropped."""

    async def next(self) -> list[Event]:
        """Waits, then gives all that is ready, in order."""

    def follow(self, sessions: set[str] | None) -> None:
        """Choose whose message.* events come; ``None`` = all."""


# --- the services ----------------------------------------------------------------------------


class Instances(Protocol):
    async def ensure(self, directory: str, progress: Progress | None = None) -> InstanceInfo: ...
    async def list(self) -> list[InstanceDetails]: ...
    async def stop(self, directory: str, force: bool = False) -> None: ...
    async def restart(self, directory: str, force: bool = False, progress: Progress | None = None) -> InstanceInfo: ...


class Worktrees(Protocol):
    async def list(self, directory: str, changes: bool = True) -> WorktreeList: ...
    async def plan(self, request: WorktreeRequest) -> WorktreePlan: ...
    async def create(self, request: WorktreeRequest, progress: Progress | None = None) -> WorktreeSession: ...
    async def removal(self, path: str, delete_branch: bool = False) -> Removal: ...
    async def remove(self, request: RemoveRequest) -> Removed: ...


class Sessions(Protocol):
    async def list(self, directory: str) -> SessionList: ...
    async def create(self, request: SessionRequest, progress: Progress | None = None) -> Session: ...
    async def get(self, session_id: str) -> Session: ...
    async def rename(self, session_id: str, title: str) -> Session: ...
    async def delete(self, session_id: str) -> None: ...
    async def messages(self, session_id: str, limit: int = 100, before: str | None = None) -> dict[str, Any]:
        """``{"messages": [{"info", "parts"}, …], "next": message id or None}``, oldest first."""
    async def todos(self, session_id: str) -> list[dict[str, Any]]: ...
    async def prompt(self, session_id: str, request: PromptRequest) -> bool:
        """Send work; True when it was queued behind a running turn."""
    async def shell(self, session_id: str, command: str) -> None: ...
    async def command(self, session_id: str, name: str, arguments: str = "") -> None: ...
    async def abort(self, session_id: str) -> None: ...
    async def fork(self, session_id: str, message_id: str | None = None, request_id: str | None = None) -> Session: ...
    async def summarize(self, session_id: str) -> None: ...


class Diffs(Protocol):
    async def worktree(self, path: str, against: str = "base") -> Diff:
        """``against``: "base", "HEAD", a revision, or the absolute path of another worktree."""
    async def session(self, session_id: str) -> Diff:
        """Of the worktree that a session works in, against its base; of a main checkout what is not committed."""


class Composing(Protocol):
    """What a person who writes to a session can choose from.  Launches nothing."""

    async def options(self, session_id: str) -> SessionOptions: ...
    async def files(self, session_id: str, query: str = "", limit: int = 50) -> list[str]:
        """Paths below the session's directory that go with ``query``, the best first."""


class Asks(Protocol):
    async def list(self) -> list[Ask]: ...
    async def reply(self, ask_id: str, request: ReplyRequest) -> None: ...


class Events(Protocol):
    def subscribe(self) -> AbstractAsyncContextManager[tuple[Snapshot, Subscription]]: ...
    async def session(self, session_id: str) -> AsyncIterator[Event]:
        """One session: first its ``session.updated``, then all that happens to it."""


class Machine(Protocol):
    async def capabilities(self) -> Capabilities: ...
    async def doctor(self) -> list[Check]: ...


@dataclass(frozen=True)
class Host:
    """One machine: who it is, and its services."""

    id: str
    name: str
    machine: Machine
    instances: Instances
    worktrees: Worktrees
    sessions: Sessions
    diffs: Diffs
    composing: Composing
    asks: Asks
    events: Events
    start: Callable[[], Any]
    """``await host.start()``: adopt what runs, begin to listen.  Never launches anything."""
    close: Callable[[], Any]
    """``await host.close()``: stop listening; instances live on."""
