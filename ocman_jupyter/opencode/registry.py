"""The lasting record of each repository's OpenCode: written before it starts, never believed unprobed."""

from __future__ import annotations

import dataclasses
import json
import logging
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from ..store import Store
from .foreign import parse, server_url
from .processes import Process

log = logging.getLogger(__name__)

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
    def from_json(cls, text: str | bytes) -> Record | None:
        """``None`` for what cannot be understood: a bad record must not keep anything from starting."""
        try:
            values = parse(text)
            names = {one.name for one in dataclasses.fields(cls)}
            record = cls(**{name: value for name, value in values.items() if name in names})
            return record if record._is_sound() else None
        except (ValueError, TypeError, AttributeError):
            return None

    def _is_sound(self) -> bool:
        """Whether all of it can be used as what it should be.  May raise ``ValueError`` when it is not."""
        texts = [self.identity, self.root, self.cwd, self.url, self.pid_mark, self.launch_mark, self.username,
                 self.launch_id, self.log_path]
        texts += [one for one in (self.password, self.tmux_session, self.version) if one is not None]
        return (
            all(isinstance(one, str) and b"\0" not in one.encode("utf-8", "surrogateescape") for one in texts)
            and self.identity.startswith("/") and self.root.startswith("/") and self.cwd.startswith("/")
            and self.state in get_args(State) and self.owner in get_args(Owner)
            and self.launcher in ("tmux", "process", "") and isinstance(self.seeded, bool)
            and (bool(server_url(self.url)) if self.url else self.state != "running")
            and bool(f"{self.username}:{self.password}".encode())
            and _is_number(self.port, int, 65535)
            and all(one is None or _is_number(one, int, 2**31 - 1) for one in (self.pid, self.launch_pid))
            and _is_number(self.launched_at, (int, float), 1e11)
            and (self.started_at is None or _is_number(self.started_at, (int, float), 1e11))
        )


class Registry:
    """Records by repository identity."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._told: set[str] = set()
        """Rows whose record was logged as broken."""

    async def get(self, identity: str) -> Record | None:
        key = _key(identity)
        row = await self._store.run(lambda db: db.execute(
            "SELECT CAST(record AS BLOB) FROM instances WHERE identity = ?", (key,)).fetchone())
        return self._read(key, row[0]) if row else None

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
            "SELECT CAST(identity AS BLOB), CAST(record AS BLOB) FROM instances ORDER BY identity").fetchall())
        found = (self._read(key.decode("utf-8", "replace"), text) for key, text in rows)
        return [record for record in found if record]

    def _read(self, key: str, text: bytes) -> Record | None:
        """The record of a row; a broken one counts as none, so that it keeps nothing from working."""
        record = Record.from_json(text)
        if record is not None and _key(record.identity) == key:
            return record
        if key not in self._told:
            self._told.add(key)
            log.warning("The record of the OpenCode of %s is broken and not looked at.", key)
        return None


def _is_number(value: Any, kind: type | tuple[type, ...], most: float) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool) and 0 <= value <= most


def _key(identity: str) -> str:
    # A path that is not UTF-8 carries lone surrogates, which SQLite refuses.
    return identity.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
