"""A host in memory that a real Jupyter server shows to a real browser, driven by the test over HTTP.

The Jupyter server of these tests names `scene` as its ``host_factory``.  The scene listens on a port of its
own, written to the file that ``OCMAN_SCENE_PORT_FILE`` names, and takes JSON: ``{"do": name, …}``.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import tornado.httpserver
import tornado.netutil
import tornado.web

from ocman_jupyter import __version__
from ocman_jupyter.errors import (
    BranchNameConflict,
    InvalidBranch,
    NotARepository,
    NotFound,
    OcmanError,
    OpenCodeUnreachable,
    SessionBusy,
    WouldLoseWork,
)
from ocman_jupyter.hosts.host import (
    Ask,
    Base,
    Capabilities,
    Diff,
    InstanceInfo,
    LossReason,
    Progress,
    Removal,
    Removed,
    RemoveRequest,
    ReplyRequest,
    Rescued,
    Session,
    SessionRequest,
    Snapshot,
    Tool,
    Worktree,
    WorktreeList,
    WorktreePlan,
    WorktreeRequest,
    WorktreeSession,
)
from ocman_jupyter.hosts.router import Router
from ocman_jupyter.server import events
from ocman_jupyter.settings import OcmanSettings
from tests.server.fake_host import FakeMachine, FakeSubscription

HOME = "/data/lab"
ANALYSIS = f"{HOME}/analysis"
SHOP = f"{HOME}/shop"
MAIN = Base(ref="origin/main", sha="a1b2c3d4" * 5, age_seconds=180_000)


def ago(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - seconds))


def changes(modified: int = 0, untracked: int = 0) -> dict[str, int]:
    return {"modified": modified, "untracked": untracked, "conflicted": 0}


def worktree(repository: str, name: str, **facts: Any) -> Worktree:
    """A worktree at its place beside ``repository``; ``main`` is the checkout itself."""
    is_main = name == "main"
    root, _, base = repository.rpartition("/")
    known: dict[str, Any] = {
        "path": repository if is_main else f"{root}/.worktrees/{base}/{name}",
        "name": base if is_main else name, "branch": name, "head": "0" * 40, "is_main": is_main,
        "state": "ok", "prunable": False, "detached": False, "locked": False, "lock_reason": None,
        "made_by_ocman": not is_main, "base": None if is_main else MAIN,
        "changes": changes(), "ahead": 0, "behind": 0, "merged": "no",
        "operation": None, "last_activity": None,
    }  # fmt: skip
    return Worktree.model_validate({**known, **facts})


def session(
    name: str, title: str, place: Worktree, repository: str, status: str = "idle", age: float = 7500
) -> Session:
    return Session.model_validate(
        {
            "id": name,
            "title": title,
            "directory": place.path,
            "repo_root": repository,
            "status": status,
            "parent_id": None,
            "created": ago(age + 60),
            "updated": ago(age),
            "model": "scripted/script",
        }  # fmt: skip
    )


def outside_ask(name: str = "per_1", session_id: str = "ses_fix", title: str = "Fix the loader") -> Ask:
    return Ask(
        id=name, kind="permission", session_id=session_id, title=title, permission="external_directory",
        patterns=["/etc/*"], always=["/etc/*"], metadata={"filepath": "/etc/hosts", "parentDir": "/etc"},
        created=ago(42),
    )  # fmt: skip


def question(name: str = "que_1", session_id: str = "ses_plots", title: str = "Plots") -> Ask:
    return Ask(
        id=name, kind="question", session_id=session_id, title=title, created=ago(200),
        questions=[
            {
                "question": "Which column is the target?", "header": "Target",
                "options": [
                    {"label": "price", "description": "The sales price"},
                    {"label": "volume", "description": ""},
                ],
            }
        ],
    )  # fmt: skip


class Scene(FakeMachine):
    """Repositories, sessions and asks as a test wants them."""

    def __init__(self) -> None:
        super().__init__()
        self.version = __version__
        self.scenes = 0
        self.missing: list[dict[str, Any]] = []
        self.repositories: dict[str, list[Worktree]] = {}
        self.known: dict[str, Session] = {}
        self.pending: dict[str, Ask] = {}
        self.running: set[str] = set()
        self.losses: list[LossReason] = []
        self.history: dict[str, list[dict[str, Any]]] = {}
        self.differences: Diff | OcmanError | None = None
        """What every worktree has that its base has not."""
        self.here: str | None = None
        """The repository that any folder which is not in one stands for: the folder of the file browser."""
        self.set("quiet")

    # --- what there is

    def set(self, name: str, **arguments: Any) -> str:
        """Begin anew with the named set-up.  Listeners begin anew too, with a snapshot.

        Gives the version of OpenCode that runs in it, another one each time: who sees that sees this scene.
        """
        self.scenes += 1
        self.repositories = {}
        self.known = {}
        self.pending = {}
        self.running = {ANALYSIS}
        self.losses = []
        self.history = {}
        self.differences = None
        self.here = ANALYSIS
        self.calls.clear()
        self.hold = None
        self.missing = []
        self.version = __version__
        getattr(self, f"_set_{name}")(**arguments)
        self.break_streams(ConnectionError("the scene changed"))
        return self._opencode

    def _set_empty(self) -> None:
        self.running = set()
        self.here = None

    def _set_quiet(self) -> None:
        self._add(ANALYSIS, worktree(ANALYSIS, "main"))

    def _set_work(self) -> None:
        """A working day."""
        main, fix, plots, done, gone = (
            worktree(ANALYSIS, "main", changes=changes(1, 1), ahead=1),
            worktree(ANALYSIS, "fix-loader", changes=changes(3, 2), ahead=2, behind=1),
            worktree(ANALYSIS, "plots", locked=True, lock_reason="long run on the cluster"),
            worktree(ANALYSIS, "try-polars", merged="squashed"),
            worktree(
                ANALYSIS, "old-idea", state="missing", prunable=True, changes=None, ahead=None, behind=None
            ),
        )
        self._add(ANALYSIS, main, fix, plots, done, gone)
        self._add(SHOP, worktree(SHOP, "main"), worktree(SHOP, "checkout-v2", ahead=4, operation="rebase"))
        for one in (
            session("ses_explore", "Explore data", main, ANALYSIS),
            session("ses_fix", "Fix the loader", fix, ANALYSIS, "needs_you", age=42),
            session("ses_tests", "Write tests for the loader", fix, ANALYSIS, "busy", age=5),
            session("ses_plots", "Plots", plots, ANALYSIS, "needs_you", age=200),
            session("ses_polars", "Try polars instead of pandas", done, ANALYSIS, "error", age=90_000),
            session("ses_old", "Old idea", gone, ANALYSIS, "directory_missing", age=900_000),
        ):
            self.known[one.id] = one
        for ask in (outside_ask(), question()):
            self.pending[ask.id] = ask

    def _set_hostile(self) -> None:
        evil = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>"
        right_to_left = "\u202eمرحبا بالعالم gnp.exe"
        main, long = worktree(ANALYSIS, "main"), worktree(ANALYSIS, "x" * 300)
        tree = worktree(ANALYSIS, "evil", branch=evil)
        self._add(ANALYSIS, main, tree, long)
        for one in (
            session("ses_evil", evil, tree, ANALYSIS, "needs_you"),
            session("ses_rtl", right_to_left, main, ANALYSIS),
            session("ses_long", "long " * 400, long, ANALYSIS, "busy"),
        ):
            self.known[one.id] = one
        self.pending["per_evil"] = Ask(
            id="per_evil", kind="permission", session_id="ses_evil", title=evil, permission="bash",
            patterns=[evil], always=[evil], metadata={"command": evil + " \u202egpj.sh"}, created=ago(3),
        )  # fmt: skip

    def _set_many(self, worktrees: int = 200, sessions: int = 2000) -> None:
        names = ["main", *(f"idea-{i:03}" for i in range(worktrees - 1))]
        trees = [worktree(ANALYSIS, name) for name in names]
        self._add(ANALYSIS, *trees)
        for i in range(sessions):
            one = session(f"ses_{i:04}", f"Session {i}", trees[i % worktrees], ANALYSIS, age=i)
            self.known[one.id] = one

    def _add(self, repository: str, *trees: Worktree) -> None:
        self.repositories[repository] = list(trees)

    # --- what the test does

    def update(self, session_id: str, **facts: Any) -> None:
        """A session changes, as OpenCode would have it."""
        one = self.known[session_id] = self.known[session_id].model_copy(update=facts)
        if set(facts) == {"status"}:
            self.tell("session.status", id=one.id, directory=one.directory, status=one.status)
        else:
            self.tell("session.updated", **one.model_dump())

    def differ(self, *files: dict[str, Any], truncated: bool = False) -> None:
        """The files that every diff tells."""
        base = {"old_path": None, "additions": 1, "deletions": 1, "binary": False, "notebook": False, "patch": None}
        self.differences = Diff.model_validate(
            {
                "files": [{"status": "modified", **base, **file} for file in files],
                "truncated": truncated,
                "against": {"ref": "main", "sha": "a1b2c3d4" * 5},
            }
        )

    def refuse_to_differ(self) -> None:
        """Every diff fails."""
        self.differences = NotFound("Its base is nowhere.")

    def forget(self, session_id: str) -> None:
        """A session is deleted."""
        one = self.known.pop(session_id)
        self.tell("session.removed", id=one.id, directory=one.directory)

    def vanish(self, repository: str, name: str) -> None:
        """A worktree is removed in a shell, with its folder: nobody is told."""
        path = worktree(repository, name).path
        self.repositories[repository] = [tree for tree in self.repositories[repository] if tree.path != path]
        self._note(path, "directory_missing")

    def _note(self, path: str, status: str) -> None:
        for one in self.known.values():
            if one.directory == path:
                self.known[one.id] = one.model_copy(update={"status": status})

    def say(self, session_id: str, text: str, directory: str) -> None:
        """An agent has said something, in a session of this folder."""
        self.update(session_id, directory=directory)
        info = {"id": "msg_1", "sessionID": session_id, "role": "assistant", "time": {"created": 1, "completed": 2}}
        part = {"id": "prt_1", "messageID": "msg_1", "sessionID": session_id, "type": "text", "text": text}
        self.history[session_id] = [{"info": info, "parts": [part]}]

    def kill(self, repository: str) -> None:
        """An OpenCode dies."""
        self.tell("instance.changed", **{**self._instances[0], "state": "stopped"})
        self.running.discard(repository)

    def ask(self, **facts: Any) -> None:
        ask = self.pending[facts.get("name", "per_1")] = outside_ask(**facts)
        self.tell("ask.created", **ask.model_dump())

    def resolve(self, ask_id: str, answer: str | None) -> None:
        """Somebody else answers."""
        ask = self.pending.pop(ask_id)
        self.tell("ask.resolved", id=ask.id, session_id=ask.session_id, reply=answer)

    def take_away(self, ask_id: str) -> None:
        """Somebody else has answered, and the word of it is still on its way."""
        del self.pending[ask_id]

    def change(self, repository: str, name: str, **facts: Any) -> None:
        """A worktree changes, or is new."""
        tree = worktree(repository, name, **facts)
        known = self.repositories[repository]
        self.repositories[repository] = [one for one in known if one.path != tree.path] + [tree]
        self.tell("worktree.changed", **tree.model_dump(exclude={"sessions"}))

    def lose(self, *reasons: dict[str, Any]) -> None:
        """What the removal of any worktree would lose from now on."""
        self.losses = [LossReason.model_validate(reason) for reason in reasons]

    def refuse(self, message: str) -> None:
        """The next call does not work."""
        self.fail = NotFound(message)

    def tools(self, missing: list[dict[str, Any]], version: str = __version__) -> None:
        self.missing, self.version = missing, version

    def called(self, name: str) -> list[Any]:
        return [
            [argument.model_dump() if hasattr(argument, "model_dump") else argument for argument in arguments]
            for called, arguments in self.calls
            if called == name
        ]

    @property
    def _opencode(self) -> str:
        return f"1.18.{self.scenes}"

    # --- what the server asks

    async def capabilities(self) -> Capabilities:
        known = await super().capabilities()
        opencode = Tool(path="/usr/bin/opencode", version=self._opencode)
        return known.model_copy(update={
            "version": self.version, "opencode": opencode,
            "missing": Capabilities.model_validate({**known.model_dump(), "missing": self.missing}).missing,
        })  # fmt: skip

    @property
    def _instances(self) -> list[dict[str, Any]]:
        return [
            {
                "url": "http://127.0.0.1:4096", "port": 4096, "repo_root": root, "tmux_session": None,
                "launched": False, "owner": "ocman", "permission_seeded": True,
                "opencode_version": self._opencode, "pid": 1, "state": "running",
            }
            for root in sorted(self.running)
        ]  # fmt: skip

    def _list(self, root: str, changes: bool) -> WorktreeList:
        empty = {"changes": None, "ahead": None, "behind": None, "merged": "unknown"}
        trees = []
        for tree in self.repositories[root]:
            here = [one for one in self.known.values() if one.directory == tree.path]
            trees.append(tree.model_copy(update={"sessions": here, **({} if changes else empty)}))
        paths = {tree.path for tree in trees}
        others = [one for one in self.known.values() if one.repo_root == root and one.directory not in paths]
        return WorktreeList(repo_root=root, default_base=MAIN, worktrees=trees, sessions_elsewhere=others)

    async def worktrees(self, directory: str, changes: bool = True) -> WorktreeList:
        self._called("worktrees", directory, changes)
        for root, trees in self.repositories.items():
            if any(directory == tree.path or directory.startswith(tree.path + "/") for tree in trees):
                return self._list(root, changes)
        if self.here is not None:
            return self._list(self.here, changes)
        raise NotARepository(f"{directory} is not inside a git repository.")

    async def plan(self, request: WorktreeRequest) -> WorktreePlan:
        self._called("plan", request)
        trees = self.repositories[request.directory]
        if ".." in request.branch or request.branch.startswith("-"):
            raise InvalidBranch(f"'{request.branch}' is not a valid branch name.")
        tree = worktree(request.directory, request.branch)
        reused = any(one.path == tree.path for one in trees)
        return WorktreePlan(
            worktree_path=tree.path, branch=request.branch, base=MAIN, reused=reused, branch_existed=reused
        )

    async def create_worktree(
        self, request: WorktreeRequest, progress: Progress | None = None
    ) -> WorktreeSession:
        if progress is not None:
            progress("Checking out files", 0.4)
        self._called("create_worktree", request)
        if self.hold is not None:
            await self.hold.wait()
        if request.branch == "conflict":
            raise BranchNameConflict("The branch 'conflict' is in conflict with 'conflict/x'.")
        plan = await self.plan(request)
        if not plan.reused:
            self._note(plan.worktree_path, "idle")
            self.change(request.directory, request.branch)
        tree = next(one for one in self.repositories[request.directory] if one.path == plan.worktree_path)
        if request.session == "none":
            return WorktreeSession(
                session_id=None, worktree_path=tree.path, branch=request.branch, repo_root=request.directory,
                base=plan.base, reused=plan.reused, branch_existed=plan.branch_existed, session=None,
            )  # fmt: skip
        status = "busy" if request.prompt else "idle"
        title = request.title or request.branch
        made = session(f"ses_{request.branch}", title, tree, request.directory, status, age=0)
        self.known[made.id] = made
        self.tell("session.updated", **made.model_dump())
        return WorktreeSession(
            session_id=made.id, worktree_path=tree.path, branch=request.branch, repo_root=request.directory,
            base=plan.base, reused=plan.reused, branch_existed=plan.branch_existed, session=made,
            prompt_sent=request.prompt is not None,
        )  # fmt: skip

    async def reply(self, ask_id: str, request: ReplyRequest) -> None:
        self._called("reply", ask_id, request)
        if ask_id not in self.pending:
            raise NotFound("It was answered elsewhere.")
        answer = request.reply or "answered"
        session_id = self.pending[ask_id].session_id
        self.resolve(ask_id, answer)
        self.update(session_id, status="busy")

    async def messages(self, session_id: str, limit: int = 100, before: str | None = None) -> dict[str, Any]:
        if self.known[session_id].repo_root not in self.running:
            raise OpenCodeUnreachable("No OpenCode runs that could read this session.")
        known = await super().messages(session_id, limit, before)
        return {**known, "messages": self.history.get(session_id, known["messages"])}

    async def ensure(self, directory: str, progress: Progress | None = None) -> InstanceInfo:
        self.running.add(directory)
        self.tell("instance.changed", **next(one for one in self._instances if one["repo_root"] == directory))
        return await super().ensure(directory, progress)

    async def abort(self, session_id: str) -> None:
        await super().abort(session_id)
        self.update(session_id, status="idle")

    async def rename(self, session_id: str, title: str) -> Session:
        await super().rename(session_id, title)
        self.update(session_id, title=title)
        return self.known[session_id]

    async def delete(self, session_id: str) -> None:
        await super().delete(session_id)
        self.forget(session_id)

    async def fork(
        self, session_id: str, message_id: str | None = None, request_id: str | None = None
    ) -> Session:
        await super().fork(session_id, message_id, request_id)
        return self._begin(self.known[session_id].directory, f"{self.known[session_id].title} (fork)")

    async def create_session(self, request: SessionRequest, progress: Progress | None = None) -> Session:
        self._called("create_session", request)
        assert request.directory is not None
        return self._begin(request.directory, request.title or "New session")

    def _begin(self, directory: str, title: str) -> Session:
        for root, trees in self.repositories.items():
            for tree in trees:
                if tree.path == directory:
                    made = session(f"ses_{len(self.known)}", title, tree, root, age=0)
                    self.known[made.id] = made
                    self.tell("session.updated", **made.model_dump())
                    return made
        raise NotARepository(f"{directory} is not inside a git repository.")

    async def stop(self, directory: str, force: bool = False) -> None:
        await super().stop(directory, force)
        busy = [one.id for one in self.known.values() if one.status == "busy" and one.repo_root == directory]
        if busy and not force:
            raise SessionBusy(details={"sessions": busy})
        self.tell("instance.changed", **{**self._instances[0], "state": "stopped"})
        self.running.discard(directory)

    async def removal(self, path: str, delete_branch: bool = False) -> Removal:
        await super().removal(path, delete_branch)
        return Removal(reasons=self.losses, safe=not self.losses)

    async def remove(self, request: RemoveRequest) -> Removed:
        self._called("remove", request)
        rescue = request.rescue if request.rescue_to else []
        left = [one for one in self.losses if one.code not in (*request.accept, *rescue)]
        if left:
            raise WouldLoseWork(details={"reasons": [one.model_dump() for one in left]})
        for root, trees in self.repositories.items():
            if any(tree.path == request.path for tree in trees):
                self.repositories[root] = [tree for tree in trees if tree.path != request.path]
                self.tell("worktree.removed", path=request.path, repo_root=root)
        rescued = [
            Rescued(path=item.path, to=f"{request.rescue_to}/{item.path}", bytes=item.bytes or 0)
            for one in self.losses
            if one.code in rescue
            for item in one.items
        ]
        return Removed(branch_deleted=request.delete_branch, rescued=rescued)

    async def diff(self, path: str, against: str = "base") -> Diff:
        self._called("diff", path, against)
        if isinstance(self.differences, OcmanError):
            raise self.differences
        return self.differences or await super().diff(path, against)

    def subscribe(self) -> Any:
        return _Place(self)


class _Place:
    """One listener, from its snapshot on."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._subscription = FakeSubscription(scene)

    async def __aenter__(self) -> tuple[Snapshot, FakeSubscription]:
        scene = self._scene
        scene.subscriptions.add(self._subscription)
        state = Snapshot(
            instances=scene._instances, sessions=list(scene.known.values()),
            asks=list(scene.pending.values()),
            repositories=[scene._list(root, False) for root in scene.repositories],
        )  # fmt: skip
        return state, self._subscription

    async def __aexit__(self, *_: Any) -> None:
        self._scene.subscriptions.discard(self._subscription)


class _Direct(tornado.web.RequestHandler):
    """The test's hand on the scene."""

    def initialize(self, scene: Scene) -> None:
        self._scene = scene

    def post(self) -> None:
        wish = json.loads(self.request.body)
        try:
            answer = getattr(self._scene, wish.pop("do"))(*wish.pop("items", ()), **wish)
        except OcmanError as error:
            answer = error.to_json()
        self.finish(json.dumps(answer))


def scene(settings: OcmanSettings) -> Router:
    """The ``host_factory`` of the server under test."""
    events.RETRY_SECONDS = 0.02  # a new scene is seen at once
    machine = Scene()
    application = tornado.web.Application([("/", _Direct, {"scene": machine})])
    server = tornado.httpserver.HTTPServer(application)
    sockets = tornado.netutil.bind_sockets(0, "127.0.0.1")
    server.add_sockets(sockets)
    place = Path(os.environ["OCMAN_SCENE_PORT_FILE"])
    partial = place.with_suffix(".part")
    partial.write_text(str(sockets[0].getsockname()[1]))
    partial.replace(place)
    return Router(machine.host())
