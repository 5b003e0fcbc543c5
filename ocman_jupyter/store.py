"""State that must last: one SQLite file per user (WAL, transactions, versioned schema, mode 0600).

Holds the registry of instances (with their passwords), what ocman made (worktrees, sessions) and took back,
which directories an instance holds a context for, and the answers of requests that carry a ``request_id``.
Shared by every Jupyter server, kernel and shell of the user, as the locks beside it are.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from .errors import StateUnusable

if TYPE_CHECKING:
    from .settings import OcmanSettings

T = TypeVar("T")

FULL = 1_000_000
"""Bytes: with less than this free, SQLite's own reasons ("disk I/O error") mean a full disk."""
OUR_FAULTS = (sqlite3.IntegrityError, sqlite3.ProgrammingError, sqlite3.DataError, sqlite3.NotSupportedError)
"""What SQLite says of a wrong statement: no word about the file."""

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
        state TEXT NOT NULL,            -- making | carrying | made
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
    """
    CREATE TABLE taken_back (
        directory TEXT PRIMARY KEY,     -- real path of a worktree whose create gave up
        identity TEXT NOT NULL,
        since REAL NOT NULL             -- when that create began
    );
    """,
    """
    CREATE TABLE handed_out (
        directory TEXT PRIMARY KEY,     -- real path of a worktree that a call got which another had made
        moment REAL NOT NULL,
        going INTEGER NOT NULL          -- 1 = it is being taken back
    );
    """,
)


class NewerStore(StateUnusable):
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
                    f"{self.path} has schema version {version}; this ocman_jupyter knows {len(MIGRATIONS)}.",
                    hint="Update ocman_jupyter.",
                    details={"path": str(self.path), "version": version},
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
        """Run ``work(connection)`` in one write transaction; an exception rolls it back.

        Raises ``StateUnusable`` when the file cannot be used; the next call opens it anew.  What ``work``
        itself raises comes through, unless it is of the file too.
        """
        with self._lock:
            try:
                with usable(self.path):
                    return self._transact(work)
            except StateUnusable:
                self._let_go()
                raise

    def _transact(self, work: Callable[[sqlite3.Connection], T]) -> T:
        connection = self._open()
        connection.execute("BEGIN IMMEDIATE")
        try:
            result = work(connection)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:  # SQLite itself rolls back on a full disk
                try:
                    connection.execute("ROLLBACK")
                except sqlite3.Error:
                    self._let_go()
            raise
        return result

    def _let_go(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(sqlite3.Error):
                connection.close()

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """:meth:`transact` off the event loop."""
        if self._worker is None:
            self._worker = ThreadPoolExecutor(1, thread_name_prefix="ocman-store")
        return await asyncio.get_running_loop().run_in_executor(self._worker, self.transact, work)

    async def version(self) -> int:
        """A number that is another one once another program has written.  Raises ``StateUnusable``."""
        return await self.run(lambda db: db.execute("PRAGMA data_version").fetchone()[0])

    def close(self) -> None:
        """Close the file; a later call opens it again."""
        if self._worker is not None:
            self._worker.shutdown(wait=True)
            self._worker = None
        with self._lock:
            self._let_go()


class PrivateLock:
    """A lock that all programs of the user share: a file of mode 0600 in ``<data_dir>/locks``.

    It goes with the process that holds it, and any thread may release it.
    """

    def __init__(self, settings: OcmanSettings, name: str) -> None:
        from filelock import FileLock

        folder = Path(settings.data_dir) / "locks"
        self.path = folder / name
        private_folder(settings, folder)
        self._lock = FileLock(self.path, mode=0o600, thread_local=False)

    def acquire(self) -> bool:
        """Take it, without a wait; False: another holds it.  Raises ``StateUnusable``."""
        from filelock import Timeout

        with usable(self.path):
            try:
                self._lock.acquire(timeout=0)
            except Timeout:  # an OSError
                return False
        return True

    def release(self) -> None:
        self._lock.release()


def private_folder(settings: OcmanSettings, path: str | os.PathLike[str]) -> Path:
    """``path``, made if need be, that only this user can read.  Raises ``StateUnusable``."""
    with usable(Path(path)):
        return settings.private_dir(os.fspath(path))


@contextlib.contextmanager
def usable(path: Path) -> Iterator[None]:
    """Errors of a file or folder of ours become ``StateUnusable``; all others come through."""
    try:
        yield
    except OUR_FAULTS:
        raise
    except (OSError, sqlite3.DatabaseError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise StateUnusable(
            f"ocman's own state at {path} cannot be used: {reason}.",
            hint=_hint(path, error),
            details={"path": str(path), "reason": reason},
        ) from error


def _hint(path: Path, error: Exception) -> str | None:
    if _is_full(path, error):
        return "Free some space and try again."
    if isinstance(error, (IsADirectoryError, NotADirectoryError, FileExistsError)):
        return f"Something else is in the way: move away what is at {path} or above it."
    if isinstance(error, PermissionError) or getattr(error, "errno", None) == errno.EROFS:
        return "Make it writable for yourself, or set `OcmanSettings.data_dir` to a folder that is."
    text = str(error)
    if "readonly" in text or "unable to open" in text:
        return "Make the file and its folder writable for yourself."
    if "locked" in text:
        return "Another program is writing to it for too long. Try again."
    if not isinstance(error, sqlite3.OperationalError) and isinstance(error, sqlite3.DatabaseError):
        return (
            f"The file is damaged. Move {path} away, with -wal and -shm beside it, and a new one is begun. It holds "
            "the registry of the running OpenCodes with their passwords, and which worktrees and sessions "
            "ocman made; these themselves stay."
        )
    return None


def _is_full(path: Path, error: Exception) -> bool:
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    try:
        return "is full" in str(error) or (
            isinstance(error, sqlite3.OperationalError) and shutil.disk_usage(path.parent).free < FULL
        )
    except OSError:
        return False
