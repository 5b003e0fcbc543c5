"""The locks that all programs of a user share: private files, and a typed error when they cannot be made."""

from __future__ import annotations

import stat
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from ocman_jupyter.errors import StateUnusable
from ocman_jupyter.git.lock import only_one
from ocman_jupyter.hosts.local.locks import directory_lock
from ocman_jupyter.opencode.locking import locked
from ocman_jupyter.settings import OcmanSettings
from ocman_jupyter.store import PrivateLock


def lock(kind: str, settings: OcmanSettings) -> AbstractAsyncContextManager[None]:
    if kind == "worktrees":
        return only_one(settings, "/r/.git", "x")
    if kind == "instance":
        return locked(settings, "/r/.git", lambda text: None)
    return directory_lock(settings, "/r")


KINDS = pytest.mark.parametrize("kind", ["worktrees", "instance", "session"])


@KINDS
async def test_a_lock_is_private(tmp_path: Path, kind: str) -> None:
    settings = OcmanSettings(data_dir=str(tmp_path / "data"))
    async with lock(kind, settings):
        (file,) = (tmp_path / "data" / "locks").iterdir()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert file.name.endswith(f".{kind}.lock")
        assert not PrivateLock(settings, file.name).acquire()
    again = PrivateLock(settings, file.name)
    assert again.acquire()
    again.release()


@KINDS
async def test_a_folder_that_cannot_be_made(tmp_path: Path, kind: str) -> None:
    settings = OcmanSettings(data_dir=str(tmp_path / "data"))
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "locks").write_text("mine")
    with pytest.raises(StateUnusable) as caught:
        async with lock(kind, settings):
            pass
    assert caught.value.details["path"] == str(tmp_path / "data" / "locks")
    assert (tmp_path / "data" / "locks").read_text() == "mine"


@KINDS
async def test_a_file_that_cannot_be_made(tmp_path: Path, kind: str) -> None:
    settings = OcmanSettings(data_dir=str(tmp_path / "data"))
    async with lock(kind, settings):
        (file,) = (tmp_path / "data" / "locks").iterdir()
    file.unlink(missing_ok=True)
    file.mkdir()
    with pytest.raises(StateUnusable) as caught:
        async with lock(kind, settings):
            pass
    assert caught.value.details["path"] == str(file)


@KINDS
async def test_a_folder_of_somebody_else(tmp_path: Path, kind: str) -> None:
    settings = OcmanSettings(data_dir=str(tmp_path))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "locks").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StateUnusable):
        async with lock(kind, settings):
            pass


@KINDS
async def test_what_is_raised_under_the_lock_comes_through(tmp_path: Path, kind: str) -> None:
    settings = OcmanSettings(data_dir=str(tmp_path))
    with pytest.raises(PermissionError):
        async with lock(kind, settings):
            raise PermissionError
