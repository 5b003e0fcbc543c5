"""What a page asks about a session, with the real OpenCode: choices, files, what differs."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ocman_jupyter.errors import DirectoryMissing, NoSuchSession, OpenCodeUnreachable
from ocman_jupyter.hosts.host import RemoveRequest, SessionRequest, WorktreeRequest
from ocman_jupyter.opencode.client import OpenCodeClient
from tests.live.waiting import answer_of, opencodes

pytestmark = [pytest.mark.live, pytest.mark.timeout(240)]


async def test_options_files_and_diff_of_a_session(
    repository: Callable[..., Path],
    opencode_binary: Path,
    running_host: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root = repository(files={"README.md": "# project\n", "src/loader.py": "1\n"})
    command = root / ".opencode" / "command" / "check.md"
    command.parent.mkdir(parents=True)
    command.write_text("---\ndescription: Check it\n---\nCheck $ARGUMENTS\n")
    async with running_host(opencode_binary, root) as host:
        request = WorktreeRequest(directory=str(root), branch="x", prompt="WRITE notes.txt: mine")
        made = await host.worktrees.create(request)
        await answer_of(host, made.session_id)
        options = await host.composing.options(made.session_id)
        names = [one.name for one in options.agents]
        assert {"build", "plan"} <= set(names)
        assert not {"general", "title", "summary", "compaction"} & set(names)
        assert "scripted/script" in [one.id for one in options.models]
        assert options.default_model == "scripted/script"
        assert "init" in [one.name for one in options.commands]
        # The command is in the main checkout only, and not committed.
        assert "check" not in [one.name for one in options.commands]
        answer = await host.diffs.session(made.session_id)
        assert [(one.path, one.status) for one in answer.files] == [("notes.txt", "untracked")]
        assert await host.composing.files(made.session_id, "not") == ["notes.txt"]

        main = await host.sessions.create(SessionRequest(directory=str(root)))
        assert "check" in [one.name for one in (await host.composing.options(main.id)).commands]

        asked: list[str] = []
        for name in ("agents", "providers", "commands", "config"):
            real = getattr(OpenCodeClient, name)

            def noted(self: Any, directory: str, *more: Any, real: Any = real) -> Any:
                asked.append(directory)
                return real(self, directory, *more)

            monkeypatch.setattr(OpenCodeClient, name, noted)
        shutil.rmtree(made.worktree_path)
        for ask in (host.composing.options, host.composing.files, host.diffs.session):
            with pytest.raises(DirectoryMissing):
                await ask(made.session_id)
        assert asked == [], "a directory that is gone is not asked about"
        with pytest.raises(NoSuchSession):
            await host.composing.options("ses_nobody")

        await host.instances.stop(str(root), force=True)
        with pytest.raises(OpenCodeUnreachable):
            await host.composing.options(main.id)
        assert "src/loader.py" in await host.composing.files(main.id, "load")
        assert opencodes(tmp_path) == [], "looking launches nothing"


async def test_who_finds_a_folder_gone_or_there_again_tells_everybody(
    repository: Callable[..., Path], opencode_binary: Path, running_host: Any
) -> None:
    """What is done to a worktree in a shell comes with no event."""
    root = repository()
    async with running_host(opencode_binary, root) as host:
        made = await host.worktrees.create(WorktreeRequest(directory=str(root), branch="x"))
        async with host.events.subscribe() as (_, subscription):

            async def told(status: str) -> None:
                while True:
                    for event in await asyncio.wait_for(subscription.next(), 30):
                        is_its = event.type == "session.updated" and event.data["id"] == made.session_id
                        if is_its and event.data["status"] == status:
                            return

            await host.worktrees.list(str(root))
            git = ["git", "-C", str(root), "worktree"]
            subprocess.run([*git, "remove", "--force", made.worktree_path], check=True)
            await host.worktrees.list(str(root))
            await told("directory_missing")
            subprocess.run([*git, "add", made.worktree_path, "x"], check=True, capture_output=True)
            await host.worktrees.list(str(root))
            await told("idle")
            subprocess.run([*git, "remove", "--force", made.worktree_path], check=True)
            # Made again by ocman: nobody has to look.
            await host.worktrees.list(str(root))
            await told("directory_missing")
            await host.worktrees.create(WorktreeRequest(directory=str(root), branch="x", session="none"))
            await told("idle")


async def test_a_session_in_a_folder_that_was_made_again_is_not_said_to_be_gone(
    repository: Callable[..., Path], opencode_binary: Path, running_host: Any
) -> None:
    root = repository()
    request = WorktreeRequest(directory=str(root), branch="x")
    async with running_host(opencode_binary, root) as host:
        made = await host.worktrees.create(request)
        await host.worktrees.remove(RemoveRequest(path=made.worktree_path))
        await host.worktrees.list(str(root))
        again = await host.worktrees.create(request)
        assert again.session is not None and again.session.status == "idle"


async def test_what_another_program_launches_is_listened_to(
    repository: Callable[..., Path], opencode_binary: Path, running_host: Any
) -> None:
    """A shell works in process: its OpenCode and its asks are seen by the server that runs already."""
    root = repository()
    async with (
        running_host(opencode_binary) as server,
        server.events.subscribe() as (_, subscription),
        running_host(opencode_binary, root, started=False) as shell,
    ):
        request = WorktreeRequest(directory=str(root), branch="x", prompt="READ /etc/hostname")
        made = await shell.worktrees.create(request)
        seen: set[str] = set()
        while not {"instance.changed", "ask.created"} <= seen:
            for event in await asyncio.wait_for(subscription.next(), 60):
                if event.type != "ask.created" or event.data["session_id"] == made.session_id:
                    seen.add(event.type)
