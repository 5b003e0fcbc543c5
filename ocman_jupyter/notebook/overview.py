"""``ocman.Worktrees``: the worktrees of a repository in a cell, live."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

import ipywidgets as W

from ..errors import InvalidRequest
from . import api, live, markup, views
from .answering import AskBox, close, line, wide
from .listing import Listing
from .panel import Panel
from .panels import SessionPanel
from .states import changes, distance, urgency, worst
from .text import age, clean, escape, one_line
from .verbs import absolute

if TYPE_CHECKING:
    from .verbs import Verbs

Json = dict[str, Any]

ROWS = 40
"""How many worktrees are shown before the rest is asked for."""
SESSIONS = 3
"""How many sessions of a worktree are shown; those that work or need the user are always."""
CLOCK = 30.0
"""Seconds after which ages are told anew."""


class Worktrees(Panel):
    """The worktrees and sessions of a repository, what needs the user, and a form for a new one.

    Parameters
    ----------
    directory:
        Any directory of the repository; without it the working directory.
    """

    def __init__(self, directory: str | None = None, *, _verbs: Verbs | None = None) -> None:
        super().__init__(_verbs or api.DESK.verbs())
        self._directory = absolute(directory)
        self._rows: dict[str, tuple[W.HBox, W.HTML, W.Button | None]] = {}
        self._notice = ""
        self._more = 0
        self._opened: SessionPanel | None = None
        self._clock: asyncio.TimerHandle | None = None
        self._saved: tuple[set[str], set[str]] | None = None
        """What asked and what worked when it was drawn last."""
        self._list = Listing(live.call(lambda reports: self._read(), "worktrees"))

    def __repr__(self) -> str:
        return self.still()[1]

    async def _read(self) -> Json:
        return await self._verbs.client.worktrees(self._directory)

    # --- what is known -----------------------------------------------------------------------

    async def _load(self) -> None:
        self._list.load(await self._read())

    def take(self, event: Json) -> bool:
        data = event.get("data") or {}
        fresh = event.get("type") == "session.updated" and data.get("id") not in self._list.sessions
        doubtful = self._list.doubtful(event)
        new = self._list.event(event)
        if doubtful:
            self.reload()
        elif new and fresh and self._list.home(data) is None:
            self.reload()  # its worktree was made meanwhile
        return new

    # --- widgets -----------------------------------------------------------------------------

    def _build(self) -> list[W.Widget]:
        self._head = W.HTML(layout=wide())
        self._asks = AskBox(self._reply, self.act, named=True)
        self._said = W.HTML(layout=wide())
        self._table = W.VBox([], layout=W.Layout(width="100%", max_height="32em", overflow="auto", display="block"))
        self._rest = W.Button(description="Show more", layout=W.Layout(width="auto", display="none"))
        self._rest.on_click(lambda _: self._show_more())
        self._branch = W.Text(placeholder="Branch", layout=W.Layout(width="16em"))
        self._prompt = W.Textarea(
            placeholder="What to do (may stay empty)",
            rows=2,
            continuous_update=False,
            layout=W.Layout(width="auto", flex="1 1 14em"),
        )
        self._make = W.Button(description="New worktree session", button_style="primary", layout=_button())
        self._make.on_click(lambda _: self._make_clicked())
        self._progress = W.HTML(layout=wide())
        form = W.HBox([self._branch, self._prompt, self._make], layout=W.Layout(width="100%", flex_flow="row wrap"))
        self._slot = W.VBox([], layout=wide())
        return [self._head, self._asks.box, self._said, self._table, self._rest, form, self._progress, self._slot]

    def draw(self) -> None:
        _set(self._head, markup.wrap(_header(self._list)))
        self._asks.show(self._list.waiting(), self.offline)
        _set(self._said, line(self._notice))
        self._draw_rows()
        self._make.disabled = self.offline
        self._save_when_it_matters()
        if self._clock is None:
            self._clock = asyncio.get_running_loop().call_later(CLOCK, self._tick)

    def _save_when_it_matters(self) -> None:
        asks = set(self._list.asks)
        working = {key for key, s in self._list.sessions.items() if s.get("status") in ("busy", "needs_you")}
        before, self._saved = self._saved, (asks, working)
        if before is not None and (asks - before[0] or before[1] - working):
            self.save()

    def _tick(self) -> None:
        self._clock = None
        if self._box is not None and self._box.comm is not None:
            self.redraw()

    def _draw_rows(self) -> None:
        rows = self._list.rows()
        limit = ROWS + self._more
        wanted: dict[str, tuple[str, Json | None]] = {}
        for worktree, sessions in rows[:limit]:
            wanted[worktree["path"] if worktree else ""] = (_worktree(worktree, sessions, self._list), None)
            for session in shown(sessions, self._list):
                wanted[session["id"]] = (_session(session, self._list.state(session)), session)
        for key in [key for key in self._rows if key not in wanted]:
            close(self._rows.pop(key)[0])
        for key, (html, session) in wanted.items():
            if key in self._rows:
                _set(self._rows[key][1], html)
            else:
                self._rows[key] = self._row(html, session)
        children = tuple(self._rows[key][0] for key in wanted)
        if children != self._table.children:
            self._table.children = children
        left = len(rows) - limit
        self._rest.layout.display = "none" if left <= 0 else ""
        if left > 0:
            self._rest.description = f"Show more ({left} not shown)"

    def _row(self, html: str, session: Json | None) -> tuple[W.HBox, W.HTML, W.Button | None]:
        text = W.HTML(html, layout=W.Layout(flex="1 1 auto", width="auto", min_width="0"))
        button = None
        if session is not None:
            # Names on buttons are other people's: text, never HTML.
            title = one_line(session.get("title") or "untitled", 80)
            button = W.Button(description="Open", tooltip=f"Open {clean(title)}", layout=_button())
            button.on_click(lambda _: self.act(self._open(session["id"])))
        row = W.HBox([text, *([button] if button else [])], layout=W.Layout(width="100%", align_items="center"))
        return row, text, button

    # --- what the user does ------------------------------------------------------------------

    def _show_more(self) -> None:
        self._more += ROWS
        self.act(_nothing())

    async def _open(self, session_id: str) -> None:
        known = self._list.sessions.get(session_id) or await self._verbs.client.session(session_id)
        panel = SessionPanel(_verbs=self._verbs, _known=known)
        before, self._opened = self._opened, panel
        self._slot.children = (panel.widget,)
        if before is not None:
            before.close()

    def _make_clicked(self) -> None:
        branch, prompt = self._branch.value.strip(), self._prompt.value.strip()
        if not self._make.disabled:
            self._make.disabled = True
            self.act(self._create(branch, prompt or None))

    async def _create(self, branch: str, prompt: str | None) -> None:
        try:
            if not branch:
                raise InvalidRequest("A new worktree needs the name of a branch.")
            made = await self._verbs.worktree(
                branch, prompt, directory=self._directory, progress=self._telling(branch)
            )
            self._branch.value = self._prompt.value = ""
            self._notice = made.happened()
        finally:
            self._make.disabled = self.offline
            self._progress.value = ""
        self.reload()
        if made.data.get("session_id"):
            await self._open(made.data["session_id"])

    def _telling(self, branch: str) -> Any:
        loop = asyncio.get_running_loop()

        def show(message: str, fraction: float | None) -> None:
            done = f" {fraction:.0%}" if fraction is not None else ""
            self._progress.value = line(f"{one_line(branch, 60)}: {one_line(message, 80)}{done}")

        def tell(message: str, fraction: float | None = None) -> None:
            loop.call_soon_threadsafe(show, message, fraction)

        tell("starting")
        return tell

    async def _reply(self, ask: Json, body: Json) -> None:
        self._notice = await self.answer(ask, body)
        self._list.asks.pop(ask["id"], None)

    # --- the saved view ----------------------------------------------------------------------

    def still(self) -> tuple[str, str]:
        data = {"worktrees": [], "sessions_elsewhere": []}
        for worktree, sessions in self._list.rows():
            if worktree is None:
                data["sessions_elsewhere"] = sessions
            else:
                data["worktrees"].append({**worktree, "sessions": sessions})
        table = views.WorktreeList(data, self._verbs)
        asks = [views.Ask(ask, self._verbs).lines()[0] for ask in self._list.waiting()]
        html = [markup.wrap(f"<h4>Worktrees of {markup.foreign(self._list.root, 200)}</h4>")]
        html += [markup.wrap(escape(ask), "ocman-nb-needs") for ask in asks]
        html += [markup.wrap(table._repr_html_()), markup.as_of()]
        plain = [*map(clean, asks), repr(table), f"as of {markup.when()}"]
        return markup.STYLE + "".join(html), "\n".join(plain)

    def note(self) -> str:
        return f"<div>Worktrees of {markup.foreign(self._list.root, 200)}: run this cell for the live panel.</div>"

    def shut(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
        if self._opened is not None:
            self._opened.close()
        self._rows.clear()


def shown(sessions: list[Json], listing: Listing) -> list[Json]:
    """The sessions of a worktree that get a row."""
    urgent = [s for s in sessions if urgency(listing.state(s)) > urgency("unknown")]
    return urgent + [s for s in sessions if s not in urgent][: max(0, SESSIONS - len(urgent))]


def _header(listing: Listing) -> str:
    states = [listing.state(session) for session in listing.sessions.values()]
    needs, busy = states.count("needs_you"), states.count("busy")
    trees = len(listing.worktrees)
    counts = [f"{trees} worktree{_s(trees)}", f"{len(states)} session{_s(len(states))}"]
    counts += [f"{busy} busy"] if busy else []
    counts += [f"{needs} need{'s' if needs == 1 else ''} you"] if needs else []
    return f"<h4>{markup.foreign(os.path.basename(listing.root) or listing.root)}</h4><div>{' · '.join(counts)}</div>"


def _s(count: int) -> str:
    return "" if count == 1 else "s"


def _worktree(worktree: Json | None, sessions: list[Json], listing: Listing) -> str:
    state = worst([{"status": listing.state(s)} for s in sessions])
    sign = f" {markup.mark(state)}" if state and state != "idle" else ""
    left = len(sessions) - len(shown(sessions, listing))
    more = f' <span class="ocman-nb-muted">(+{left} more session{_s(left)})</span>' if left else ""
    if worktree is None:
        return markup.wrap(f"<b>Elsewhere</b>{more}")
    name = str(worktree.get("branch") or worktree.get("name"))
    facts = " · ".join(filter(None, (changes(worktree), distance(worktree))))
    main = " (main)" if worktree.get("is_main") else ""
    return markup.wrap(f"<b>{markup.foreign(name)}</b>{main} {escape(facts)}{sign}{more}")


def _session(session: Json, state: str) -> str:
    title = markup.foreign(session.get("title") or "untitled", 80)
    error = session.get("error")
    failed = f' <span class="ocman-nb-muted">{escape(one_line(error, 160))}</span>' if error else ""
    old = f'<span class="ocman-nb-muted">{escape(age(session.get("updated")))}</span>'
    return markup.wrap(f'<div style="padding-left:1.5em">{markup.mark(state)} {title} {old}{failed}</div>')


async def _nothing() -> None:
    """What is shown is drawn anew after each thing that the user does."""


def _set(widget: W.HTML, value: str) -> None:
    if widget.value != value:
        widget.value = value


def _button() -> W.Layout:
    return W.Layout(width="auto", min_height="28px")
