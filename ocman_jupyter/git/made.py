"""Which worktrees ocman made: the rows of the state file's table ``worktrees``."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
from dataclasses import dataclass, replace

from ocman_jupyter.git.command import ANY, Git
from ocman_jupyter.git.names import HEADS
from ocman_jupyter.git.records import Base
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

    @property
    def base(self) -> Base | None:
        """What its branch started from, where that is known."""
        return Base(ref=self.base_ref, sha=self.base_sha) if self.base_ref and self.base_sha else None

    @property
    def start(self) -> str:
        """The revision that git makes the branch from: ``base_sha`` with signs that change nothing.

        git notes it in the branch's log as it was given, so that a branch of this making is told from one that
        somebody else made from the same commit.
        """
        seed = f"{self.path}\0{self.branch}\0{self.created!r}"
        bits = int.from_bytes(hashlib.sha256(os.fsencode(seed)).digest()[:4], "big")
        return f"{self.base_sha}" + "".join("^0" if bits >> bit & 1 else "~0" for bit in range(32))


async def made_branch(git: Git, made: Made, common_dir: str, untouched: bool = True) -> bool:
    """Is the branch of ``made`` there, of its making, and, with ``untouched``, as it was made?"""
    done = await git.run(
        "log", "-g", "--format=%H %gs", HEADS + made.branch, "--", cwd=common_dir, ok=ANY
    )
    entries = done.text.splitlines() if done.code == 0 else []
    first = f"{made.base_sha} branch: Created from {made.start}"
    return entries[-1:] == [first] and (len(entries) == 1 or not untouched)


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
