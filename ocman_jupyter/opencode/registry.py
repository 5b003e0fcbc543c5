"""The lasting record of each repository's OpenCode: written before it starts, never believed unprobed."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from typing import Literal

from ..store import Store
from .processes import Process

Owner = Literal["ocman", "user"]
State = Literal["launching", "running", "stopping"]


@dataclass(frozen=True)
class Record:
    """What is known of an instance, its password included: the store is readable by this user alone."""

    identity: str
    state: State
    root: str
    """The main checkout, or the bare folder."""
    cwd: str
    """Where it runs: the main checkout, or the worktree of a bare repository that was asked from."""
    owner: Owner
    url: str = ""
    port: int = 0
    pid: int | None = None
    """Of the process that serves."""
    pid_mark: str = ""
    """See :func:`processes.mark`."""
    launch_pid: int | None = None
    """Of the process that was launched: a shim's child may be the one that serves."""
    launch_mark: str = ""
    username: str = "opencode"
    password: str | None = field(default=None, repr=False)
    launch_id: str = ""
    launcher: Literal["tmux", "process", ""] = ""
    tmux_session: str | None = None
    log_path: str = ""
    seeded: bool = False
    version: str | None = None
    started_at: float | None = None
    """Seconds since 1970."""
    launched_at: float = 0.0
    """Seconds since 1970 at which the launch began."""

    @property
    def process(self) -> Process | None:
        return Process(self.pid, self.pid_mark) if self.pid and self.pid_mark else None

    @property
    def launched(self) -> Process | None:
        return Process(self.launch_pid, self.launch_mark) if self.launch_pid and self.launch_mark else None

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Record | None:
        """``None`` for what cannot be understood: a bad record must not keep anything from starting."""
        try:
            values = json.loads(text)
            names = {one.name for one in dataclasses.fields(cls)}
            record = cls(**{name: value for name, value in values.items() if name in names})
        except (ValueError, TypeError, AttributeError):
            return None
        return record if record.state in ("launching", "running", "stopping") else None


class Registry:
    """Records by repository identity."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def get(self, identity: str) -> Record | None:
        key = _key(identity)
        row = await self._store.run(lambda db: db.execute(
            "SELECT record FROM instances WHERE identity = ?", (key,)).fetchone())
        return Record.from_json(row[0]) if row else None

    async def put(self, record: Record) -> None:
        values = (_key(record.identity), record.to_json())
        await self._store.run(lambda db: db.execute(
            "INSERT INTO instances (identity, record) VALUES (?, ?) "
            "ON CONFLICT (identity) DO UPDATE SET record = excluded.record", values))

    async def delete(self, identity: str) -> None:
        key = _key(identity)
        await self._store.run(lambda db: db.execute("DELETE FROM instances WHERE identity = ?", (key,)))

    async def all(self) -> list[Record]:
        rows = await self._store.run(lambda db: db.execute(
            "SELECT record FROM instances ORDER BY identity").fetchall())
        return [record for record in (Record.from_json(row[0]) for row in rows) if record]


def _key(identity: str) -> str:
    # A path that is not UTF-8 carries lone surrogates, which SQLite refuses.
    return identity.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
