"""Git's own folders name their repository, but no agent works in them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ocman_jupyter.errors import InvalidFolder, OpenCodeMissing
from ocman_jupyter.hosts.host import SessionRequest, WorktreeRequest
from ocman_jupyter.hosts.local import local_host
from ocman_jupyter.settings import OcmanSettings


@pytest.fixture
def host(tmp_path: Path, jp_asyncio_loop: asyncio.AbstractEventLoop) -> Iterator[Any]:
    """Whatever gets as far as OpenCode finds none."""
    made = local_host(OcmanSettings(data_dir=str(tmp_path / "data"), opencode_command=str(tmp_path / "none")))
    yield made
    jp_asyncio_loop.run_until_complete(made.close())


@pytest.fixture
def root(repository: Callable[..., Path], git: Callable[..., str], tmp_path: Path) -> Path:
    root = repository()
    git(root, "worktree", "add", "--quiet", "-b", "x", str(tmp_path / "x"))
    git(root, "clone", "--quiet", "--bare", str(root), str(root.parent / "bare.git"))
    git(root.parent / "bare.git", "worktree", "add", "--quiet", "-b", "y", "inside")
    return root


@pytest.mark.parametrize("folder", [
    ".git", ".git/objects", ".git/worktrees/x", "../bare.git", "../bare.git/refs", "../bare.git/worktrees/inside"
])
async def test_no_session_is_opened_among_gits_own_files(host: Any, root: Path, folder: str) -> None:
    place = (root / folder).resolve()
    with pytest.raises(InvalidFolder) as caught:
        await host.sessions.create(SessionRequest(directory=str(place)))
    assert caught.value.details == {"field": "directory", "directory": str(place)}


@pytest.mark.parametrize("folder", [".", "../bare.git/inside"])
async def test_a_checkout_is_none_of_them(host: Any, root: Path, folder: str) -> None:
    with pytest.raises(OpenCodeMissing):
        await host.sessions.create(SessionRequest(directory=str((root / folder).resolve())))


@pytest.mark.parametrize("folder", [".git", ".git/objects", ".git/worktrees/x"])
async def test_they_still_name_the_repository_of_a_new_worktree(host: Any, root: Path, folder: str) -> None:
    made = await host.worktrees.create(WorktreeRequest(directory=str(root / folder), branch="z", session="none"))
    assert made.repo_root == str(root) and (Path(made.worktree_path) / "README.md").exists()
