"""Which worktrees ocman made: the rows of the state file's table ``worktrees``."""

from __future__ import annotations

import sqlite3
import time
from dataclasses import dataclass, replace

from ocman_jupyter.store import Store

_COLUMNS = "path, identity, branch, branch_made, base_ref, base_sha, state, created"


@dataclass(frozen=True)
class Made:
    """A worktree that ocman made (state ``made``), began to make (``making``), or carries files to (``carrying``)."""

    path: str
    identity: str
    branch: str
    branch_made: bool
    """The branch did not exist before."""
    base_ref: str | None
    base_sha: str | None
    state: str
    created: float = 0.0


def _made(row: tuple[object, ...]) -> Made:
    made = Made(*row)  # type: ignore[arg-type]
    return replace(made, branch_made=bool(made.branch_made))


async def of_repository(store: Store, identity: str) -> dict[str, Made]:
    """All rows of a repository by path."""

    def work(connection: sqlite3.Connection) -> list[Made]:
        rows = connection.execute(f"SELECT {_COLUMNS} FROM worktrees WHERE identity = ?", (identity,))
        return [_made(row) for row in rows]

    return {made.path: made for made in await store.run(work)}


async def at(store: Store, path: str) -> Made | None:
    """The row of one path."""

    def work(connection: sqlite3.Connection) -> Made | None:
        row = connection.execute(f"SELECT {_COLUMNS} FROM worktrees WHERE path = ?", (path,)).fetchone()
        return _made(row) if row else None

    return await store.run(work)


async def save(store: Store, made: Made) -> None:
    """Write a row, in place of an older one of the same path."""
    values = (
        made.path,
        made.identity,
        made.branch,
        int(made.branch_made),
        made.base_ref,
        made.base_sha,
        made.state,
        made.created or time.time(),
    )

    def work(connection: sqlite3.Connection) -> None:
        connection.execute(f"INSERT OR REPLACE INTO worktrees ({_COLUMNS}) VALUES (?,?,?,?,?,?,?,?)", values)

    await store.run(work)


async def forget(store: Store, path: str) -> None:
    """Delete the row of a path."""

    def work(connection: sqlite3.Connection) -> None:
        connection.execute("DELETE FROM worktrees WHERE path = ?", (path,))

    await store.run(work)
