"""A session's messages as text that only ever grows: streamed words, one line a tool call, asks where they
come.

Reads messages and events as the REST contract tells them; every word is cleaned of terminal controls.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from .asking import deed, granted
from .text import clean, one_line

Json = dict[str, Any]


class Transcript:
    """Turns messages and events into text for ``say``.  Seen things are not said twice.

    Parameters
    ----------
    say:
        Given each new piece of text, in order.
    how:
        What a user types before a verb: ``%ocman`` or ``ocman-jupyter``.
    directory:
        Paths of tools are shown relative to it.
    """

    def __init__(self, say: Callable[[str], None], how: str = "%ocman", directory: str = "") -> None:
        self._say = say
        self._how = how
        self._directory = directory
        self._said: dict[str, str] = {}  # text of each text part so far; status of each tool part
        self._kinds: dict[str, str] = {}
        self._asks: set[str] = set()
        self._at_line_start = True
        self._last_part = ""

    def event(self, event: Json) -> None:
        """Say what ``event`` adds."""
        kind, data = event.get("type"), event.get("data") or {}
        if kind == "message.updated":
            self.message(data.get("message") or {})
        elif kind == "message.delta":
            part = str(data.get("part_id"))
            if data.get("field") == "text" and self._kinds.get(part) == "text":
                self._text(part, self._said.get(part, "") + str(data.get("delta") or ""))
        elif kind == "ask.created":
            self.ask(data)
        elif kind == "session.updated":
            self._directory = data.get("directory") or self._directory
            for ask in data.get("pending") or []:
                self.ask(ask)

    def message(self, message: Json) -> None:
        """Say what ``message`` (the whole of it so far) adds."""
        info = message.get("info") or {}
        for part in message.get("parts") or []:
            key, kind = str(part.get("id")), str(part.get("type"))
            if part.get("synthetic") or part.get("ignored"):
                continue
            self._kinds[key] = kind
            if kind == "text" and info.get("role") == "user":
                if key not in self._said:
                    self._said[key] = "said"
                    self._line(f"you: {one_line(part.get('text'), 200)}")
            elif kind == "text":
                self._text(key, str(part.get("text") or ""))
            elif kind == "tool":
                self._tool(key, part)
        if (error := failure(info)) and self._said.get(str(info.get("id"))) != error:
            self._said[str(info.get("id"))] = error
            self._line(f"error: {one_line(error, 400)}")

    def failed(self, error: str) -> None:
        """A turn that failed outside of any message."""
        self._line(f"! failed: {one_line(error, 400)}")

    def ask(self, ask: Json) -> None:
        """Say that the session needs the user, once for each ask."""
        if ask.get("id") in self._asks:
            return
        self._asks.add(str(ask.get("id")))
        self._line(f"! needs you: {describe_ask(ask)}")
        choice = "--answer LABEL" if ask.get("kind") == "question" else "once|always|reject"
        self._line(f"  {self._how} reply {one_line(ask.get('id'))} {choice}")

    def end(self) -> None:
        """Finish a begun line."""
        if not self._at_line_start:
            self._write("\n")

    def _text(self, key: str, text: str) -> None:
        before = self._said.get(key, "")
        if len(text) <= len(before) or not text.startswith(before):
            return
        if self._last_part != key:
            self.end()
        self._said[key] = text
        self._write(clean(text[len(before) :]))
        self._last_part = key

    def _tool(self, key: str, part: Json) -> None:
        state = part.get("state") or {}
        status = str(state.get("status"))
        before = self._said.get(key)
        if status == before or status == "pending" or before in ("completed", "error"):
            return
        self._said[key] = status
        line = f"> {one_line(part.get('tool'), 30)}  {one_line(subject(state, self._directory), 120)}".rstrip()
        if status == "running":
            self.end()
            self._write(line)
        else:
            result = f"  {outcome(state)}"
            # The line that was begun is finished when nothing came in between.
            self._write(
                (result if before and self._last_part == key and not self._at_line_start else "")
                or ("" if self._at_line_start else "\n") + line + result
            )
            self._write("\n")
            if status == "error":
                self._line(f"  {one_line(state.get('error'), 300)}")
        self._last_part = key

    def _line(self, text: str) -> None:
        self.end()
        self._write(text + "\n")
        self._last_part = ""

    def _write(self, text: str) -> None:
        if text:
            self._at_line_start = text.endswith("\n")
            self._say(text)


def subject(state: Json, directory: str = "") -> str:
    """What a tool call is about, from its ``state``; paths are relative to ``directory``."""
    given = state.get("input") or {}
    for name in ("command", "filePath", "pattern", "url", "query", "description"):
        if isinstance(given.get(name), str) and given[name]:
            value = given[name]
            if name == "filePath" and directory and value.startswith(directory + os.sep):
                value = value[len(directory) + 1 :]
            return value
    return str(state.get("title") or "")


def outcome(state: Json) -> str:
    """How a tool call that is over ended, and how long it took."""
    time = state.get("time") or {}
    took = (time["end"] - time["start"]) / 1000 if time.get("end") and time.get("start") else 0
    return ("ok" if state.get("status") == "completed" else "failed") + (f" {took:.1f} s" if took >= 0.1 else "")


def failure(info: Json) -> str | None:
    """What went wrong with a message, or ``None``."""
    error = info.get("error")
    if not error:
        return None
    if not isinstance(error, dict):
        return str(error)
    data = error.get("data") if isinstance(error.get("data"), dict) else {}
    return str(data.get("message") or error.get("message") or error.get("name") or "failed")


def words(message: Json) -> str:
    """The text that a message says, without its tool calls and thoughts."""
    parts = [part for part in message.get("parts") or [] if part.get("type") == "text"]
    return "\n".join(str(part.get("text") or "") for part in parts if not part.get("synthetic")).strip()


def describe_ask(ask: Json) -> str:
    """One line that says what is asked, and what "always" would allow."""
    if ask.get("kind") == "question":
        questions = [
            one_line(question.get("question") or question.get("header")) for question in ask["questions"]
        ]
        return " / ".join(questions) or "a question"
    what, found = deed(ask)
    text = f"{one_line(what, 40)} {one_line(found)}"
    if ask.get("always"):
        patterns = ", ".join(one_line(pattern) for pattern in ask["always"])
        text += f"; always would allow {one_line(granted(ask))} {patterns}"
    return text.strip()
