"""The git domain on real repositories; faults come from a wrapper around the real git."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from ocman_jupyter.git.command import Git
from ocman_jupyter.git.records import Worktree
from ocman_jupyter.git.repository import Repository
from ocman_jupyter.git.worktrees import Worktrees
from ocman_jupyter.settings import OcmanSettings
from ocman_jupyter.store import Store


@dataclass
class Domain:
    """All that a test needs of the git domain, on its own data directory."""

    settings: OcmanSettings
    store: Store
    git: Git
    worktrees: Worktrees

    async def resolve(self, path: Path | str) -> Repository:
        return await self.worktrees.repositories.resolve(str(path))

    async def listed(self, path: Path | str, changes: bool = True) -> dict[str, Worktree]:
        """Worktrees by name."""
        repository = await self.resolve(path)
        _, listed = await self.worktrees.list(repository, changes=changes)
        return {one.name: one for one in listed}

    async def add(self, path: Path | str, branch: str, **options: object) -> object:
        repository = await self.resolve(path)
        return await self.worktrees.add(repository, branch, **options)


@pytest.fixture
def make_domain(tmp_path: Path) -> Iterator[Callable[..., Domain]]:
    """``make_domain(git_command="…")``: another one on the same data, as in another process."""
    made: list[Domain] = []

    def make(**settings: object) -> Domain:
        configured = OcmanSettings(data_dir=str(tmp_path / "ocman-data"), **settings)
        store = Store(Path(configured.data_dir) / "state.db")
        git = Git(configured)
        made.append(Domain(configured, store, git, Worktrees(git, store, configured)))
        return made[-1]

    yield make
    for domain in made:
        domain.worktrees.close()
        domain.git.close()
        domain.store.close()


@pytest.fixture
def domain(make_domain: Callable[..., Domain]) -> Domain:
    return make_domain()


@pytest.fixture
def wrapper(tmp_path: Path) -> Callable[[str], str]:
    """``wrapper("exit 1")``: the path of a git that does this first, then what git does."""
    real = shutil.which("git")
    assert real

    def make(script: str, name: str = "git-wrapper") -> str:
        path = tmp_path / name
        path.write_text(f'#!/bin/bash\nREAL={shlex.quote(real)}\n{script}\nexec "$REAL" "$@"\n')
        path.chmod(0o755)
        return str(path)

    return make


def hook(root: Path, name: str, script: str) -> Path:
    """Install a hook in a repository."""
    path = root / ".git" / "hooks" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/bash\n{script}\n")
    path.chmod(0o755)
    return path
