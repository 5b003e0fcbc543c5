"""Asks with buttons: one at a time, what exactly is allowed, and a moment before a click can allow it."""

from __future__ import annotations

import asyncio
import html
import time
from collections.abc import Callable, Coroutine
from typing import Any

import ipywidgets as W

from ..errors import InvalidRequest
from . import markup
from .text import one_line

Json = dict[str, Any]

SETTLE = 0.35
"""Seconds after an ask appears in which nothing allows it: a click that was meant for something else."""


class AskBox:
    """The first of some asks, with what answers it.  :meth:`show` is called on the background loop.

    Parameters
    ----------
    reply:
        Sends the answer ``body`` to an ask.
    act:
        Runs a coroutine on the background loop and shows its error.
    named:
        The asks are of several sessions: say whose.
    """

    def __init__(
        self,
        reply: Callable[[Json, Json], Coroutine[Any, Any, None]],
        act: Callable[[Coroutine[Any, Any, Any]], None],
        named: bool = False,
    ) -> None:
        self.box = W.VBox([], layout=W.Layout(width="100%"))
        self._reply = reply
        self._act = act
        self._named = named
        self._ask: Json | None = None
        self._since = 0.0
        self._text = W.HTML()
        self._allowing: list[W.Button] = []
        self._rejecting: list[W.Button] = []
        self._fields: list[Callable[[], list[str]]] = []
        self._sending = False
        self._offline = False

    @property
    def settled(self) -> bool:
        """The ask was there long enough to be read."""
        return time.monotonic() - self._since >= SETTLE

    def show(self, asks: list[Json], offline: bool = False) -> None:
        """Show the first of ``asks``; the one that is shown stays as long as it is there."""
        self._offline = offline
        keys = [ask["id"] for ask in asks]
        if self._ask is not None and self._ask["id"] in keys:
            number = keys.index(self._ask["id"])
        elif asks:
            number = 0
            self._begin(asks[0])
        else:
            if self._ask is not None:
                self._ask = None
                self._replace([])
            return
        assert self._ask is not None
        self._text.value = markup.ask(self._ask, number + 1, len(asks), self._named)
        self._enable()

    def close(self) -> None:
        """Take the widgets away."""
        self._replace([])
        self.box.close()

    def _begin(self, ask: Json) -> None:
        self._ask, self._since, self._sending = ask, time.monotonic(), False
        self._text = W.HTML(layout=wide())
        self._fields = []
        reject = W.Button(description="Reject", tooltip="Refuse this", layout=_button())
        reject.on_click(lambda _: self._answer({"reply": "reject"}, allows=False))
        self._rejecting = [reject]
        body: list[W.Widget] = [self._text]
        if ask.get("kind") == "question":
            for question in ask.get("questions") or []:
                body += self._question(question)
            send = W.Button(description="Answer", button_style="primary", layout=_button(), disabled=True)
            send.on_click(lambda _: self._answers())
            self._allowing = [send]
        else:
            self._allowing = self._permissions(ask)
        row = W.HBox([*self._allowing, reject], layout=W.Layout(flex_flow="row wrap", width="100%"))
        self._enable()
        self._replace([*body, row])
        asyncio.get_running_loop().call_later(SETTLE + 0.01, self._enable)

    def _permissions(self, ask: Json) -> list[W.Button]:
        # What allows is off from its first moment: it goes to the page before it is enabled.
        once = W.Button(description="Once", tooltip="Allow this once", layout=_button(), disabled=True)
        once.on_click(lambda _: self._answer({"reply": "once"}))
        if not ask.get("always"):
            return [once]
        patterns = markup.visible(", ".join(ask["always"]))
        always = W.Button(
            description=one_line(f"Always {patterns}", 80),
            tooltip=f"Always would allow: {patterns}",
            layout=_button(),
            disabled=True,
        )
        always.on_click(lambda _: self._answer({"reply": "always"}))
        return [once, always]

    def _question(self, question: Json) -> list[W.Widget]:
        labels = [str(option.get("label")) for option in question.get("options") or []]
        # Labels on widgets are cut; the answer is the label as it was given.
        shown = [one_line(markup.visible(label), 80) for label in labels]
        body: list[W.Widget] = [W.HTML(markup.question(question), layout=wide())]
        boxes = [W.Checkbox(description=label, indent=False) for label in shown] if question.get("multiple") else []
        choice = W.Dropdown(
            options=[("Choose an answer", -1), *((label, i) for i, label in enumerate(shown))],
            value=-1,
            layout=W.Layout(width="auto", max_width="100%"),
        )
        body += boxes or ([choice] if labels else [])
        own: W.Text | None = None
        if question.get("custom", True) or not labels:
            own = W.Text(placeholder="Or an answer of your own", layout=wide())
            body.append(own)

        def answers() -> list[str]:
            words = [own.value.strip()] if own is not None and own.value.strip() else []
            if boxes:
                return [label for label, box in zip(labels, boxes, strict=True) if box.value] + words
            return words or ([labels[choice.value]] if choice.value >= 0 else [])

        self._fields.append(answers)
        return body

    def _answers(self) -> None:
        given = [field() for field in self._fields]
        if all(given):
            self._answer({"answers": given})
        else:
            self._act(_unanswered())

    def _answer(self, body: Json, allows: bool = True) -> None:
        ask = self._ask
        if ask is None or self._sending or self._offline or (allows and not self.settled):
            return
        self._sending = True
        self._enable()
        self._act(self._send(ask, body))

    async def _send(self, ask: Json, body: Json) -> None:
        try:
            await self._reply(ask, body)
        finally:
            self._sending = False
            self._enable()

    def _enable(self) -> None:
        """Buttons answer when their time has come and nothing is on its way."""
        ready = not (self._sending or self._offline)
        for button in self._allowing:
            button.disabled = not (ready and self.settled)
        for button in self._rejecting:
            button.disabled = not ready

    def _replace(self, children: list[W.Widget]) -> None:
        before = self.box.children
        self.box.children = children
        for child in before:
            close(child)


def close(widget: W.Widget) -> None:
    """Close a widget with all that is in it: it holds places in the page and in the kernel."""
    for child in getattr(widget, "children", ()):
        close(child)
    for name in ("layout", "style"):
        part = getattr(widget, name, None)
        if isinstance(part, W.Widget):
            part.close()
    widget.close()


def line(text: str, kind: str = "") -> str:
    """One line of HTML that a screen reader says when it appears; empty for no text."""
    return f'<div role="status">{markup.wrap(html.escape(text), kind)}</div>' if text else ""


def wide() -> W.Layout:
    """As wide as what it stands in; with the margin that widgets have it would be wider."""
    return W.Layout(width="100%", margin="2px 0")


async def _unanswered() -> None:
    raise InvalidRequest("Each question needs an answer.")


def _button() -> W.Layout:
    # As wide as its words: what is allowed must be readable.
    return W.Layout(width="auto", max_width="100%", min_height="28px")
