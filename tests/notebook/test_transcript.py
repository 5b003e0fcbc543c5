"""Messages and events as text that only grows."""

from __future__ import annotations

from typing import Any

from ocman_jupyter.notebook.transcript import Transcript, failure, words
from tests.notebook.fake import permission, question


def message(role: str, *parts: dict[str, Any], key: str = "msg_1", **info: Any) -> dict[str, Any]:
    return {"info": {"id": key, "role": role, **info}, "parts": list(parts)}


def text(key: str, words: str, **more: Any) -> dict[str, Any]:
    return {"id": key, "type": "text", "text": words, **more}


def tool(key: str, status: str, **state: Any) -> dict[str, Any]:
    return {"id": key, "type": "tool", "tool": "bash", "state": {"status": status, **state}}


class Said:
    def __init__(self, **options: Any) -> None:
        self.pieces: list[str] = []
        self.transcript = Transcript(self.pieces.append, **options)

    def __str__(self) -> str:
        return "".join(self.pieces)

    def delta(self, part: str, words: str) -> None:
        data = {"session_id": "s", "message_id": "m", "part_id": part, "field": "text", "delta": words}
        self.transcript.event({"type": "message.delta", "data": data})

    def updated(self, whole: dict[str, Any]) -> None:
        self.transcript.event({"type": "message.updated", "data": {"session_id": "s", "message": whole}})


def test_streamed_text_is_said_once_however_it_comes() -> None:
    said = Said()
    said.delta("p", "before its message, which will say it")
    said.updated(message("assistant", text("p", "Hel")))
    said.delta("p", "lo")
    said.updated(message("assistant", text("p", "Hello wor")))
    said.updated(message("assistant", text("p", "Hello")))
    said.updated(message("assistant", text("p", "Hello world")))
    said.transcript.end()
    assert str(said) == "Hello world\n"


def test_a_tool_call_is_one_line() -> None:
    said = Said()
    said.updated(message("assistant", tool("t", "pending")))
    said.updated(message("assistant", tool("t", "running", input={"command": "pytest -q"})))
    assert str(said) == "> bash  pytest -q"
    done = tool("t", "completed", input={"command": "pytest -q"}, time={"start": 1000, "end": 4200})
    said.updated(message("assistant", done))
    said.updated(message("assistant", done))
    assert str(said) == "> bash  pytest -q  ok 3.2 s\n"


def test_a_tool_line_that_was_interrupted_is_said_again_with_its_result() -> None:
    said = Said()
    said.updated(message("assistant", tool("t", "running", input={"command": "a"})))
    said.updated(message("assistant", tool("t", "running", input={"command": "a"}), text("p", "so")))
    said.updated(
        message("assistant", tool("t", "error", input={"command": "a"}, error="exit 1"), text("p", "so"))
    )
    assert str(said) == "> bash  a\nso\n> bash  a  failed\n  exit 1\n"


def test_paths_are_relative_to_the_worktree() -> None:
    said = Said(directory="/w/x")
    part = {"id": "t", "type": "tool", "tool": "edit",
            "state": {"status": "completed", "input": {"filePath": "/w/x/a.py"}}}  # fmt: skip
    said.updated(message("assistant", part))
    assert str(said) == "> edit  a.py  ok\n"


def test_prompts_thoughts_and_synthetic_text() -> None:
    said = Said()
    said.updated(message("user", text("u", "do\nit"), text("s", "system words", synthetic=True)))
    said.updated(message("assistant", {"id": "r", "type": "reasoning", "text": "hm"}, key="msg_2"))
    assert str(said) == "you: do it\n"


def test_asks_are_shown_once_with_what_always_would_allow() -> None:
    said = Said(how="ocman-jupyter")
    ask = permission().model_dump(mode="json")
    said.transcript.event({"type": "session.updated", "data": {"pending": [ask], "directory": "/w"}})
    said.transcript.event({"type": "ask.created", "data": ask})
    assert str(said) == (
        "! needs you: outside the worktree: /etc/hosts; always would allow all work on what is at /etc/*\n"
        "  ocman-jupyter reply per_1 once|always|reject\n"
    )
    said.transcript.event({"type": "ask.created", "data": question().model_dump(mode="json")})
    assert "Which column?" in str(said) and "--answer LABEL" in str(said)


def test_agent_text_cannot_drive_the_terminal() -> None:
    said = Said()
    said.updated(
        message(
            "assistant", text("p", "\x1b]0;own\x07ed"), tool("t", "running", input={"command": "\x1b[2J"})
        )
    )
    ask = permission().model_copy(update={"patterns": ["\x1b[1A"]}).model_dump(mode="json")
    said.transcript.event({"type": "ask.created", "data": ask})
    assert "\x1b" not in str(said) and "\x07" not in str(said)


def test_a_failed_message_says_why() -> None:
    said = Said()
    failed = message("assistant", error={"name": "APIError", "data": {"message": "model error 429"}})
    said.updated(failed)
    said.updated(failed)
    assert str(said) == "error: model error 429\n"
    assert failure({}) is None and failure({"error": "x"}) == "x" and failure({"error": {"name": "N"}}) == "N"


def test_words_are_what_the_agent_said() -> None:
    assert (
        words(message("assistant", text("a", "one"), tool("t", "completed"), text("b", "two"))) == "one\ntwo"
    )
