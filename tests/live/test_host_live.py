"""The main job on the real thing: one OpenCode, sessions in their own worktrees, asks, removal."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from ocman_jupyter.errors import (
    DirectoryMissing,
    InvalidBranch,
    LaunchFailed,
    NoSuchWorktree,
    NotARepository,
    NotFound,
    OpenCodeError,
    OpenCodeUnreachable,
    SessionDirectoryMismatch,
    WouldLoseWork,
)
from ocman_jupyter.hosts.host import (
    PromptRequest,
    RemoveRequest,
    ReplyRequest,
    SessionRequest,
    Subscription,
    WorktreeRequest,
)
from ocman_jupyter.opencode.client import OpenCodeClient, Unsure
from tests.live.waiting import answer_of, eventually, opencodes

pytestmark = [pytest.mark.live, pytest.mark.timeout(240)]


def want(repository: Path, branch: str, **more: Any) -> WorktreeRequest:
    return WorktreeRequest(directory=str(repository), branch=branch, **more)


async def test_a_worktree_session_works_in_its_own_worktree(
    repository: Callable[..., Path], opencode_binary: Path, running_host: Any, tmp_path: Path
) -> None:
    """Hazards 8, 20, 33, 43, 63; the same name again is the same work."""
    root = repository()
    async with running_host(opencode_binary, root) as host:
        made = await host.worktrees.create(want(root, "fix-loader", prompt="RUN bash: pwd"))
        assert made.worktree_path == str(root.parent / ".worktrees" / "project" / "fix-loader")
        assert (made.reused, made.prompt_sent, made.session_reused) == (False, True, False)
        assert made.session is not None and made.session.directory == made.worktree_path
        assert made.session.status in ("busy", "idle")
        assert made.worktree_path in await answer_of(host, made.session_id)

        again = await host.worktrees.create(want(root, "fix-loader", prompt="RUN bash: pwd"))
        assert (again.reused, again.session_reused, again.prompt_sent) == (True, True, False)
        assert again.session_id == made.session_id

        # From inside a worktree: the same repository, no nesting, no second process.
        inner = await host.worktrees.create(want(Path(made.worktree_path), "second", session="new"))
        assert inner.worktree_path == str(root.parent / ".worktrees" / "project" / "second")
        assert inner.repo_root == str(root)
        assert len(opencodes(tmp_path)) == 1

        listed = await host.worktrees.list(str(root))
        assert {w.name: len(w.sessions) for w in listed.worktrees} == {"project": 0, "fix-loader": 1, "second": 1}
        assert listed.sessions_elsewhere == []


async def test_two_callers_of_one_name_make_one_worktree_and_one_session(
    repository: Callable[..., Path], opencode_binary: Path, running_host: Any
) -> None:
    root = repository()
    async with running_host(opencode_binary, root) as host:
        answers = await asyncio.gather(*(host.worktrees.create(want(root, "same")) for _ in range(4)))
        assert sorted(a.reused for a in answers) == [False, True, True, True]
        assert len({a.session_id for a in answers}) == 1
        ids = await asyncio.gather(*(
            host.worktrees.create(want(root, "other", session="new", request_id="once")) for _ in range(3)
        ))
        assert len({a.session_id for a in ids}) == 1


async def test_killed_opencode_is_healed_and_the_prompt_is_not_lost(
    repository: Callable[..., Path], opencode_binary: Path, running_host: Any, tmp_path: Path
) -> None:
    """Hazards 6, 60."""
    root = repository()
    async with running_host(opencode_binary, root) as host:
        made = await host.worktrees.create(want(root, "heal", prompt="SLEEP 60"))
        await eventually(lambda: _status(host, made.session_id, "busy"))
        (instance,) = await host.instances.list()
        os.kill(instance.pid, signal.SIGKILL)
        await host.sessions.prompt(made.session_id, PromptRequest(text="RUN bash: pwd"))
        assert made.worktree_path in await answer_of(host, made.session_id)
        (healed,) = await host.instances.list()
        assert healed.pid != instance.pid
        assert opencodes(tmp_path) == [healed.pid]


async def _status(host: Any, session_id: str, status: str) -> bool:
    return (await host.sessions.get(session_id)).status == status


async def test_outside_asks_and_the_own_tree_does_not(
    repository: Callable[..., Path], opencode_binary: Path, running_host: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user's own rule still holds; another repository's worktrees ask; hazards 48, 49, 50."""
    monkeypatch.setenv("OPENCODE_PERMISSION", json.dumps({"bash": {"rm *": "deny"}}))
    root, other = repository(), repository("other")
    foreign = other.parent / ".worktrees" / "other" / "theirs"
    foreign.mkdir(parents=True)
    (foreign / "secret.txt").write_text("theirs\n")
    async with running_host(opencode_binary, root) as host:
        made = await host.worktrees.create(want(root, "ask", prompt="WRITE notes.txt: mine\nREAD notes.txt"))
        assert (await host.instances.ensure(str(root))).permission_seeded
        await answer_of(host, made.session_id)
        assert (Path(made.worktree_path) / "notes.txt").read_text() == "mine"

        for script in (f"READ {foreign / 'secret.txt'}", f"READ {root / 'README.md'}"):
            await host.sessions.prompt(made.session_id, PromptRequest(text=script))
            (ask,) = await eventually(host.asks.list)
            assert (ask.kind, ask.permission, ask.session_id) == ("permission", "external_directory", made.session_id)
            assert (await host.sessions.get(made.session_id)).status == "needs_you"
            assert ask.always and ask.title == "ask"
            await host.asks.reply(ask.id, ReplyRequest(reply="once"))
            with pytest.raises(NotFound):
                await host.asks.reply(ask.id, ReplyRequest(reply="once"))
            await eventually(lambda: _status(host, made.session_id, "idle"))
            assert await host.asks.list() == []

        await host.sessions.prompt(made.session_id, PromptRequest(text="RUN bash: rm -f notes.txt"))
        await eventually(lambda: _quiet(host, made.session_id))
        assert (Path(made.worktree_path) / "notes.txt").exists()


async def _quiet(host: Any, session_id: str) -> bool:
    return (await host.sessions.get(session_id)).status in ("idle", "error")


@pytest.mark.parametrize("password", [None, "sesame"])
async def test_a_user_launched_opencode_is_used_not_replaced(
    repository: Callable[..., Path],
    opencode_binary: Path,
    running_host: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    password: str | None,
) -> None:
    """Unseeded it behaves the same; it is never stopped by us."""
    root = repository()
    if password:
        monkeypatch.setenv("OPENCODE_SERVER_PASSWORD", password)
    log = open(tmp_path / "user.log", "wb")  # noqa: SIM115
    user = subprocess.Popen([opencode_binary, "serve", "--port", "0"], cwd=root, stdout=log, stderr=log)
    try:
        await eventually(lambda: asyncio.to_thread(_listening, tmp_path / "user.log"))
        async with running_host(opencode_binary) as host:
            made = await host.worktrees.create(want(root, "guest", prompt="RUN bash: pwd"))
            assert "instance_not_seeded" in [w.code for w in made.warnings]
            assert made.worktree_path in await answer_of(host, made.session_id)
            sibling = await host.worktrees.create(want(root, "sibling", session="none"))
            script = f"READ {sibling.worktree_path}/README.md"
            await host.sessions.prompt(made.session_id, PromptRequest(text=script))
            assert "project" in await answer_of(host, made.session_id)
            assert await host.asks.list() == []
            info = await host.instances.ensure(str(root))
            assert (info.owner, info.launched, info.permission_seeded, info.pid) == ("user", False, False, user.pid)
        assert user.poll() is None
        assert opencodes(tmp_path) == [user.pid]
    finally:
        user.kill()
        user.wait(30)
        log.close()


def _listening(log: Path) -> bool:
    return b"listening on" in log.read_bytes()


async def test_what_is_invalid_launches_nothing_and_leaves_nothing(
    repository: Callable[..., Path], opencode_binary: Path, running_host: Any, tmp_path: Path
) -> None:
    """Hazard 7."""
    root = repository()
    async with running_host(opencode_binary, root) as host:
        with pytest.raises(InvalidBranch):
            await host.worktrees.create(want(root, "-x"))
        with pytest.raises(NotARepository):
            await host.worktrees.create(want(tmp_path, "fine"))
        assert await host.instances.list() == []
        assert not (root.parent / ".worktrees").exists()


async def test_an_opencode_that_fails_at_once_says_why_and_leaves_no_worktree(
    repository: Callable[..., Path], running_host: Any, tmp_path: Path, git: Callable[..., str]
) -> None:
    """Hazards 13, 32."""
    root = repository()
    broken = tmp_path / "opencode"
    broken.write_text("#!/bin/sh\necho 'no license found' >&2\nexit 7\n")
    broken.chmod(0o755)
    async with running_host(broken, root) as host:
        with pytest.raises(LaunchFailed) as caught:
            await host.worktrees.create(want(root, "fails"))
    assert "no license found" in json.dumps(caught.value.to_json())
    assert git(root, "branch", "--list", "fails") == ""
    assert not (root.parent / ".worktrees" / "project" / "fails").exists()


async def test_a_session_that_lands_elsewhere_is_deleted_and_the_worktree_taken_back(
    repository: Callable[..., Path], opencode_binary: Path, running_host: Any, git: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root = repository()
    async with running_host(opencode_binary, root) as host:
        await host.instances.ensure(str(root))
        create, deleted = OpenCodeClient.create_session, []
        delete = OpenCodeClient.delete_session

        async def elsewhere(self: Any, directory: str, *rest: Any, **more: Any) -> Any:
            return await create(self, str(root), *rest, **more)

        async def noted(self: Any, session_id: str) -> None:
            deleted.append(session_id)
            await delete(self, session_id)

        monkeypatch.setattr(OpenCodeClient, "create_session", elsewhere)
        monkeypatch.setattr(OpenCodeClient, "delete_session", noted)
        with pytest.raises(SessionDirectoryMismatch):
            await host.worktrees.create(want(root, "lost"))
        assert len(deleted) == 1
        assert git(root, "branch", "--list", "lost") == ""
        assert not (root.parent / ".worktrees" / "project" / "lost").exists()


@pytest.mark.parametrize("made_again", [False, True])
async def test_a_session_that_a_stopped_opencode_makes_later_is_deleted(
    repository: Callable[..., Path], opencode_binary: Path, running_host: Any, git: Callable[..., str], made_again: bool
) -> None:
    """Its create gave up and took the worktree back: nobody was told of it, and nobody could use it."""
    root = repository()
    place = root.parent / ".worktrees" / "project" / "late"
    # tmux would let it go on at once.
    async with running_host(opencode_binary, root, launcher="process", request_timeout=3.0) as host:
        kept = await host.sessions.create(SessionRequest(directory=str(root)))
        pid = (await host.instances.ensure(str(root))).pid
        async with host.events.subscribe() as (_, events):
            os.kill(pid, signal.SIGSTOP)
            try:
                with pytest.raises(OpenCodeUnreachable):
                    await host.worktrees.create(want(root, "late"))
                assert not place.exists() and git(root, "branch", "--list", "late") == ""
                if made_again:
                    await host.worktrees.create(want(root, "late", session="none"))
            finally:
                os.kill(pid, signal.SIGCONT)
            mine = []
            if made_again:
                # In a worktree that is there it stays, and the next try takes it up.
                late = await eventually(lambda: told(events, "session.updated", place))
                mine = [(await host.worktrees.create(want(root, "late", session="new"))).session_id]
                assert mine == [late["id"]]
            else:
                removed = await eventually(lambda: told(events, "session.removed", place))
                assert removed["id"] != kept.id
        listed = await host.sessions.list(str(root))
        assert sorted(s.id for s in listed.sessions) == sorted([kept.id, *mine])


async def told(events: Subscription, kind: str, directory: Path) -> dict[str, Any] | None:
    """The first event of this kind about a session in a directory, if it is among the next ones."""
    for event in await asyncio.wait_for(events.next(), 60):
        if event.type == kind and event.data["directory"] == str(directory):
            return event.data
    return None


async def test_a_prompt_whose_answer_was_lost_keeps_its_session_and_worktree(
    repository: Callable[..., Path], opencode_binary: Path, running_host: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have arrived: then the agent works there, and the next call finds its work."""
    root = repository()
    async with running_host(opencode_binary, root) as host:
        send = OpenCodeClient.prompt

        async def lose(self: Any, *words: Any, **more: Any) -> None:
            monkeypatch.setattr(OpenCodeClient, "prompt", send)
            await send(self, *words, **more)
            raise Unsure("no answer in time")

        monkeypatch.setattr(OpenCodeClient, "prompt", lose)
        with pytest.raises(OpenCodeUnreachable):
            await host.worktrees.create(want(root, "lost", prompt="RUN bash: pwd"))
        (session,) = (await host.sessions.list(str(root))).sessions
        assert Path(session.directory, "README.md").exists()
        assert session.directory in await answer_of(host, session.id)
        again = await host.worktrees.create(want(root, "lost", prompt="RUN bash: pwd"))
        assert (again.session_id, again.reused, again.session_reused) == (session.id, True, True)


async def test_a_session_whose_answer_was_lost_is_taken_up_by_the_next_try(
    repository: Callable[..., Path], opencode_binary: Path, running_host: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = repository()
    async with running_host(opencode_binary, root) as host:
        place = Path((await host.worktrees.create(want(root, "lost", session="none"))).worktree_path)
        make, made = OpenCodeClient.create_session, []

        async def lose(self: Any, *words: Any, **more: Any) -> Any:
            monkeypatch.setattr(OpenCodeClient, "create_session", make)
            made.append((await make(self, *words, **more)).id)
            raise Unsure("no answer in time")

        monkeypatch.setattr(OpenCodeClient, "create_session", lose)
        request = want(root, "lost", prompt="RUN bash: pwd", session="new", request_id="once")
        with pytest.raises(OpenCodeUnreachable):
            await host.worktrees.create(request)

        async def seen() -> bool:
            return made[0] in [s.id for s in (await host.sessions.list(str(root))).sessions]

        await eventually(seen)
        again = await host.worktrees.create(request)
        assert [again.session_id] == made and again.prompt_sent
        assert str(place) in await answer_of(host, made[0])
        other = await host.worktrees.create(want(root, "lost", session="new"))
        empty = await host.worktrees.create(want(root, "lost", session="new", title=other.session.title))
        assert len({again.session_id, other.session_id, empty.session_id}) == 3, "what somebody was told of is theirs"


async def test_prompt_to_a_worktree_that_is_gone_is_refused(
    repository: Callable[..., Path], opencode_binary: Path, running_host: Any
) -> None:
    """Hazards 21, 47: OpenCode would make the directory again, outside of git."""
    root = repository()
    async with running_host(opencode_binary, root) as host:
        made = await host.worktrees.create(want(root, "gone"))
        shutil.rmtree(made.worktree_path)
        with pytest.raises(DirectoryMissing):
            await host.sessions.prompt(made.session_id, PromptRequest(text="WRITE a.txt: x"))
        assert not Path(made.worktree_path).exists()
        assert (await host.sessions.get(made.session_id)).status == "directory_missing"
        listed = await host.worktrees.list(str(root))
        (missing,) = [w for w in listed.worktrees if w.name == "gone"]
        assert (missing.state, [s.id for s in missing.sessions]) == ("missing", [made.session_id])
        back = await host.worktrees.create(want(root, "gone"))
        assert "recreated" in [w.code for w in back.warnings]
        assert back.session_id == made.session_id


async def test_removal_asks_for_each_loss_and_a_busy_session_is_one(
    repository: Callable[..., Path], opencode_binary: Path, running_host: Any, git: Callable[..., str]
) -> None:
    """Hazards 28, 29, 59."""
    root = repository(files={".gitignore": "out/\n", "a.py": "x = 1\n"})
    async with running_host(opencode_binary, root) as host:
        made = await host.worktrees.create(want(root, "drop", prompt="RUN bash: sleep 100"))
        path = Path(made.worktree_path)
        (path / "out").mkdir()
        (path / "out" / "model.bin").write_bytes(b"1" * 1000)
        await eventually(lambda: _running_tool(path))
        removal = await host.worktrees.removal(str(path))
        assert not removal.safe
        assert {r.code for r in removal.reasons} >= {"ignored", "busy_session"}
        with pytest.raises(WouldLoseWork) as caught:
            await host.worktrees.remove(RemoveRequest(path=str(path), accept=["ignored"]))
        assert "busy_session" in [r["code"] for r in caught.value.details["reasons"]]
        assert (path / "out" / "model.bin").exists()
        accept = ["ignored", "busy_session", "process"]
        removed = await host.worktrees.remove(RemoveRequest(path=str(path), accept=accept, delete_branch=True))
        assert removed.branch_deleted
        assert not path.exists()
        assert git(root, "branch", "--list", "drop") == ""
        assert (await host.sessions.get(made.session_id)).status == "directory_missing"


async def _running_tool(path: Path) -> bool:
    def look() -> bool:
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                if process.name() == "sleep" and Path(process.cwd()) == path:
                    return True
        return False

    return await asyncio.to_thread(look)


async def test_a_path_that_is_used_again_gets_a_new_context(
    repository: Callable[..., Path], opencode_binary: Path, running_host: Any, git: Callable[..., str]
) -> None:
    """OpenCode keeps the configuration that it saw: never asked before the checkout is complete, freed after."""
    # OpenCode writes the $schema into a configuration that has none.
    config = {"$schema": "https://opencode.ai/config.json"}
    root = repository(files={"opencode.json": json.dumps({**config, "username": "first"}), "a.py": ""})
    async with running_host(opencode_binary, root) as host:
        made = await host.worktrees.create(want(root, "again"))
        assert await _username(host, made.worktree_path) == "first"
        await host.worktrees.remove(RemoveRequest(path=made.worktree_path, delete_branch=True))
        (root / "opencode.json").write_text(json.dumps({**config, "username": "second"}))
        git(root, "commit", "--quiet", "--all", "--message", "second")
        made = await host.worktrees.create(want(root, "again"))
        assert not made.session_reused
        assert await _username(host, made.worktree_path) == "second"


async def _username(host: Any, directory: str) -> str:
    """The user name of the configuration that OpenCode holds for a directory."""
    (feed,) = host.sessions._feeds.all()
    return (await feed.client.config(directory))["username"]


async def test_warm_up_leaves_no_session_and_idle_contexts_are_freed(
    repository: Callable[..., Path], opencode_binary: Path, running_host: Any, git: Callable[..., str]
) -> None:
    root = repository()
    async with running_host(opencode_binary, root) as host:
        async with host.events.subscribe() as (_, subscription):
            subscription.follow(None)
            made = await host.worktrees.create(want(root, "warm"))
            warming = host.worktrees._warming
            await eventually(lambda: _done(warming))
            told = json.dumps([e.model_dump() for e in await asyncio.wait_for(subscription.next(), 30)])
            assert made.session_id in told
            assert "warm-up" not in told.lower()
        assert [s.id for s in (await host.sessions.list(str(root))).sessions] == [made.session_id]
        assert git(Path(made.worktree_path), "status", "--porcelain") == ""
        parts, feeds = host.sessions._parts, host.sessions._feeds
        parts.settings.idle_dispose_after = 1e-3
        (feed,) = feeds.all()

        async def freed() -> bool:
            await feeds.dispose_idle()
            return made.worktree_path not in feed.directories()

        await eventually(freed)
        # It is still there for who comes back.
        await host.sessions.prompt(made.session_id, PromptRequest(text="RUN bash: pwd"))
        assert made.worktree_path in await answer_of(host, made.session_id)


async def _done(warming: Any) -> bool:
    return not warming._running


async def test_a_restarted_host_adopts_and_does_not_launch(
    repository: Callable[..., Path], opencode_binary: Path, running_host: Any, tmp_path: Path
) -> None:
    """Hazards 19, 48: what asked while nobody listened still asks."""
    root = repository()
    async with running_host(opencode_binary) as host:
        made = await host.worktrees.create(want(root, "stay", prompt="READ /etc/hosts"))
        first = await host.instances.ensure(str(root))
        await eventually(host.asks.list)
    async with running_host(opencode_binary, root) as host:
        info = await host.instances.ensure(str(root))
        assert (info.pid, info.launched) == (first.pid, False)
        (ask,) = await host.asks.list()
        assert ask.session_id == made.session_id
        await host.asks.reply(ask.id, ReplyRequest(reply="reject"))
        await eventually(lambda: _quiet(host, made.session_id))


async def test_fork_keeps_directory_and_rules_and_delete_ends_a_busy_session(
    repository: Callable[..., Path], opencode_binary: Path, running_host: Any
) -> None:
    """Hazards 59, 61."""
    root = repository()
    async with running_host(opencode_binary, root) as host:
        made = await host.worktrees.create(want(root, "origin", prompt="RUN bash: pwd"))
        await answer_of(host, made.session_id)
        fork = await host.sessions.fork(made.session_id)
        assert fork.directory == made.worktree_path
        (feed,) = host.sessions._feeds.all()
        rules = (await feed.client.session(fork.id)).permission
        assert rules == (await feed.client.session(made.session_id)).permission != []
        await host.sessions.prompt(fork.id, PromptRequest(text="RUN bash: sleep 100"))
        await eventually(lambda: _running_tool(Path(made.worktree_path)))
        await host.sessions.delete(fork.id)
        assert fork.id not in [s.id for s in (await host.sessions.list(str(root))).sessions]
        assert fork.id not in await feed.client.statuses(made.worktree_path)


async def test_a_session_in_a_subfolder_of_the_main_checkout(
    repository: Callable[..., Path], opencode_binary: Path, running_host: Any
) -> None:
    root = repository(files={"src/a.py": "", "b.py": ""})
    async with running_host(opencode_binary, root) as host:
        link = root.parent / "link"
        link.symlink_to(root / "src")
        session = await host.sessions.create(SessionRequest(directory=str(link), prompt="RUN bash: pwd"))
        assert session.directory == str(root / "src")
        assert str(root / "src") in await answer_of(host, session.id)
        listed = await host.worktrees.list(str(root))
        assert [s.id for s in listed.worktrees[0].sessions] == [session.id]


ASK_ONCE = """
import asyncio, json, sys
from ocman_jupyter.hosts.local import local_host
from ocman_jupyter.settings import OcmanSettings
async def main():
    host = local_host(OcmanSettings(opencode_command=sys.argv[1]))
    try:
        print((await host.instances.ensure(sys.argv[2])).model_dump_json())
    finally:
        await host.close()
asyncio.run(main())
"""


async def test_ten_processes_at_once_get_one_opencode(
    repository: Callable[..., Path], opencode_binary: Path, running_host: Any, tmp_path: Path, git: Callable[..., str]
) -> None:
    root = repository(files={"src/deep/a.py": "", "b.py": ""})
    linked = tmp_path / "elsewhere" / "tree"
    git(root, "worktree", "add", "--quiet", "--detach", str(linked))
    (tmp_path / "link").symlink_to(root)
    places = [root, root / "src" / "deep", linked, linked / "src", tmp_path / "link"] * 2
    async with running_host(opencode_binary, root) as host:
        asked = [
            await asyncio.create_subprocess_exec(
                sys.executable, "-c", ASK_ONCE, str(opencode_binary), str(place), stdout=asyncio.subprocess.PIPE
            )
            for place in places
        ]
        answers = [json.loads((await process.communicate())[0]) for process in asked]
        assert len({a["pid"] for a in answers}) == 1
        assert {a["repo_root"] for a in answers} == {str(root)}
        assert [a["launched"] for a in answers].count(True) == 1
        assert len(opencodes(tmp_path)) == 1
        info = await host.instances.ensure(str(root))
        assert info.pid == answers[0]["pid"]


@pytest.mark.parametrize("delay", [0, 0.002, 0.03])
async def test_an_opencode_killed_right_before_a_create_or_in_it_is_launched_again(
    repository: Callable[..., Path], opencode_binary: Path, running_host: Any, delay: float
) -> None:
    root = repository()
    async with running_host(opencode_binary, root) as host:
        await host.worktrees.create(want(root, "first"))
        before = await host.instances.ensure(str(root))
        if delay < 0.01:
            os.kill(before.pid, signal.SIGKILL)
            await asyncio.sleep(delay)
            made = await host.worktrees.create(want(root, "second"))
        else:
            creating = asyncio.ensure_future(host.worktrees.create(want(root, "second")))
            await asyncio.sleep(delay)
            os.kill(before.pid, signal.SIGKILL)
            made = await creating
        assert made.session_id and Path(made.worktree_path).is_dir()
        assert (await host.instances.ensure(str(root))).pid != before.pid


async def test_a_worktree_replaced_by_a_link_or_a_clone_gets_no_work(
    repository: Callable[..., Path], opencode_binary: Path, running_host: Any, git: Callable[..., str]
) -> None:
    """The agent would work in the main checkout, or in another repository."""
    root = repository()
    async with running_host(opencode_binary, root) as host:
        made = await host.worktrees.create(want(root, "moved"))
        path = Path(made.worktree_path)
        await host.worktrees.remove(RemoveRequest(path=str(path)))
        for replace in (
            lambda: path.symlink_to(root),
            lambda: git(root.parent, "clone", "--quiet", str(root), str(path)),
        ):
            replace()
            with pytest.raises(DirectoryMissing):
                await host.sessions.prompt(made.session_id, PromptRequest(text="RUN bash: touch landed"))
            path.unlink() if path.is_symlink() else shutil.rmtree(path)
        path.symlink_to(root)
        assert (await host.sessions.get(made.session_id)).status == "directory_missing"
        assert not (root / "landed").exists()


async def test_a_prompt_that_could_not_be_sent_is_sent_the_next_time(
    repository: Callable[..., Path], opencode_binary: Path, running_host: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hazard 6: and no session without work is left behind."""
    root = repository()
    async with running_host(opencode_binary, root) as host:
        made = await host.worktrees.create(want(root, "again", session="none"))
        send = OpenCodeClient.prompt

        async def refuse(self: Any, *words: Any, **more: Any) -> None:
            monkeypatch.setattr(OpenCodeClient, "prompt", send)
            raise OpenCodeError("not now")

        monkeypatch.setattr(OpenCodeClient, "prompt", refuse)
        with pytest.raises(OpenCodeError):
            await host.worktrees.create(want(root, "again", prompt="RUN bash: pwd"))
        assert (await host.sessions.list(str(root))).sessions == []
        second = await host.worktrees.create(want(root, "again", prompt="RUN bash: pwd"))
        assert (second.prompt_sent, second.session_reused) == (True, False)
        assert made.worktree_path in await answer_of(host, second.session_id)


async def test_create_and_remove_at_once_never_throw_accepted_work_away(
    repository: Callable[..., Path], opencode_binary: Path, running_host: Any
) -> None:
    root = repository()
    async with running_host(opencode_binary, root) as host:
        for number in range(4):
            made = await host.worktrees.create(want(root, f"race{number}"))
            request = RemoveRequest(path=made.worktree_path)
            created, *removed = await asyncio.gather(
                host.worktrees.create(want(root, f"race{number}", prompt="SLEEP 30")),
                host.worktrees.remove(request), host.worktrees.remove(request),
                return_exceptions=True,
            )  # fmt: skip
            assert not isinstance(created, BaseException), created
            assert created.prompt_sent and Path(created.worktree_path, "README.md").exists()
            for outcome in removed:
                if isinstance(outcome, BaseException):
                    assert isinstance(outcome, (WouldLoseWork, NoSuchWorktree)), repr(outcome)
            await host.sessions.abort(created.session_id)


async def test_a_turn_that_fails_says_why(
    repository: Callable[..., Path], opencode_binary: Path, running_host: Any
) -> None:
    root = repository()
    async with running_host(opencode_binary, root) as host:
        made = await host.worktrees.create(want(root, "fails", prompt="SAY hi", model="no/such"))
        await eventually(lambda: _status(host, made.session_id, "error"))
        assert (await host.sessions.get(made.session_id)).error
        # A prompt right after a failed turn is not swallowed.
        await host.sessions.prompt(made.session_id, PromptRequest(text="RUN bash: pwd", model="scripted/script"))
        assert made.worktree_path in await answer_of(host, made.session_id)
        assert (await host.sessions.get(made.session_id)).error is None
