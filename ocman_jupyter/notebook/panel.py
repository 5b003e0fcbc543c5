"""What all panels do: widgets that follow the events, drawn a few times a second, and the view that is saved.

Drawing happens on the background loop, so a panel is live while a cell runs and no interrupt reaches it; what
the user does with a widget only starts work there.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
import uuid
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

import ipywidgets as W

from ..errors import NotFound, OcmanError
from . import markup
from .answering import close, line, wide
from .asking import outcome
from .stage import CELLS, WIDGET_VIEW, Still, in_notebook
from .worker import WORKER

if TYPE_CHECKING:
    from .verbs import Verbs

Json = dict[str, Any]

PAUSE = 0.25
"""Seconds between two drawings; the first after a rest comes at once."""

log = logging.getLogger(__name__)


class Panel:
    """Something live.  Its widgets are made, and it begins to follow, when it is first shown.

    It is live until it is closed, until the cell that shows it is run again, or until its widgets are gone and
    nobody holds it.
    """

    def __init__(self, verbs: Verbs) -> None:
        self._verbs = verbs
        self._key = uuid.uuid4().hex[:12]
        self._still = Still(self._key)
        self._lock = threading.Lock()
        self._box: W.VBox | None = None
        self._closed = False
        self._timer: asyncio.TimerHandle | None = None
        self._drawn = 0.0
        self._loading: asyncio.Task[None] | None = None
        self._again = False
        self._lost: OcmanError | None = None
        self._ended = False
        self._trouble = ""
        self._unread = False
        """The trouble is that reading failed."""
        self._saving: set[asyncio.Task[None]] = set()
        self._saver = asyncio.Lock()

    # --- for the user ------------------------------------------------------------------------

    @property
    def widget(self) -> W.VBox:
        """The widget, to be put into a layout of one's own."""
        with self._lock:
            if self._box is None:
                self._connection = W.HTML(layout=wide())
                self._error = W.HTML(layout=wide())
                style = W.HTML(markup.STYLE, layout=W.Layout(display="none"))
                self._box = W.VBox([style, *self._build(), self._connection, self._error], layout=wide())
                self._box.add_class(f"ocman-live-{self._key}")
                if not self._closed:
                    WORKER.submit(self._join())
            return self._box

    @property
    def closed(self) -> bool:
        """It is over: what it shows is the last that it knew."""
        return self._closed

    def close(self) -> None:
        """Stop following; the last state stays to be read."""
        running = WORKER.submit(self._close())
        if not WORKER.inside():
            with contextlib.suppress(Exception):
                running.outcome.result(timeout=3)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Json:
        html, plain = self.still()
        return self.show(self.note(), plain) if in_notebook() else {"text/plain": plain, "text/html": html}

    def show(self, html: str, plain: str) -> Json:
        """Put the saved view into the running cell; returns the live view, with ``html`` and ``plain`` for
        viewers that have no widgets."""
        if self._closed:
            return dict(zip(("text/html", "text/plain"), self.still(), strict=True))
        self._still.show(*self.still())
        CELLS.show(self)
        view = self.widget._repr_mimebundle_()[WIDGET_VIEW]
        return {WIDGET_VIEW: view, "text/html": html, "text/plain": plain}

    # --- for each kind of panel --------------------------------------------------------------

    sessions: set[str] = set()

    def _build(self) -> list[W.Widget]:
        """The widgets, once."""
        raise NotImplementedError

    async def _load(self) -> None:
        """Read everything."""
        raise NotImplementedError

    def take(self, event: Json) -> bool:
        """An event; whether anything is new."""
        raise NotImplementedError

    def draw(self) -> None:
        """Bring the widgets up to date."""
        raise NotImplementedError

    def still(self) -> tuple[str, str]:
        """The last known state as HTML and as text."""
        raise NotImplementedError

    def note(self) -> str:
        """One line of HTML that says what is live here."""
        raise NotImplementedError

    def shut(self) -> None:
        """Let go of what the panel holds beside its widgets."""

    # --- a listener of the feed, on the background loop --------------------------------------

    def begun(self) -> None:
        self._lost = None
        self.reload()

    def event(self, event: Json) -> None:
        if self._box is not None and self._box.comm is None:  # somebody closed the widget itself
            WORKER.submit(self._close())
        elif self.take(event):
            self.redraw()

    def lost(self, error: OcmanError, again: bool) -> None:
        self._lost, self._ended = error, not again
        self.redraw()

    @property
    def offline(self) -> bool:
        """Nothing can be sent now."""
        return self._lost is not None

    def reload(self) -> None:
        """Read everything, and once more when that is asked for meanwhile."""
        if self._loading is not None:
            self._again = True
            return
        self._again = False
        self._loading = asyncio.get_running_loop().create_task(self._reload())

    async def _reload(self) -> None:
        try:
            await self._load()
            if self._unread:
                self._trouble, self._unread = "", False
        except OcmanError as error:
            self.fail(error)
            self._unread = True
        except Exception:
            log.exception("a panel could not be read")
        finally:
            self._loading = None
            if not self._closed:
                self.redraw()
                if self._again:
                    self.reload()

    def redraw(self) -> None:
        """Draw soon: at once after a rest, else with what else comes within :data:`PAUSE`."""
        if self._timer is None and not self._closed:
            delay = max(0.0, self._drawn + PAUSE - time.monotonic())
            self._timer = asyncio.get_running_loop().call_later(delay, self._draw)

    def _draw(self) -> None:
        self._timer = None
        if self._closed or self._box is None:
            return
        self._drawn = time.monotonic()
        _set(self._connection, line(self._words_of_loss(), "ocman-nb-needs"))
        _set(self._error, line(self._trouble, "ocman-nb-failed"))
        self.draw()

    def _words_of_loss(self) -> str:
        if self._lost is None:
            return ""
        if self._ended:
            return f"{self._lost.message} {self._lost.hint or ''}"
        return f"Reconnecting: {self._lost.message} What is shown may be old."

    def save(self) -> None:
        """Bring the saved view up to date, and with it the notebook's file once that is saved.

        That changes the notebook: at the end of a turn and when something is asked, never for words that stream.
        """
        task = asyncio.get_running_loop().create_task(self._save())
        self._saving.add(task)
        task.add_done_callback(self._saving.discard)

    async def _save(self) -> None:
        async with self._saver:
            html, plain = self.still()
            with contextlib.suppress(Exception):  # a kernel that ends may have closed its output already
                # Not on the loop: what is shown waits until other output was flushed.
                await asyncio.to_thread(self._still.update, html, plain)

    # --- what the user does ------------------------------------------------------------------

    def act(self, work: Coroutine[Any, Any, Any]) -> None:
        """Run ``work`` on the background loop; its error is shown.  From any thread."""
        WORKER.submit(self._acting(work))

    async def _acting(self, work: Coroutine[Any, Any, Any]) -> None:
        self.fail(None)
        try:
            await work
        except OcmanError as error:
            self.fail(error)
        except Exception as error:
            log.exception("a panel's action failed")
            self._trouble = f"This failed: {type(error).__name__}"
        self.redraw()

    def fail(self, error: OcmanError | None) -> None:
        """Show ``error`` under the panel, or nothing."""
        self._trouble = "" if error is None else f"✗ {error.message}" + (f" → {error.hint}" if error.hint else "")
        self.redraw()

    async def answer(self, ask: Json, body: Json) -> str:
        """Answer an ask; the words for what became of it."""
        try:
            await self._verbs.client.reply(ask["id"], body)
        except NotFound:
            return markup.resolved(None)
        return markup.visible(outcome(ask, body))

    # --- its life ----------------------------------------------------------------------------

    async def _join(self) -> None:
        if not self._closed:
            self._verbs.feed.join(self)
            self.redraw()

    async def _close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._verbs.feed.leave(self)
        for pending in (self._timer, self._loading):
            if pending is not None:
                pending.cancel()
        self._timer = self._loading = None
        self.shut()
        await self._save()
        if self._box is not None:
            close(self._box)


def _set(widget: W.HTML, value: str) -> None:
    if widget.value != value:
        widget.value = value
