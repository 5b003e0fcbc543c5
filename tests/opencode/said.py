"""What OpenCode says, in short words for tests of the state."""

from __future__ import annotations

from typing import Any

from ocman_jupyter.opencode.changes import MessageUpdated
from ocman_jupyter.opencode.state import InstanceState

W = "/w"
NOW = 1_796_037_400.0


def event(kind: str, directory: str = W, **properties: Any) -> dict[str, Any]:
    return {"directory": directory, "payload": {"type": kind, "properties": properties}}


def session(identity: str, title: str = "t", parent: str | None = None, updated: int = 1) -> dict[str, Any]:
    body = {
        "id": identity,
        "title": title,
        "directory": W,
        "projectID": "p",
        "time": {"created": 1, "updated": updated},
    }
    return {**body, "parentID": parent} if parent else body


def created(identity: str, **more: Any) -> dict[str, Any]:
    return event("session.created", sessionID=identity, info=session(identity, **more))


def status(identity: str, kind: str) -> dict[str, Any]:
    return event("session.status", sessionID=identity, status={"type": kind})


def permission(ask: str, identity: str) -> dict[str, Any]:
    return {
        "id": ask,
        "sessionID": identity,
        "permission": "bash",
        "patterns": ["ls"],
        "always": ["ls *"],
        "metadata": {"k": 1},
    }


def question(ask: str, identity: str) -> dict[str, Any]:
    return {"id": ask, "sessionID": identity, "questions": [{"question": "Which?", "options": []}]}


def made(*events: dict[str, Any]) -> InstanceState:
    state = InstanceState(clock=lambda: NOW)
    for item in events:
        state.apply(item)
    return state


def info(
    message: str, role: str = "assistant", made_ms: float = NOW * 1000 + 1, **more: Any
) -> dict[str, Any]:
    return {"id": message, "sessionID": "ses_1", "role": role, "time": {"created": made_ms}, **more}


def message_event(message: str, **more: Any) -> dict[str, Any]:
    return event("message.updated", sessionID="ses_1", info=info(message, **more))


def part_event(message: str, part: str, text: str = "", end: int | None = None) -> dict[str, Any]:
    body = {
        "id": part,
        "messageID": message,
        "sessionID": "ses_1",
        "type": "text",
        "text": text,
        "time": {"start": 1, **({"end": end} if end else {})},
    }
    return event("message.part.updated", sessionID="ses_1", part=body)


def delta_event(message: str, part: str, text: str) -> dict[str, Any]:
    return event(
        "message.part.delta", sessionID="ses_1", messageID=message, partID=part, field="text", delta=text
    )


def text_of(changes: list[Any]) -> list[str]:
    return [
        part.get("text") for change in changes if isinstance(change, MessageUpdated) for part in change.parts
    ]
