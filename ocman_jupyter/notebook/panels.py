"""``ocman.SessionPanel``: a session in a cell, live."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

import ipywidgets as W

from ..errors import NoSuchSession, OcmanError, OpenCodeUnreachable
from . import api, live, markup
from .answering import AskBox, close, line, wide
from .conversation import MESSAGES, Conversation, unseen
from .panel import Panel

if TYPE_CHECKING:
    from .verbs import Verbs

Json = dict[str, Any]

FINISHED = "The turn is over."
NO_OPENCODE = "No OpenCode runs for this repository: a message starts it."


class SessionPanel(Panel):
    """A session: its last turns as they grow, its todo list, what it asks, and a place to write to it.

    Parameters
    ----------
    session:
        Id, title, branch or path, or the beginning of one; without it the session that was made last.
    directory:
        The repository in which it is looked for.
    """

    def __init__(
        self,
        session: str | None = None,
        *,
        directory: str | None = None,
        _verbs: Verbs | None = None,
        _known: Json | None = None,
    ) -> None:
        verbs = _verbs or api.DESK.verbs()
        super().__init__(verbs)
        self._widgets: dict[str, W.HTML] = {}
        self._held: list[Json] | None = None
        """Events that came while everything was read."""
        self._notice = ""
        self._mine: set[str] = set()
        self._turns = 0
        self._loaded = False
        if _known is not None:
            self._seen = Conversation(_known)
        else:
            self._seen = live.call(lambda reports: self._find(session, directory), session or "session")

    @classmethod
    def made(cls, result: Json, verbs: Verbs) -> SessionPanel:
        """The panel of what ``POST worktrees`` answered; it reads the rest once it is shown."""
        path = result["worktree_path"]
        bare = {"id": result["session_id"], "title": result["branch"], "directory": path, "status": "unknown"}
        panel = cls(_verbs=verbs, _known=result.get("session") or bare)
        panel._seen.worktree = {"path": path, "name": os.path.basename(path), "branch": result["branch"]}
        return panel

    @property
    def session_id(self) -> str:
        """The session's id."""
        return self._seen.id

    @property
    def sessions(self) -> set[str]:  # type: ignore[override]
        return {self._seen.id}

    async def _find(self, session: str | None, directory: str | None) -> Conversation:
        found = await self._verbs.get_session(session, directory=directory)
        self._seen = Conversation(found.data)
        await self._read()
        return self._seen

    def __repr__(self) -> str:
        return markup.plain(self._seen)

    # --- what is known -----------------------------------------------------------------------

    async def _load(self) -> None:
        self._held = []
        try:
            await self._read()
        except NoSuchSession:
            self._seen.removed = True
            raise
        finally:
            held, self._held = self._held, None
            self._catch_up(held)
        if not self._loaded:
            self._loaded = True
            self.save()

    async def _read(self) -> None:
        client, session_id = self._verbs.client, self._seen.id
        session = await client.session(session_id)
        history, todos, listing = await asyncio.gather(
            client.messages(session_id, MESSAGES),
            client.todos(session_id),
            client.worktrees(session["directory"], True),
            return_exceptions=True,
        )
        for problem in (history, todos, listing):
            if isinstance(problem, BaseException) and not isinstance(problem, OcmanError):
                raise problem
        self._seen.load(session, _of(history, "messages"), _of(todos, "todos"))
        for worktree in _of(listing, "worktrees") or []:
            if worktree["path"] == session["directory"]:
                self._seen.worktree = {key: value for key, value in worktree.items() if key != "sessions"}
        if isinstance(history, OpenCodeUnreachable):
            self._notice = NO_OPENCODE
        elif isinstance(history, OcmanError):
            raise history
        elif self._notice == NO_OPENCODE:
            self._notice = ""

    def _catch_up(self, held: list[Json]) -> None:
        """What came while everything was read, which may hold it already."""
        deltas: dict[tuple[str, str], str] = {}
        for event in held:
            data = event.get("data") or {}
            if event.get("type") != "message.delta":
                self._seen.event(event)
            elif data.get("field") == "text":
                key = (str(data.get("message_id")), str(data.get("part_id")))
                deltas[key] = deltas.get(key, "") + str(data.get("delta") or "")
        for (message_id, part_id), text in deltas.items():
            parts = (self._seen.messages.get(message_id) or {}).get("parts") or []
            there = next((str(part.get("text") or "") for part in parts if part.get("id") == part_id), "")
            data = {"session_id": self._seen.id, "message_id": message_id, "part_id": part_id, "field": "text"}
            self._seen.event({"type": "message.delta", "data": {**data, "delta": unseen(there, text)}})

    def take(self, event: Json) -> bool:
        if self._held is not None:
            self._held.append(event)
            return False
        doubtful = self._seen.doubtful(event)
        self._seen.event(event)
        if doubtful:
            self.reload()
        return bool(self._seen.changed)

    # --- widgets -----------------------------------------------------------------------------

    def _build(self) -> list[W.Widget]:
        self._head = W.HTML(markup.header(self._seen), layout=wide())
        self._todos = W.HTML(layout=wide())
        self._log = W.VBox([], layout=W.Layout(width="100%", flex="0 0 auto"))
        # In a reversed column the view stays at its end while that grows.
        window = W.VBox(
            [self._log],
            layout=W.Layout(width="100%", max_height="30em", overflow="auto", flex_flow="column-reverse"),
        )
        self._said = W.HTML(layout=wide())
        self._asks = AskBox(self._reply, self.act)
        self._text = W.Textarea(
            placeholder=f"Message to {markup.place(self._seen.session, None)}",
            continuous_update=False,
            rows=2,
            layout=W.Layout(width="auto", flex="1 1 12em"),
        )
        self._send = W.Button(description="Send", button_style="primary", layout=_button())
        self._stop = W.Button(description="Stop", tooltip="Stop what the session does", layout=_button())
        self._send.on_click(lambda _: self._send_clicked())
        self._stop.on_click(lambda _: self.act(self._abort()))
        composer = W.HBox([self._text, self._send, self._stop], layout=W.Layout(width="100%", flex_flow="row wrap"))
        self._seen.changed |= {"session", "todos", "asks", "messages", *self._seen.messages}
        return [self._head, self._todos, window, self._said, self._asks.box, composer]

    def draw(self) -> None:
        seen, changed = self._seen, self._seen.changed
        seen.changed = set()
        if "messages" in changed or changed & seen.messages.keys():
            self._draw_messages(changed)
        if "todos" in changed:
            _set(self._todos, "value", markup.todos(seen.todos))
        if "session" in changed:
            _set(self._head, "value", markup.header(seen))
            if seen.session.get("error") and seen.status == "error":
                self._notice = f"✗ {seen.session['error']}"
            elif self._notice.startswith("✗"):
                self._notice = ""
        self._draw_asks("asks" in changed)
        ended, self._turns = seen.turns_ended > self._turns, seen.turns_ended
        if seen.working and self._notice == FINISHED:
            self._notice = ""
        elif ended and not self._notice and not seen.working:
            self._notice = FINISHED
        _set(self._said, "value", line(self._notice))
        _set(self._send, "description", "Queue" if seen.working else "Send")
        _set(self._send, "disabled", self.offline or seen.removed)
        _set(self._send, "tooltip", "Wait until the connection is back" if self.offline else "Send the message")
        _set(self._stop, "disabled", not seen.working or self.offline or seen.removed)
        if ended or ("asks" in changed and self._loaded):
            self.save()

    def _draw_messages(self, changed: set[str]) -> None:
        seen = self._seen
        directory = str(seen.session.get("directory") or "")
        gone = [self._widgets.pop(key) for key in list(self._widgets) if key not in seen.messages]
        for key, message in seen.messages.items():
            known = self._widgets.get(key)
            if known is None:
                value = markup.message(message, directory)
                self._widgets[key] = W.HTML(value, layout=W.Layout(width="100%", margin="0"))
            elif key in changed:
                _set(known, "value", markup.message(message, directory))
        shown = tuple(self._widgets[key] for key in seen.messages if self._widgets[key].value)
        if shown != self._log.children:
            self._log.children = shown
        for widget in gone:
            close(widget)

    def _draw_asks(self, changed: bool) -> None:
        seen = self._seen
        if changed:
            for key, reply in seen.resolved.items():
                if key not in self._mine:
                    self._notice = markup.resolved(reply)
            seen.resolved.clear()
            if seen.asks and not self._notice.startswith("✗"):
                self._notice = ""
        self._asks.show(list(seen.asks.values()), self.offline)

    # --- what the user does ------------------------------------------------------------------

    def _send_clicked(self) -> None:
        text = self._text.value
        if text.strip() and not self.offline:
            self._text.value = ""  # now: what is written meanwhile is the next message
            self.act(self._prompt(text))

    async def _prompt(self, text: str) -> None:
        try:
            answer = await self._verbs.client.prompt(self._seen.id, {"text": text})
        except OcmanError:
            written = self._text.value
            self._text.value = f"{text}\n{written}" if written else text
            raise
        self._notice = "Queued behind the running turn." if answer.get("queued") else ""

    async def _abort(self) -> None:
        await self._verbs.client.abort(self._seen.id)

    async def _reply(self, ask: Json, body: Json) -> None:
        self._mine.add(ask["id"])
        try:
            self._notice = await self.answer(ask, body)
        except OcmanError:
            self._mine.discard(ask["id"])
            raise
        self._seen.asks.pop(ask["id"], None)
        self._seen.changed |= {"asks", "session"}

    # --- the saved view ----------------------------------------------------------------------

    def still(self) -> tuple[str, str]:
        return markup.STYLE + markup.still(self._seen), markup.plain(self._seen)

    def note(self) -> str:
        title = markup.foreign(self._seen.session.get("title") or "untitled")
        return f"<div>Session {title}: run this cell for the live panel.</div>"

    def shut(self) -> None:
        self._widgets.clear()


def _of(answer: Any, key: str) -> Any:
    return None if isinstance(answer, BaseException) else answer.get(key) or []


def _set(widget: W.Widget, name: str, value: Any) -> None:
    if getattr(widget, name) != value:
        setattr(widget, name, value)


def _button() -> W.Layout:
    return W.Layout(width="auto", min_height="28px")
