"""What this host remembers of sessions, of worktrees taken back, and of directories with a context."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from typing import Any

from ...store import Store


def prompt_digest(prompt: str | None) -> str | None:
    """SHA-256 of a prompt; the text itself is not kept."""
    return None if prompt is None else hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True)
class SessionNote:
    """A session that ocman made."""

    id: str
    identity: str
    """Real path of the git common dir of its repository."""
    directory: str
    prompt_sha256: str | None
    created: float
    """Seconds since the epoch."""


class SessionNotes:
    """The sessions that ocman made, by id: where they work, also when no OpenCode runs."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def add(self, session_id: str, identity: str, directory: str, prompt: str | None) -> None:
        row = (session_id, identity, directory, prompt_digest(prompt), time.time())
        await self._store.run(lambda db: db.execute("INSERT OR REPLACE INTO sessions VALUES (?, ?, ?, ?, ?)", row))

    async def get(self, session_id: str) -> SessionNote | None:
        rows = await self._select("id = ?", session_id)
        return rows[0] if rows else None

    async def in_directory(self, directory: str) -> list[SessionNote]:
        return await self._select("directory = ? ORDER BY created DESC", directory)

    async def of_repository(self, identity: str) -> list[SessionNote]:
        return await self._select("identity = ? ORDER BY created DESC", identity)

    async def forget(self, session_id: str) -> None:
        await self._store.run(lambda db: db.execute("DELETE FROM sessions WHERE id = ?", (session_id,)))

    async def _select(self, where: str, value: str) -> list[SessionNote]:
        def read(db: Any) -> list[SessionNote]:
            query = f"SELECT id, identity, directory, prompt_sha256, created FROM sessions WHERE {where}"
            return [SessionNote(*row) for row in db.execute(query, (value,))]

        return await self._store.run(read)


class TakenBack:
    """Worktrees that a create took back when it gave up.

    OpenCode may have been stopped, or slow: it makes the session that was asked for when it goes on.
    """

    KEEP_SECONDS = 24 * 3600

    def __init__(self, store: Store) -> None:
        self._store = store
        self._seen: set[str] = set()

    async def add(self, identity: str, directory: str, since: float) -> None:
        """``since``: seconds since the epoch at which the create began."""
        self._seen.add(directory)
        await self._store.run(
            lambda db: db.execute("INSERT OR IGNORE INTO taken_back VALUES (?, ?, ?)", (directory, identity, since))
        )

    async def of(self, identity: str) -> dict[str, float]:
        """Directory → when the first create that gave it up began."""

        def read(db: Any) -> list[tuple[str, float]]:
            db.execute("DELETE FROM taken_back WHERE since < ?", (time.time() - self.KEEP_SECONDS,))
            return db.execute("SELECT directory, since FROM taken_back WHERE identity = ?", (identity,)).fetchall()

        found = dict(await self._store.run(read))
        self._seen.update(found)
        return found

    def seen(self, directory: str) -> bool:
        """Whether this process has heard of it."""
        return directory in self._seen


class HandedOut:
    """Worktrees that a call was given which another call had made: that one must not take them back."""

    KEEP_SECONDS = 24 * 3600

    def __init__(self, store: Store) -> None:
        self._store = store

    async def add(self, directory: str, even_going: bool = False) -> bool:
        """Somebody is given ``directory`` now.  False: it is being taken back, unless ``even_going``."""

        def write(db: Any) -> bool:
            db.execute("DELETE FROM handed_out WHERE moment < ?", (time.time() - self.KEEP_SECONDS,))
            query = "SELECT 1 FROM handed_out WHERE directory = ? AND going"
            if not even_going and db.execute(query, (directory,)).fetchone():
                return False
            db.execute("INSERT OR REPLACE INTO handed_out VALUES (?, ?, 0)", (directory, time.time()))
            return True

        return await self._store.run(write)

    async def begin_to_take_back(self, directory: str, since: float) -> bool:
        """Whether nobody was given it after ``since`` (seconds since the epoch); then nobody is until `taken_back`."""

        def write(db: Any) -> bool:
            query = "SELECT 1 FROM handed_out WHERE directory = ? AND moment >= ?"
            if db.execute(query, (directory, since)).fetchone():
                return False
            db.execute("INSERT OR REPLACE INTO handed_out VALUES (?, ?, 1)", (directory, time.time()))
            return True

        return await self._store.run(write)

    async def taken_back(self, directory: str) -> None:
        await self._store.run(lambda db: db.execute("DELETE FROM handed_out WHERE directory = ?", (directory,)))


class Contexts:
    """Directories that an OpenCode holds a context for, and when each was last used.

    OpenCode has no call that tells this, and asking it about a directory makes the context.
    """

    WRITE_EVERY = 60.0  # seconds; the store need not see each event

    def __init__(self, store: Store) -> None:
        self._store = store
        self._used: dict[tuple[str, str], float] = {}

    async def touch(self, identity: str, directory: str) -> None:
        """This directory is in use now."""
        now = time.time()
        key = (identity, directory)
        if now - self._used.get(key, 0.0) < self.WRITE_EVERY:
            return
        self._used[key] = now
        await self._store.run(
            lambda db: db.execute("INSERT OR REPLACE INTO contexts VALUES (?, ?, ?)", (identity, directory, now))
        )

    async def of(self, identity: str) -> dict[str, float]:
        """Directory → seconds since the epoch of its last use."""
        rows = await self._store.run(
            lambda db: db.execute("SELECT directory, used FROM contexts WHERE identity = ?", (identity,)).fetchall()
        )
        return dict(rows)

    async def holds(self, identity: str, directory: str) -> bool:
        """Whether there is a context of this directory."""
        query = "SELECT 1 FROM contexts WHERE identity = ? AND directory = ?"
        row = await self._store.run(lambda db: db.execute(query, (identity, directory)).fetchone())
        return row is not None

    async def drop(self, identity: str, directory: str | None = None) -> None:
        """The context of one directory, or all of this repository's OpenCode, are gone."""
        for key in [k for k in self._used if k[0] == identity and directory in (None, k[1])]:
            del self._used[key]
        if directory is None:
            await self._store.run(lambda db: db.execute("DELETE FROM contexts WHERE identity = ?", (identity,)))
        else:
            await self._store.run(
                lambda db: db.execute(
                    "DELETE FROM contexts WHERE identity = ? AND directory = ?", (identity, directory)
                )
            )
