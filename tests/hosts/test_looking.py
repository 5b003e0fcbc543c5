"""What a page asks about a session's files: answered from git, with no OpenCode at all."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ocman_jupyter import errors
from ocman_jupyter.hosts.local.composing import Composing
from ocman_jupyter.hosts.local.diffs import Diffs
from ocman_jupyter.hosts.local.feeds import Feeds
from ocman_jupyter.hosts.local.parts import Parts
from ocman_jupyter.hosts.local.sessions import Sessions
from ocman_jupyter.settings import OcmanSettings


@pytest.fixture
def local(tmp_path: Path, jp_asyncio_loop: Any) -> Any:
    """The services of this machine, put together as ``local_host`` does it, on a state of their own."""
    parts = Parts.make(OcmanSettings(data_dir=str(tmp_path / "ocman-data")))
    feeds = Feeds(parts)
    sessions = Sessions(parts, feeds)
    made = SimpleNamespace(
        parts=parts, sessions=sessions, diffs=Diffs(parts, sessions), composing=Composing(parts, sessions)
    )
    yield made
    jp_asyncio_loop.run_until_complete(made.composing.close())
    jp_asyncio_loop.run_until_complete(feeds.close())
    jp_asyncio_loop.run_until_complete(parts.close())


@pytest.fixture
def session(local: Any) -> Callable[..., Any]:
    """``await session(directory)``: a session that ocman made there, while no OpenCode runs; its id."""

    async def make(directory: Path, name: str = "ses_1") -> str:
        repository = await local.parts.repository(str(directory))
        await local.parts.notes.add(name, repository.common_dir, str(directory), None)
        return name

    return make


@pytest.fixture
def x(local: Any, repository: Callable[..., Path], jp_asyncio_loop: Any) -> tuple[Path, Path]:
    """A repository and a worktree of it."""

    async def add(root: Path) -> str:
        return (await local.parts.worktrees.add(await local.parts.repository(str(root)), "x")).path

    root = repository(files={"a.py": "1\n", "src/loader.py": "1\n", "src/deep/b.py": "1\n", ".gitignore": "*.log\n"})
    return root, Path(jp_asyncio_loop.run_until_complete(add(root)))


async def test_a_session_in_a_worktree_is_compared_with_the_base(local, session, x, git) -> None:
    _, place = x
    (place / "new.py").write_text("n\n")
    git(place, "add", "new.py")
    git(place, "-c", "user.name=T", "-c", "user.email=t@e", "commit", "-qm", "n")
    (place / "src" / "u.py").write_text("u\n")
    answer = await local.diffs.session(await session(place / "src"))
    assert {one.path: one.status for one in answer.files} == {"new.py": "added", "src/u.py": "untracked"}
    assert answer.against.ref == "main"
    assert answer == await local.diffs.worktree(str(place))


async def test_a_session_in_the_main_checkout_is_compared_with_the_last_commit(local, session, x, git) -> None:
    root, _ = x
    git(root, "update-ref", "refs/remotes/origin/main", "HEAD")
    git(root, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    (root / "new.py").write_text("n\n")
    git(root, "add", "new.py")
    git(root, "commit", "-qm", "n")
    (root / "a.py").write_text("2\n")
    answer = await local.diffs.session(await session(root))
    assert ([one.path for one in answer.files], answer.against.ref) == (["a.py"], "HEAD")
    assert [one.path for one in (await local.diffs.worktree(str(root))).files] == ["a.py", "new.py"]


async def test_files_of_a_session_are_those_of_its_directory(local, session, x) -> None:
    _, place = x
    (place / "src" / "loads.log").write_text("ignored\n")
    (place / "src" / "untracked loader.py").write_text("u\n")
    top = await session(place)
    assert await local.composing.files(top, "load") == ["src/loader.py", "src/untracked loader.py"]
    assert await local.composing.files(top, "", 2) == [".gitignore", "a.py"]
    inner = await session(place / "src", "ses_2")
    assert await local.composing.files(inner) == ["loader.py", "untracked loader.py", "deep/b.py"]


async def test_files_are_listed_once_for_many_letters(local, session, x, monkeypatch) -> None:
    _, place = x
    top = await session(place)
    await local.composing.files(top, "l")
    before = local.parts.git.started
    for query in ("lo", "loa", "load"):
        assert await local.composing.files(top, query) == ["src/loader.py"]
    assert local.parts.git.started == before
    (place / "loaded.py").write_text("n\n")
    (place / "src" / "loader.py").unlink()
    assert await local.composing.files(top, "load") == [], "what is gone is not offered"
    local.composing._files._seconds = 0
    assert await local.composing.files(top, "load") == ["loaded.py"]


async def test_a_session_whose_directory_is_gone(local, session, x) -> None:
    root, place = x
    top, inner = await session(place), await session(place / "src", "ses_2")
    shutil.rmtree(place / "src")
    with pytest.raises(errors.DirectoryMissing):
        await local.diffs.session(inner)
    (place / ".git").unlink()
    for ask in (local.diffs.session, local.composing.files):
        with pytest.raises(errors.DirectoryMissing):
            await ask(top)
    shutil.rmtree(place)
    for ask in (local.diffs.session, local.composing.files):
        with pytest.raises(errors.DirectoryMissing):
            await ask(top)
    assert list(place.parent.iterdir()) == []


async def test_a_session_that_nobody_knows(local, x) -> None:
    for ask in (local.diffs.session, local.composing.files, local.composing.options):
        with pytest.raises(errors.NoSuchSession):
            await ask("ses_nobody")


async def test_options_without_an_opencode_launch_none(local, session, x) -> None:
    _, place = x
    with pytest.raises(errors.OpenCodeUnreachable):
        await local.composing.options(await session(place))


class FakeClient:
    """An OpenCode as far as choices are concerned."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def agents(self, directory: str) -> list[dict[str, Any]]:
        self.asked.append(directory)
        return [{"name": "build", "mode": "primary", "description": "Builds"}]

    async def providers(self, directory: str) -> dict[str, Any]:
        return {"providers": [{"id": "p", "name": "P", "models": {"m/1": {"name": "M"}}}], "default": {"p": "m/1"}}

    async def commands(self, directory: str) -> list[dict[str, Any]]:
        return [{"name": "init"}]

    async def config(self, directory: str) -> dict[str, Any]:
        return {}


async def test_options_are_asked_once_for_a_directory(local, session, x, monkeypatch) -> None:
    _, place = x
    client, used = FakeClient(), []

    async def use(directory: str) -> None:
        used.append(directory)

    feed = SimpleNamespace(client=client, use=use, instance=SimpleNamespace(url="http://x"))

    async def serving(session_id: str) -> tuple[Any, str]:
        return feed, str(place)

    monkeypatch.setattr(local.sessions, "serving", serving)
    first = await local.composing.options("ses_1")
    assert await local.composing.options("ses_2") == first
    assert (client.asked, used) == ([str(place)], [str(place)]), "its context is noted, so that it is freed one day"
    assert first.model_dump() == {
        "agents": [{"name": "build", "description": "Builds"}],
        "models": [{"id": "p/m/1", "name": "M", "provider": "P"}],
        "commands": [{"name": "init", "description": None}],
        "default_model": "p/m/1",
    }
