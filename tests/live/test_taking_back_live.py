"""A create that fails takes back what it made, but not what somebody else uses by now."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ocman_jupyter.errors import OpenCodeError
from ocman_jupyter.hosts.host import WorktreeRequest
from ocman_jupyter.opencode.client import OpenCodeClient
from tests.live.waiting import eventually

pytestmark = [pytest.mark.live, pytest.mark.timeout(240)]


def want(root: Path, **more: Any) -> WorktreeRequest:
    return WorktreeRequest(directory=str(root), branch="x", **more)


@asynccontextmanager
async def failing(host: Any, root: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Path]:
    """A create of ``x`` whose OpenCode does not answer, and fails at the end of the block."""
    place = root.parent / ".worktrees" / root.name / "x"
    real, fail, asked = OpenCodeClient.create_session, asyncio.Event(), asyncio.Event()

    async def gone() -> bool:
        return not place.exists()

    async def create(self: Any, *words: Any, **more: Any) -> Any:
        if asked.is_set():
            with contextlib.suppress(AssertionError):
                await eventually(gone, 1.0)  # the worst moment for it to go
            return await real(self, *words, **more)
        asked.set()
        await fail.wait()
        raise OpenCodeError()

    await host.instances.ensure(str(root))
    monkeypatch.setattr(OpenCodeClient, "create_session", create)
    first = asyncio.ensure_future(host.worktrees.create(want(root)))
    await asked.wait()
    try:
        yield place
    finally:
        fail.set()
        with pytest.raises(OpenCodeError):
            await first


@pytest.mark.parametrize("same_program", [True, False])
async def test_a_worktree_that_another_call_was_given_stays(
    repository: Callable[..., Path], opencode_binary: Path, running_host: Any, git: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch, same_program: bool,
) -> None:
    root = repository()
    async with (
        running_host(opencode_binary, root) as host, running_host(opencode_binary, started=False) as other
    ):
        async with failing(host, root, monkeypatch) as place:
            given = await (host if same_program else other).worktrees.create(want(root, session="none"))
            assert given.reused and given.worktree_path == str(place)
        assert (place / "README.md").exists() and git(root, "branch", "--list", "x") != ""


async def test_a_worktree_in_which_something_runs_stays(
    repository: Callable[..., Path], opencode_binary: Path, running_host: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = repository()
    async with running_host(opencode_binary, root) as host:
        async with failing(host, root, monkeypatch) as place:
            inside = subprocess.Popen(["sleep", "60"], cwd=place)
        inside.kill()
        inside.wait()
        assert (place / "README.md").exists()


async def test_a_worktree_that_nobody_uses_goes(
    repository: Callable[..., Path], opencode_binary: Path, running_host: Any, git: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root = repository()
    async with running_host(opencode_binary, root) as host:
        for _ in range(2):
            with monkeypatch.context() as patch:
                async with failing(host, root, patch) as place:
                    pass
            assert not place.exists() and git(root, "branch", "--list", "x") == ""
        assert not (await host.worktrees.create(want(root, session="none"))).reused


async def test_who_waited_for_a_worktree_that_is_taken_back_gets_it_made_again(
    repository: Callable[..., Path], opencode_binary: Path, running_host: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = repository()
    async with running_host(opencode_binary, root) as host:
        async with failing(host, root, monkeypatch) as place:
            waiting = [asyncio.ensure_future(host.worktrees.create(want(root, title=name))) for name in "ab"]
            await asyncio.wait(waiting, timeout=1.0)
        for made in await asyncio.gather(*waiting):
            assert made.session.directory == str(place) and made.session.status == "idle"
        assert (place / "README.md").exists()


@pytest.mark.parametrize("times", [1, 2])
async def test_a_worktree_that_goes_while_its_session_is_opened_is_made_again(
    repository: Callable[..., Path], opencode_binary: Path, running_host: Any, git: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch, times: int,
) -> None:
    root = repository()
    async with running_host(opencode_binary, root) as host:
        place = Path((await host.worktrees.create(want(root, session="none"))).worktree_path)
        real, removed = OpenCodeClient.create_session, []

        async def remove_first(self: Any, *words: Any, **more: Any) -> Any:
            if len(removed) < times:
                removed.append(git(root, "worktree", "remove", "--force", str(place)))
            return await real(self, *words, **more)

        monkeypatch.setattr(OpenCodeClient, "create_session", remove_first)
        made = await host.worktrees.create(want(root))
        assert len(removed) == times
        assert made.session.directory == str(place) and (place / "README.md").exists()
