"""The state file: private, versioned, and never written by an older program."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from ocman_jupyter import store as module
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
    with pytest.raises(NewerStore):
        Store(path).transact(lambda db: db.execute("SELECT 1"))
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
