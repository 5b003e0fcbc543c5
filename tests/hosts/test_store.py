"""The state file: private, versioned, and never written by an older program."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from ocman_jupyter import store as module
from ocman_jupyter.errors import InvalidRequest, StateUnusable
from ocman_jupyter.store import NewerStore, Store


def test_only_the_user_can_read_it_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        store = Store(tmp_path / "deep" / "state.sqlite")
        store.transact(lambda db: db.execute("INSERT INTO contexts VALUES ('a', 'b', 1)"))
        modes = [stat.S_IMODE(p.stat().st_mode) for p in (tmp_path / "deep").iterdir()]
        store.close()
    finally:
        os.umask(before)
    assert modes and all(mode == 0o600 for mode in modes)
    assert stat.S_IMODE((tmp_path / "deep").stat().st_mode) == 0o700


def test_a_newer_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite"
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version={len(module.MIGRATIONS) + 1}")
    with pytest.raises(NewerStore) as caught:
        Store(path).transact(lambda db: db.execute("SELECT 1"))
    assert isinstance(caught.value, StateUnusable) and "Update" in (caught.value.hint or "")
    with sqlite3.connect(path) as db:
        assert db.execute("SELECT name FROM sqlite_master").fetchall() == []


def test_a_migration_keeps_a_copy_of_what_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "state.sqlite"
    store = Store(path)
    store.transact(lambda db: db.execute("INSERT INTO contexts VALUES ('a', 'b', 1)"))
    newer = (*module.MIGRATIONS, "CREATE TABLE more (x)")
    monkeypatch.setattr(module, "MIGRATIONS", newer)
    newer_store = Store(path)  # while the older program still has the file open
    assert newer_store.transact(lambda db: db.execute("SELECT count(*) FROM more").fetchone()) == (0,)
    newer_store.close()
    store.close()
    (backup,) = tmp_path.glob("*.bak")
    with sqlite3.connect(backup) as db:
        assert db.execute("SELECT directory FROM contexts").fetchall() == [("b",)]


def test_an_exception_rolls_back(tmp_path: Path) -> None:
    store = Store(tmp_path / "state.sqlite")

    def fail(db: sqlite3.Connection) -> None:
        db.execute("INSERT INTO contexts VALUES ('a', 'b', 1)")
        raise ValueError

    with pytest.raises(ValueError):
        store.transact(fail)
    assert store.transact(lambda db: db.execute("SELECT count(*) FROM contexts").fetchone()) == (0,)
    store.close()


def test_several_processes_open_a_new_file_at_once(tmp_path: Path) -> None:
    code = (
        "import sys; from ocman_jupyter.store import Store\n"
        "s = Store(sys.argv[1])\n"
        "sql = 'INSERT INTO contexts VALUES (?, ?, 1)'\n"
        "for n in range(20): s.transact(lambda db: db.execute(sql, (sys.argv[2], str(n))))\n"
    )
    path = tmp_path / "state.sqlite"
    processes = [subprocess.Popen([sys.executable, "-c", code, str(path), str(n)]) for n in range(4)]
    assert [process.wait(60) for process in processes] == [0] * 4
    store = Store(path)
    assert store.transact(lambda db: db.execute("SELECT count(*) FROM contexts").fetchone()) == (80,)
    store.close()


def count(db: sqlite3.Connection) -> int:
    return int(db.execute("SELECT count(*) FROM contexts").fetchone()[0])


def insert(db: sqlite3.Connection) -> None:
    db.execute("INSERT INTO contexts VALUES ('a', 'b', 1)")


def refused(store: Store) -> StateUnusable:
    with pytest.raises(StateUnusable) as caught:
        asyncio.run(store.run(count))
    assert store._connection is None
    error = caught.value
    assert (error.code, error.status) == ("state_unusable", 503)
    assert error.details["path"] == str(store.path) and str(store.path) in error.message
    return error


def test_a_damaged_file_is_told_and_a_new_one_is_begun_once_it_is_moved_away(tmp_path: Path) -> None:
    store = Store(tmp_path / "state.sqlite")
    store.path.write_bytes(os.urandom(8192))
    damaged = store.path.read_bytes()
    for _ in range(2):
        error = refused(store)
        assert "not a database" in error.message and "Move" in (error.hint or "")
    assert store.path.read_bytes() == damaged
    store.path.rename(tmp_path / "away")
    assert store.transact(count) == 0
    store.close()


def test_a_file_whose_pages_are_damaged(tmp_path: Path) -> None:
    store = Store(tmp_path / "state.sqlite")
    store.transact(insert)
    store.close()
    pages = store.path.read_bytes()
    store.path.write_bytes(pages[:4096] + b"\xff" * (len(pages) - 4096))
    error = refused(store)
    assert "malformed" in error.message and "damaged" in (error.hint or "")


def test_something_else_where_the_file_belongs(tmp_path: Path) -> None:
    (tmp_path / "state.sqlite").mkdir()
    assert "Is a directory" in refused(Store(tmp_path / "state.sqlite")).message
    (tmp_path / "data").write_text("mine")
    error = refused(Store(tmp_path / "data" / "state.sqlite"))
    assert "in the way" in (error.hint or "")
    assert (tmp_path / "data").read_text() == "mine"


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object) -> int:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(module.os, "open", refuse)  # root may write everywhere
        error = refused(Store(tmp_path / "state.sqlite"))
    assert "Permission denied" in error.message and "writable" in (error.hint or "")


def test_a_full_disk_loses_one_write_and_no_more(tmp_path: Path) -> None:
    store = Store(tmp_path / "state.sqlite")
    store.transact(insert)

    def fill(db: sqlite3.Connection) -> None:
        db.execute("PRAGMA max_page_count=1")  # it is never less than what is there
        db.execute("INSERT INTO contexts VALUES ('b', ?, 1)", ("x" * 1_000_000,))

    with pytest.raises(StateUnusable) as caught:
        store.transact(fill)
    assert "full" in caught.value.message and "Free some space" in (caught.value.hint or "")
    assert store.transact(count) == 1
    store.close()


def test_a_reason_of_sqlite_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(module.shutil, "disk_usage", lambda path: usage._replace(free=0))
    with pytest.raises(StateUnusable) as caught, module.usable(tmp_path / "state.sqlite"):
        raise sqlite3.OperationalError("disk I/O error")
    assert "Free some space" in (caught.value.hint or "")


@pytest.mark.parametrize("error", [ValueError("x"), KeyError("x"), InvalidRequest("x"), sqlite3.IntegrityError("x")])
def test_what_the_work_raises_comes_through(tmp_path: Path, error: Exception) -> None:
    store = Store(tmp_path / "state.sqlite")

    def fail(db: sqlite3.Connection) -> None:
        insert(db)
        raise error

    with pytest.raises(type(error)) as caught:
        store.transact(fail)
    assert caught.value is error
    assert store.transact(count) == 0
    store.close()


def test_a_commit_that_fails_leaves_no_transaction_open(tmp_path: Path) -> None:
    store = Store(tmp_path / "state.sqlite")

    def defer(db: sqlite3.Connection) -> None:
        db.execute("CREATE TABLE one (x INTEGER PRIMARY KEY)")
        db.execute("CREATE TABLE two (x REFERENCES one DEFERRABLE INITIALLY DEFERRED)")
        db.execute("INSERT INTO two VALUES (1)")

    store.transact(count)
    assert store._connection is not None
    store._connection.execute("PRAGMA foreign_keys=ON")
    with pytest.raises(sqlite3.IntegrityError):
        store.transact(defer)
    assert store.transact(count) == 0
    store.close()
