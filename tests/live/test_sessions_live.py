"""Sessions, asks, events and the warm-up against the real OpenCode, on each version that is given."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ocman_jupyter import errors
from ocman_jupyter.opencode import warmup
from ocman_jupyter.opencode.changes import (
    AskCreated,
    AskResolved,
    Change,
    Delta,
    DirectoryFreed,
    MessagesMissed,
    MessageUpdated,
    SessionUpdated,
    StatusChanged,
)
from ocman_jupyter.opencode.client import ConnectionRefused, OpenCodeClient
from ocman_jupyter.opencode.events import EventStream
from ocman_jupyter.opencode.records import WARM_UP_TITLE
from ocman_jupyter.opencode.state import DirectorySnapshot, InstanceState

pytestmark = [pytest.mark.live, pytest.mark.timeout(180)]

MANY = int(os.environ.get("OCMAN_TEST_SESSIONS", "6"))
"""How many sessions are prompted at once."""


# --- a running server per binary -------------------------------------------------------------


@dataclass
class Server:
    url: str
    root: Path
    process: subprocess.Popen[bytes]

    def worktree(self, name: str) -> str:
        """A linked worktree, made when it is not there."""
        path = self.root.parent / ".worktrees" / "main" / name
        if not path.exists():
            git(self.root, "worktree", "add", "--quiet", "--detach", str(path))
        return str(path)

    def stop(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(10)


def git(directory: str | Path, *args: str) -> str:
    done = subprocess.run(["git", "-C", str(directory), *args], check=True, capture_output=True, text=True)
    return done.stdout


def start(binary: Path, base: Path, model_url: str, files: int = 1) -> Server:
    """`opencode serve` with a home, a repository and a process group of its own."""
    from ocman_jupyter.demo.model import opencode_environment

    root = base / "project" / "main"
    root.mkdir(parents=True)
    git(root, "init", "--quiet", "--initial-branch=main")
    git(root, "config", "user.email", "test@example.com")
    git(root, "config", "user.name", "Test")
    for number in range(files):
        (root / f"d{number % 50}").mkdir(exist_ok=True)
        (root / f"d{number % 50}" / f"f{number}.txt").write_text(f"{number}\n" * 20)
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "first")
    home = base / "home"
    home.mkdir()
    kept = ("PATH", "LANG", "LC_ALL", "OCMAN_TEST_RUN")
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    environment.update(
        {"HOME": str(home), "OPENCODE_SERVER_PASSWORD": "pw", **opencode_environment(model_url)}
    )
    log = base / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [str(binary), "serve", "--port", "0", "--hostname", "127.0.0.1"],
            cwd=root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    deadline = time.monotonic() + 60
    while not (found := re.search(rb"listening on (http://\S+)", log.read_bytes())):
        assert process.poll() is None and time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)
    return Server(found.group(1).decode(), root, process)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Path], Server]]:
    """``servers(binary)``: one shared running server for each binary."""
    from ocman_jupyter.demo.model import ModelServer

    running: dict[Path, Server] = {}
    with ModelServer() as model:

        def get(binary: Path) -> Server:
            if binary not in running:
                running[binary] = start(binary, tmp_path_factory.mktemp("live"), model.url)
            return running[binary]

        yield get
        for server in running.values():
            server.stop()


@pytest.fixture
def server(servers: Callable[[Path], Server], opencode_binary: Path) -> Server:
    return servers(opencode_binary)


# --- somebody who watches --------------------------------------------------------------------


class Watcher:
    """Client, stream and state of one instance, put together as a host does it."""

    def __init__(self, server: Server) -> None:
        self.client = OpenCodeClient(server.url, "pw")
        self.state = InstanceState()
        self.told: list[Change] = []
        self.lost: list[Exception] = []
        self._root = str(server.root)
        self._fills: set[asyncio.Task[None]] = set()
        self.stream = EventStream(self.client, self._apply, self._refetch, self.lost.append)

    def _apply(self, event: dict[str, Any]) -> None:
        self._tell(self.state.apply(event))

    def _tell(self, changes: list[Change]) -> None:
        for change in changes:
            self.told.append(change)
            if isinstance(change, MessagesMissed):
                task = asyncio.ensure_future(self._fill(change.session_id))
                self._fills.add(task)
                task.add_done_callback(self._fills.discard)

    async def _fill(self, session_id: str) -> None:
        with contextlib.suppress(errors.NoSuchSession):
            self._tell(self.state.fill(session_id, (await self.client.messages(session_id, 20)).messages))

    async def _refetch(self) -> None:
        since = self.state.mark()
        snapshots = {}
        for directory in [*self.state.directories]:
            permissions = await self.client.permissions(directory)
            questions = await self.client.questions(directory)
            snapshots[directory] = DirectorySnapshot(
                permissions, questions, await self.client.statuses(directory)
            )
        sessions = await self.client.sessions(self._root)
        self._tell(self.state.replace(sessions, snapshots, since=since, gap=True))

    async def until(self, condition: Callable[[], Any], seconds: float = 45.0) -> Any:
        deadline = time.monotonic() + seconds
        while not (value := condition()):
            assert time.monotonic() < deadline, f"not in time; last told: {self.told[-8:]}"
            await asyncio.sleep(0.02)
        return value

    async def status(self, session_id: str, wanted: str) -> None:
        await self.until(lambda: self.state.status(session_id) == wanted)

    async def turn(self, session_id: str, text: str, **more: Any) -> None:
        """Prompt, and wait until the turn began and ended."""
        before = len(self.told)
        await self.client.prompt(session_id, text, **more)
        await self.until(
            lambda: any(
                isinstance(change, StatusChanged)
                and change.session_id == session_id
                and change.status in ("idle", "error")
                for change in self.told[before:]
            )
        )

    async def ask(self, session_id: str) -> Any:
        await self.status(session_id, "needs_you")
        return self.state.pending(session_id)[0]

    async def answer(self, session_id: str) -> str:
        """Text of the newest message."""
        messages = (await self.client.messages(session_id, 1)).messages
        return "".join(part.get("text", "") for part in messages[-1]["parts"])


@contextlib.asynccontextmanager
async def watching(server: Server) -> AsyncIterator[Watcher]:
    watcher = Watcher(server)
    watcher.stream.start()
    try:
        await watcher.until(lambda: watcher.stream.connected)
        yield watcher
    finally:
        await watcher.stream.close()
        await watcher.client.aclose()


# --- sessions --------------------------------------------------------------------------------


async def test_each_answer_comes_from_its_own_directory(server):
    async with watching(server) as w:
        sessions = [await w.client.create_session(server.worktree(f"many{n}"), f"s{n}") for n in range(MANY)]
        await asyncio.gather(*(w.client.prompt(session.id, "RUN bash: pwd") for session in sessions))
        for n, session in enumerate(sessions):
            await w.until(lambda session=session: w.state.messages(session.id), 120)
            await w.until(
                lambda session=session: (
                    w.state.status(session.id) == "idle" and len(w.state.messages(session.id)) > 2
                ),
                120,
            )
            assert session.directory == server.worktree(f"many{n}") and session.project_id != "global"
            assert (await w.answer(session.id)).strip().endswith(session.directory)
        assert {s.id for s in await w.client.sessions(str(server.root))} >= {s.id for s in sessions}


@pytest.mark.parametrize("name", ["a b", "é日", "n\nl", "p%41", "p%", "q?#&+="])
async def test_a_session_opens_in_a_directory_of_any_name(server, name):
    client = OpenCodeClient(server.url, "pw")
    session = await client.create_session(server.worktree(name), "odd")
    assert session.directory == server.worktree(name) and session.project_id != "global"
    assert (await client.path(server.worktree(name))).worktree == server.worktree(name)
    assert session.id in {item.id for item in await client.sessions(server.worktree(name))}
    await client.delete_session(session.id)
    await client.aclose()


async def test_what_a_session_says_of_itself(server):
    async with watching(server) as w:
        rules = [{"permission": "external_directory", "pattern": "/x/**", "action": "allow"}]
        made = await w.client.create_session(server.worktree("shared"), "first", rules)
        assert (
            made.permission == rules and made.parent_id is None and made.agent is None and made.model is None
        )
        await w.client.rename(made.id, "second")
        await w.turn(made.id, "SAY hello", agent="build", model="scripted/script")
        session = await w.client.session(made.id)
        assert (session.title, session.agent, session.model) == ("second", "build", "scripted/script")
        assert session.tokens["output"] > 0 and session.updated >= session.created > 1_600_000_000_000
        await w.until(lambda: w.state.sessions[made.id].tokens == session.tokens)
        more = [{"permission": "bash", "pattern": "*", "action": "ask"}]
        assert (await w.client.set_permission(made.id, more)).permission == rules + more  # appended


async def test_a_streamed_answer_is_told_whole_and_in_pieces(server):
    async with watching(server) as w:
        session = await w.client.create_session(server.worktree("shared"), "stream")
        await w.turn(session.id, "SLEEP 1.5\nSAY end")
        pieces = [
            change.delta for change in w.told if isinstance(change, Delta) and change.session_id == session.id
        ]
        whole = [
            change
            for change in w.told
            if isinstance(change, MessageUpdated) and change.session_id == session.id
        ]
        text = await w.answer(session.id)
        assert "".join(pieces) == text and len(pieces) > 2
        assert "".join(part.get("text", "") for part in w.state.messages(session.id)[-1]["parts"]) == text
        assert whole[0].info["role"] == "user"


async def test_who_joins_in_the_middle_of_a_turn_gets_the_whole_in_the_end(server):
    async with watching(server) as first:
        session = await first.client.create_session(server.worktree("shared"), "join")
        await first.client.prompt(session.id, "RUN bash: echo one\nSLEEP 2\nSAY end")
        await first.until(lambda: len(first.state.messages(session.id)) > 2)
        async with watching(server) as second:
            # A host remembers which directories have a context; the status of others is not asked.
            second.state.directories[session.directory] = time.time()
            await second._refetch()
            assert second.state.status(session.id) == "busy"
            await second.status(session.id, "idle")
            await first.status(session.id, "idle")
            listed = (await second.client.messages(session.id)).messages
            for watcher in (first, second):
                await watcher.until(
                    lambda watcher=watcher: (
                        [
                            (item["info"]["id"], [part["id"] for part in item["parts"]])
                            for item in watcher.state.messages(session.id)
                        ]
                        == [(item["info"]["id"], [part["id"] for part in item["parts"]]) for item in listed]
                    )
                )
            assert second.state.messages(session.id)[-1]["parts"] == listed[-1]["parts"]


async def test_a_prompt_while_busy_is_queued(server):
    async with watching(server) as w:
        session = await w.client.create_session(server.worktree("shared"), "queue")
        await w.client.prompt(session.id, "SLEEP 1\nSAY first")
        await w.status(session.id, "busy")
        await w.client.prompt(session.id, "SAY second")
        await w.status(session.id, "idle")
        assert await w.answer(session.id) == "second"


async def test_messages_come_in_pages(server):
    async with watching(server) as w:
        session = await w.client.create_session(server.worktree("shared"), "pages")
        for n in range(3):
            await w.turn(session.id, f"SAY {n}")
        everything = [item["info"]["id"] for item in (await w.client.messages(session.id)).messages]
        paged: list[str] = []
        before = None
        while True:
            page = await w.client.messages(session.id, 4, before)
            paged = [item["info"]["id"] for item in page.messages] + paged
            if page.next is None:
                break
            before = page.next
        assert paged == everything and len(everything) == 6
        by_id = await w.client.messages(session.id, 2, everything[3])
        assert [item["info"]["id"] for item in by_id.messages] == everything[1:3]
        for odd in ("msg_none", "junk"):
            with pytest.raises(errors.InvalidRequest):
                await w.client.messages(session.id, 2, odd)


async def test_a_fork_keeps_directory_and_loses_rules(server):
    async with watching(server) as w:
        rules = [{"permission": "bash", "pattern": "*", "action": "ask"}]
        session = await w.client.create_session(server.worktree("shared"), "origin", rules)
        await w.turn(session.id, "SAY one")
        await w.turn(session.id, "SAY two")
        messages = (await w.client.messages(session.id)).messages
        fork = await w.client.fork(session.id, messages[2]["info"]["id"])
        assert fork.directory == session.directory and fork.parent_id is None and fork.permission == []
        assert len((await w.client.messages(fork.id)).messages) == 2  # those before the named one
        assert (await w.client.set_permission(fork.id, rules)).permission == rules
        assert len((await w.client.messages((await w.client.fork(session.id)).id)).messages) == 4
        await w.until(lambda: fork.id in w.state.sessions)


async def test_a_model_error_is_told_and_over_with_the_next_turn(server):
    async with watching(server) as w:
        session = await w.client.create_session(server.worktree("shared"), "fail")
        await w.client.prompt(session.id, "FAIL 400")
        await w.status(session.id, "error")
        assert w.state.error(session.id).name == "APIError"
        await w.until(lambda: not w.state.settling(session.id))
        await w.client.prompt(session.id, "SAY fine")
        await w.status(session.id, "idle")
        assert w.state.error(session.id) is None and await w.answer(session.id) == "fine"


async def test_an_unknown_agent_or_model_is_told_by_an_error(server):
    async with watching(server) as w:
        session = await w.client.create_session(server.worktree("shared"), "unknown")
        await w.client.prompt(session.id, "x", agent="nobody")
        await w.status(session.id, "error")
        assert (
            "nobody" in w.state.error(session.id).message
            and "\n    at " not in w.state.error(session.id).message
        )
        await w.client.prompt(session.id, "x", model="no/model")
        await w.until(
            lambda: "no/model" in w.state.error(session.id).message if w.state.error(session.id) else False
        )


async def test_a_model_that_fails_for_now_is_tried_again(server):
    async with watching(server) as w:
        session = await w.client.create_session(server.worktree("shared"), "retry")
        await w.client.prompt(session.id, "FAIL 500")
        await w.until(lambda: w.state.retry(session.id))
        assert w.state.status(session.id) == "busy"
        await w.client.abort(session.id)
        await w.status(session.id, "idle")


def text_of_file(*path: str) -> str:
    return Path(*path).read_text()


async def test_shell_command_todos_summary(server):
    async with watching(server) as w:
        session = await w.client.create_session(server.worktree("shared"), "work")
        await w.client.shell(session.id, "pwd > where.txt")
        assert text_of_file(session.directory, "where.txt").strip() == session.directory
        running = asyncio.ensure_future(w.client.shell(session.id, "sleep 2"))
        while session.id not in await w.client.statuses(session.directory):
            assert not running.done()
        with pytest.raises(errors.SessionBusy):
            await w.client.shell(session.id, "true")
        await running
        with pytest.raises(errors.NotFound):
            await w.client.command(session.id, "no-such-command")
        todos = [{"content": "a", "status": "pending", "priority": "high"}]
        await w.turn(session.id, "TOOL todowrite " + json.dumps({"todos": todos}))
        assert await w.client.todos(session.id) == todos
        await w.client.summarize(session.id, "scripted/script")
        await w.client.prompt(session.id, "SAY read", files=[str(Path(session.directory, "where.txt"))])
        await w.until(
            lambda: (
                "file" in [part["type"] for item in w.state.messages(session.id) for part in item["parts"]]
            )
        )
        await w.status(session.id, "idle")


async def test_a_wrong_directory_is_taken_so_the_record_must_be_compared(server, tmp_path):
    client = OpenCodeClient(server.url, "pw")
    session = await client.create_session(str(tmp_path / "nowhere"), "wrong")
    assert session.project_id == "global"
    await client.delete_session(session.id)
    with pytest.raises(errors.NoSuchSession):
        await client.session(session.id)
    await client.aclose()


# --- asks ------------------------------------------------------------------------------------


@pytest.mark.parametrize("reply", ["once", "always", "reject"])
async def test_the_ask_of_a_worktree_session_arrives_and_is_answered(server, reply):
    async with watching(server) as w:
        session = await w.client.create_session(server.worktree(f"ask-{reply}"), "ask")
        await w.client.prompt(session.id, "READ /etc/hosts")
        ask = await w.ask(session.id)
        assert (ask.permission, ask.patterns, ask.always) == ("external_directory", ("/etc/*",), ("/etc/*",))
        assert ask.directory == session.directory and abs(ask.created - time.time() * 1000) < 60_000
        assert [item["id"] for item in await w.client.permissions(session.directory)] == [ask.id]
        await w.client.reply_permission(session.id, ask.id, ask.directory, reply)
        await w.status(session.id, "idle")
        assert any(isinstance(c, AskResolved) and c.id == ask.id and c.reply == reply for c in w.told)
        with pytest.raises(errors.NotFound):
            await w.client.reply_permission(session.id, ask.id, ask.directory, reply)
        asked = sum(isinstance(change, AskCreated) for change in w.told)
        await w.client.prompt(session.id, "READ /etc/hosts")
        await w.until(lambda: w.state.status(session.id) in ("busy", "needs_you"))
        await w.until(lambda: w.state.status(session.id) != "busy")
        assert sum(isinstance(change, AskCreated) for change in w.told) == asked + (reply != "always")
        if w.state.pending(session.id):
            await w.client.reply_permission(
                session.id, w.state.pending(session.id)[0].id, ask.directory, "reject"
            )


async def test_a_rejection_with_a_reason_lets_the_turn_go_on(server):
    async with watching(server) as w:
        session = await w.client.create_session(server.worktree("shared"), "reason")
        await w.client.prompt(session.id, "READ /etc/hosts")
        ask = await w.ask(session.id)
        await w.client.reply_permission(session.id, ask.id, ask.directory, "reject", "rather not")
        await w.status(session.id, "idle")
        assert "rather not" in await w.answer(session.id)


async def test_a_question_is_answered_or_rejected(server):
    questions = [
        {
            "question": "Which?",
            "header": "W",
            "options": [{"label": "A", "description": "a"}, {"label": "B", "description": "b"}],
        }
    ]
    async with watching(server) as w:
        session = await w.client.create_session(server.worktree("shared"), "question")
        await w.client.prompt(session.id, "TOOL question " + json.dumps({"questions": questions}))
        ask = await w.ask(session.id)
        assert ask.kind == "question" and ask.questions[0]["question"] == "Which?"
        await w.client.reply_question(ask.id, ask.directory, [["B"]])
        await w.status(session.id, "idle")
        assert '"Which?"="B"' in await w.answer(session.id)
        with pytest.raises(errors.NotFound):
            await w.client.reply_question(ask.id, ask.directory, [["B"]])
        await w.client.prompt(session.id, "TOOL question " + json.dumps({"questions": questions}))
        ask = await w.ask(session.id)
        await w.client.reject_question(ask.id, ask.directory)
        await w.status(session.id, "idle")
        assert w.told and AskResolved(ask.id, session.id, session.id, "reject") in w.told


async def test_a_subagent_asks_at_its_top_ancestor(server):
    async with watching(server) as w:
        session = await w.client.create_session(server.worktree("shared"), "sub")
        task = {"description": "d", "prompt": "READ /etc/hosts", "subagent_type": "general"}
        await w.client.prompt(session.id, "TOOL task " + json.dumps(task))
        ask = await w.ask(session.id)
        assert ask.session_id != session.id and w.state.top(ask.session_id) == session.id
        assert [child.id for child in await w.client.children(session.id)] == [ask.session_id]
        await w.client.reply_permission(ask.session_id, ask.id, ask.directory, "once")
        await w.status(session.id, "idle")
        await w.client.delete_session(session.id)
        await w.until(lambda: not {session.id, ask.session_id} & set(w.state.sessions))  # children go too


async def test_abort_ends_the_asking_and_then_delete_is_clean(server):
    async with watching(server) as w:
        session = await w.client.create_session(server.worktree("shared"), "abort")
        await w.client.prompt(session.id, "READ /etc/hosts")
        ask = await w.ask(session.id)
        await w.client.abort(session.id)
        await w.status(session.id, "idle")
        assert AskResolved(ask.id, session.id, session.id, None) in w.told
        await w._refetch()  # OpenCode lists it still
        assert not w.state.pending(session.id)
        await w.client.prompt(session.id, "RUN bash: sleep 30")
        await w.status(session.id, "busy")
        await w.client.abort(session.id)
        await w.status(session.id, "idle")
        await w.client.delete_session(session.id)
        assert session.id not in await w.client.statuses(session.directory)
        await w.until(lambda: session.id not in w.state.sessions)


async def test_a_session_that_was_deleted_while_it_ran_is_gone_for_us(server):
    async with watching(server) as w:
        session = await w.client.create_session(server.worktree("shared"), "ghost")
        await w.client.prompt(session.id, "READ /etc/hosts")
        await w.ask(session.id)
        await w.client.delete_session(session.id)
        await w.until(lambda: session.id not in w.state.sessions)
        await w._refetch()
        assert not w.state.pending(session.id) and session.id not in w.state.busy()
    async with watching(server) as fresh:
        fresh.state.directories[session.directory] = time.time()
        await fresh._refetch()
        assert session.id not in fresh.state.busy() and not fresh.state.asks


# --- contexts and the end of a process -------------------------------------------------------


async def test_a_disposed_directory_is_told(server):
    async with watching(server) as w:
        directory = server.worktree("dispose")
        await w.client.create_session(directory, "dispose")
        await w.until(lambda: directory in w.state.directories)
        await w.client.dispose(directory)
        await w.until(lambda: DirectoryFreed(directory) in w.told)
        assert directory not in w.state.directories


async def test_a_killed_process_is_noticed_and_its_turns_are_interrupted(
    opencode_binary, scripted_model, tmp_path
):
    server = start(opencode_binary, tmp_path / "own", scripted_model.url)
    try:
        async with watching(server) as w:
            session = await w.client.create_session(server.worktree("killed"), "killed")
            await w.client.prompt(session.id, "SLEEP 30\nSAY never")
            await w.status(session.id, "busy")
            server.stop()
            await w.until(lambda: any(isinstance(reason, ConnectionRefused) for reason in w.lost))
            with pytest.raises(ConnectionRefused):
                await w.client.health()
            assert StatusChanged(session.id, session.directory, "error") in w.state.process_died()
    finally:
        server.stop()


async def test_without_its_password_a_server_says_so(server):
    client = OpenCodeClient(server.url)
    with pytest.raises(errors.OpenCodeNeedsPassword):
        await client.health()
    await client.aclose()


# --- warm-up ---------------------------------------------------------------------------------


def traces(directory: str) -> tuple[str, str, list[str]]:
    """What git sees of a worktree, and what is on disk."""
    files = sorted(str(path.relative_to(directory)) for path in Path(directory).rglob("*"))
    return git(directory, "status", "--porcelain", "--ignored"), git(directory, "stash", "list"), files


async def test_a_warm_up_leaves_nothing_behind(server):
    directory = server.worktree("warm")
    async with watching(server) as w:
        before, sessions = traces(directory), {s.id for s in await w.client.sessions(directory)}
        await warmup.warm(w.client, directory)
        assert traces(directory) == before
        assert {session.id for session in await w.client.sessions(directory)} == sessions
        assert await w.client.statuses(directory) == {}
        session = await w.client.create_session(directory, "after")
        await w.until(lambda: session.id in w.state.sessions)
        told = [
            change
            for change in w.told
            if isinstance(change, (SessionUpdated, MessageUpdated, MessagesMissed))
        ]
        assert {change.session_id for change in told} <= {*sessions, session.id}
        await w.turn(session.id, "RUN bash: pwd")
        assert (await w.answer(session.id)).strip().endswith(directory)


@pytest.mark.parametrize("after", [0.0, 0.1, 0.4, 0.8])
async def test_a_cancelled_warm_up_leaves_nothing_behind(server, after):
    directory = server.worktree(f"cancel{after}")
    client = OpenCodeClient(server.url, "pw")
    before = traces(directory)
    warming = asyncio.ensure_future(warmup.warm(client, directory))
    await asyncio.sleep(after)
    warming.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await warming
    assert WARM_UP_TITLE not in {session.title for session in await client.sessions(directory)}
    assert traces(directory) == before
    await client.aclose()


async def test_a_warm_up_that_was_killed_is_swept(server):
    directory = server.worktree("sweep")
    client = OpenCodeClient(server.url, "pw")
    stale = await client.create_session(directory, WARM_UP_TITLE)
    kept = await client.create_session(directory, "kept")
    assert await warmup.sweep(client, await client.sessions(directory)) == 1
    left = {session.id for session in await client.sessions(directory)}
    assert kept.id in left and stale.id not in left
    await client.aclose()


async def test_rg_is_there_for_the_tools():
    assert shutil.which("rg"), "OpenCode's grep and glob need ripgrep on PATH"
