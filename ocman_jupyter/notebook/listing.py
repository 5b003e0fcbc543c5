"""The worktrees of a repository with their sessions, as a list and events tell them."""

from __future__ import annotations

import os
from typing import Any

from .gone import doubtful
from .states import urgency, worst

Json = dict[str, Any]


class Listing:
    """A ``GET worktrees`` answer, kept up to date by events."""

    def __init__(self, answer: Json) -> None:
        self.root = str(answer.get("repo_root") or "")
        self.worktrees: dict[str, Json] = {}
        self.sessions: dict[str, Json] = {}
        self.asks: dict[str, Json] = {}
        self.load(answer)

    def load(self, answer: Json) -> None:
        """Begin again from ``answer``."""
        found = [s for w in answer.get("worktrees") or [] for s in w.get("sessions") or []]
        found += answer.get("sessions_elsewhere") or []
        self.worktrees = {
            w["path"]: {key: value for key, value in w.items() if key != "sessions"} for w in answer["worktrees"]
        }
        self.sessions = {session["id"]: session for session in found}
        self.asks = {str(ask["id"]): ask for session in found for ask in session.get("pending") or []}

    def event(self, event: Json) -> bool:
        """Take what happened; whether anything is new."""
        kind, data = str(event.get("type")), event.get("data") or {}
        if kind == "session.updated":
            return self._session(data)
        if kind in ("session.status", "session.removed"):
            session = self.sessions.get(str(data.get("id")))
            if session is None:
                return False
            if kind == "session.removed":
                del self.sessions[session["id"]]
                self._forget(session["id"])
            else:
                self.sessions[session["id"]] = {**session, "status": data.get("status"), "error": data.get("error")}
            return True
        if kind == "ask.created":
            if data.get("session_id") not in self.sessions or not data.get("id"):
                return False
            self.asks[str(data["id"])] = data
            return True
        if kind == "ask.resolved":
            return self.asks.pop(str(data.get("id")), None) is not None
        if kind in ("worktree.changed", "worktree.removed") and data.get("repo_root") == self.root:
            if kind == "worktree.removed":
                return self.worktrees.pop(str(data.get("path")), None) is not None
            known = {key: value for key, value in data.items() if key not in ("repo_root", "sessions")}
            self.worktrees[str(data["path"])] = {**self.worktrees.get(str(data["path"]), {}), **known}
            return True
        return False

    def doubtful(self, event: Json) -> bool:
        """Whether ``event`` tells that a folder came or went that no event told of."""
        return doubtful(event, self.sessions.values(), self.worktrees)

    def _session(self, session: Json) -> bool:
        if session.get("repo_root") != self.root or session.get("parent_id"):
            return False
        self.sessions[session["id"]] = session
        self._forget(session["id"])
        self.asks.update({str(ask["id"]): ask for ask in session.get("pending") or []})
        return True

    def _forget(self, session_id: str) -> None:
        self.asks = {key: ask for key, ask in self.asks.items() if ask.get("session_id") != session_id}

    # --- as it is shown ----------------------------------------------------------------------

    def rows(self) -> list[tuple[Json | None, list[Json]]]:
        """Each worktree with its sessions: what needs the user first, then what works, then the newest; sessions
        of no worktree come last, beside ``None``."""
        homes: dict[str | None, list[Json]] = {path: [] for path in self.worktrees}
        for session in self.sessions.values():
            homes.setdefault(self.home(session), []).append(session)
        rows: list[tuple[Json | None, list[Json]]] = []
        for path, sessions in homes.items():
            sessions.sort(key=lambda s: (urgency(self.state(s)), str(s.get("updated") or "")), reverse=True)
            rows.append((self.worktrees[path] if path is not None else None, sessions))
        return sorted(rows, key=self._rank, reverse=True)

    def home(self, session: Json) -> str | None:
        """The worktree in which a session works: the deepest one that holds its directory."""
        path = str(session.get("directory") or "")
        while path not in self.worktrees:
            above = os.path.dirname(path)
            if above == path:
                return None
            path = above
        return path

    def state(self, session: Json) -> str:
        """A session's state; one that asks needs the user, whatever else was heard of it."""
        if any(ask.get("session_id") == session["id"] for ask in self.asks.values()):
            return "needs_you"
        return str(session.get("status") or "unknown")

    def _rank(self, row: tuple[Json | None, list[Json]]) -> tuple[bool, int, str]:
        worktree, sessions = row
        state = worst([{"status": self.state(s)} for s in sessions])
        last = max((str(s.get("updated") or "") for s in sessions), default="")
        return worktree is not None, urgency(state), last or str((worktree or {}).get("last_activity") or "")

    def waiting(self) -> list[Json]:
        """The asks, the oldest first."""
        return sorted(self.asks.values(), key=lambda ask: str(ask.get("created") or ""))
