"""State that must last: one SQLite file per user (WAL, transactions, versioned schema, mode 0600).

Holds the registry of instances (with their passwords), what ocman made (worktrees, sessions), which
directories an instance holds a context for, and the answers of requests that carry a ``request_id``.
Shared by every Jupyter server, kernel and shell of the user.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE instances (
        identity TEXT PRIMARY KEY,      -- real path of the git common dir
        record TEXT NOT NULL            -- JSON of opencode.registry.Record
    );
    CREATE TABLE worktrees (
        path TEXT PRIMARY KEY,          -- real path of the worktree
        identity TEXT NOT NULL,
        branch TEXT NOT NULL,
        branch_made INTEGER NOT NULL,   -- 1 = this branch did not exist before
        base_ref TEXT,
        base_sha TEXT,
        state TEXT NOT NULL,            -- making | made
        pid INTEGER,                    -- of the git that makes it
        pid_started REAL,
        created REAL NOT NULL
    );
    CREATE TABLE sessions (
        id TEXT PRIMARY KEY,
        identity TEXT NOT NULL,
        directory TEXT NOT NULL,
        prompt_sha256 TEXT,             -- of the prompt it began with
        created REAL NOT NULL
    );
    CREATE INDEX sessions_by_directory ON sessions (directory);
    CREATE TABLE contexts (
        identity TEXT NOT NULL,
        directory TEXT NOT NULL,
        used REAL NOT NULL,
        PRIMARY KEY (identity, directory)
    );
    CREATE TABLE requests (
        id TEXT PRIMARY KEY,
        verb TEXT NOT NULL,
        body_sha256 TEXT NOT NULL,
        answer TEXT NOT NULL,           -- JSON {"status", "body"}
        created REAL NOT NULL
    );
    """,
)


class NewerStore(RuntimeError):
    """The file was written by a newer version of this package; it is left untouched."""


class Store:
    """The state file.  Safe to use from several threads and processes."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._worker: ThreadPoolExecutor | None = None

    def _open(self) -> sqlite3.Connection:
        if self._connection is not None:
            return self._connection
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Made by us with mode 0600 first: SQLite would follow the umask.
        os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        os.chmod(self.path, 0o600)
        connection = sqlite3.connect(
            self.path, timeout=10, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            self._migrate(connection)
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        return connection

    def _migrate(self, connection: sqlite3.Connection) -> None:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version == len(MIGRATIONS):
            return
        if 0 < version < len(MIGRATIONS):
            self._back_up(connection, version)
        connection.execute("BEGIN IMMEDIATE")
        try:
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if version > len(MIGRATIONS):
                raise NewerStore(
                    f"{self.path} has schema version {version}; this ocman_jupyter knows "
                    f"{len(MIGRATIONS)}. Update ocman_jupyter."
                )
            for script in MIGRATIONS[version:]:
                for statement in script.split(";"):
                    if statement.strip():
                        connection.execute(statement)
            connection.execute(f"PRAGMA user_version={len(MIGRATIONS)}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def _back_up(self, connection: sqlite3.Connection, version: int) -> None:
        path = self.path.with_name(f"{self.path.name}.v{version}.bak")
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        copy = sqlite3.connect(path)
        try:
            connection.backup(copy)  # unlike a copy of the file, with what is still in the write-ahead log
        finally:
            copy.close()

    def transact(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run ``work(connection)`` in one write transaction; an exception rolls it back."""
        with self._lock:
            connection = self._open()
            connection.execute("BEGIN IMMEDIATE")
            try:
                result = work(connection)
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")
            return result

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """:meth:`transact` off the event loop."""
        if self._worker is None:
            self._worker = ThreadPoolExecutor(1, thread_name_prefix="ocman-store")
        return await asyncio.get_running_loop().run_in_executor(self._worker, self.transact, work)

    def close(self) -> None:
        """Close the file; a later call opens it again."""
        if self._worker is not None:
            self._worker.shutdown(wait=True)
            self._worker = None
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None
