"""Pages at work: a long session is opened, five sessions stream, and a page is left open for minutes."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import Any
from unittest.mock import patch

from ocman_jupyter.demo.model import Turn, next_turn

from .browser import Lab, browser
from .conversations import import_session, prose
from .measure import Row, at_most, at_most_times, median
from .scene import Ends, OpenCode, Scene

OPEN_LIMIT = 1_000.0
TASK_LIMIT = 100.0
STREAMS = 5
DELTAS = 200
"""A second, over all streams."""
WHAT_STREAMS = f"{STREAMS} sessions stream, {DELTAS} deltas a second"
HEAP_GROWTH = 1.05
"""From the first to the last third of the second half: what has a bound has reached it."""
SAMPLES = 6
"""Of the heap, a minute."""

_OPENED = """last => {
  addEventListener('click', event => { ocmanClocks.moments.click = event.timeStamp; }, { capture: true, once: true });
  ocmanClocks.watch('opened', () => {
    const session = document.querySelector('.ocman-Session');
    const field = session?.querySelector('.ocman-Composer textarea');
    if (!field || field.disabled || field.readOnly) {
      return false;
    }
    const ends = [...session.querySelectorAll('[data-ocman-entry]')].slice(-2);
    const end = ends.find(({ textContent }) => textContent.includes(last));
    return !!end && end.getBoundingClientRect().top < innerHeight;
  });
}"""

_SIDE_BY_SIDE = """() => {
  const { shell } = jupyterapp;
  const [first, ...others] = [...shell.widgets('main')].filter(({ node }) => node.matches('.ocman-Session'));
  let ref = first.id;
  for (const [at, widget] of others.entries()) {
    shell.add(widget, 'main', { mode: at === 1 ? 'split-bottom' : 'split-right', ref });
    ref = widget.id;
  }
}"""


def open_session(scene: Scene, repeat: int, messages: int = 2_000) -> list[Row]:
    """From the click on a session's row until its last message is drawn and the next one can be typed."""
    root = scene.repository("tiny")
    title = "A long conversation"
    scene.say(f"a session of {messages:,} messages …")
    import_session(scene, root, title, messages)
    server = scene.server(lab=True)
    opencode = scene.instance(server, root)
    took: list[float] = []
    longest: list[float] = []
    with browser() as chromium:
        for number in range(repeat + 1):
            with Lab(chromium, server, "lab?reset") as lab:
                lab.show_panel()
                lab.settled()
                scene.settle(opencode.pid, server.process.pid)
                lab.page.evaluate(_OPENED, title)
                lab.open_session(title)
                opened, clicked = lab.wait("opened"), lab.wait("click")
                if number:  # the first one is for the server to warm up
                    took.append(opened - clicked)
                    longest.append(max(lab.long_tasks(clicked), default=0))
    case, what = "open session", f"a session of {messages:,} messages, from the click"
    return [
        at_most(case, f"{what} until it is drawn and can be typed into", median(took), "ms", OPEN_LIMIT, repeat),
        Row(case, f"{what}: longest task until it was over", median(longest), "ms", runs=repeat),
    ]


def _spoken(body: dict[str, Any], note: str = "") -> Turn:
    turn = next_turn(body, note)
    return replace(turn, text=prose(Random(turn.pieces), 12 * turn.pieces)) if turn.rate else turn


@dataclass
class Talk:
    """How many turns were told so far."""

    turns: int = 0


@contextlib.contextmanager
def talk(opencode: OpenCode, sessions: Iterable[str], script: str) -> Iterator[Talk]:
    """Sessions that are told the same again as soon as they are done with it."""
    going = Talk()
    sessions = list(sessions)
    ends, over = Ends(opencode), threading.Event()
    broken: list[Exception] = []

    def go_on(session: str) -> None:
        try:
            while not over.is_set():
                ends.forget("idle", session)
                opencode.prompt(session, script)
                ends.wait("idle", session)
                going.turns += 1
        except Exception as error:
            if not over.is_set():
                broken.append(error)

    threads = [threading.Thread(target=go_on, args=(session,), daemon=True) for session in sessions]
    # What the scripted model streams are words with numbers: nothing to draw as markdown.
    with patch("ocman_jupyter.demo.model.next_turn", _spoken):
        for thread in threads:
            thread.start()
        try:
            yield going
        finally:
            over.set()
            for session in sessions:
                opencode.client.post(f"/session/{session}/abort")
            for thread in threads:
                thread.join(30)
            ends.close()
    if broken:
        raise broken[0]


def streams(scene: Scene, repeat: int, seconds: float = 20) -> list[Row]:
    """Tasks of the main thread while five sessions stream, in tabs of which one is in front, and side by side."""
    root = scene.repository("tiny")
    server = scene.server(lab=True)
    opencode = scene.instance(server, root)
    rate = DELTAS / STREAMS
    titles = [f"Stream {number}" for number in range(STREAMS)]
    sessions = {title: opencode.session(root, title) for title in titles}
    rows: list[Row] = []
    with (
        talk(opencode, sessions.values(), f"READ README.md\nSTREAM {rate * 30:g} {rate:g}"),
        browser() as chromium,
        Lab(chromium, server, "lab?reset") as lab,
    ):
        lab.show_panel()
        for title in sessions:
            lab.open_session(title)
            lab.page.locator(".ocman-Session:visible").get_by_role("heading", name="Step").first.wait_for()
        scene.say(f"{DELTAS} deltas a second, {repeat} times {seconds:g} s in each layout …")
        fronts = [partial(_to_front, lab, title) for title in sessions]
        rows += _tasks(lab, "five tabs, each in front in turn", repeat, seconds, fronts)
        lab.page.evaluate(_SIDE_BY_SIDE)
        lab.page.wait_for_function("document.querySelectorAll('.ocman-Session:not(.lm-mod-hidden)').length === 5")
        lab.page.wait_for_timeout(2_000)
        rows += _tasks(lab, "five tabs side by side", repeat, seconds)
    return rows


def _to_front(lab: Lab, title: str) -> None:
    lab.page.locator(".lm-DockPanel-tabBar .lm-TabBar-tab", has_text=title).click()


def _tasks(
    lab: Lab, layout: str, repeat: int, seconds: float, doings: Sequence[Callable[[], None]] = (lambda: None,)
) -> list[Row]:
    began = lab.clock()
    with lab.traced() as tasks:
        for _ in range(repeat):
            for doing in doings:
                doing()
                lab.page.wait_for_timeout(seconds * 1000 / len(doings))
        took = lab.clock() - began
    if not tasks:
        raise RuntimeError("the browser told of no tasks")
    case, what = "streams", f"{WHAT_STREAMS}, {layout}"
    late = sum(task.wall > TASK_LIMIT for task in tasks)
    return [
        at_most(
            case,
            f"{what}: longest task of the main thread, its own time",
            max(task.own for task in tasks),
            "ms",
            TASK_LIMIT,
            repeat,
        ),
        Row(case, f"{what}: longest task until it was over", max(task.wall for task in tasks), "ms", runs=repeat),
        Row(case, f"{what}: tasks that were over after more than {TASK_LIMIT:g} ms", late, "", runs=repeat),
        Row(
            case,
            f"{what}: busy share of the main thread",
            sum(task.own for task in tasks) / took * 100,
            "%",
            runs=repeat,
        ),
        _lost(lab, case, what),
    ]


def _lost(lab: Lab, case: str, what: str) -> Row:
    """Nobody scrolled: who does not see the end any more has to jump there."""
    count = lab.page.locator(".ocman-Session:visible .ocman-Jump").count()
    return Row(case, f"{what}: sessions in sight that no longer follow", count, "", target="= 0", passed=count == 0)


def heap(scene: Scene, repeat: int, minute: float = 60, messages: int = 450, count: int = STREAMS) -> list[Row]:
    """A page left open with streams, a minute for each repetition; it keeps as much of each session as it may."""
    root = scene.repository("tiny")
    titles = [f"Long stream {number}" for number in range(count)]
    sessions = {title: import_session(scene, root, title, messages) for title in titles}
    server = scene.server(lab=True)
    opencode = scene.instance(server, root)
    rate = DELTAS / STREAMS
    counted: list[dict[str, float]] = []
    with (
        talk(opencode, sessions.values(), f"READ README.md\nSTREAM {rate:g} {rate:g}") as going,
        browser() as chromium,
        Lab(chromium, server, "lab?reset") as lab,
    ):
        lab.show_panel()
        for title in sessions:
            lab.open_session(title)
            _read_earlier(lab)
        scene.say(f"{repeat * minute:g} s …")
        for _ in range(repeat * SAMPLES):
            lab.page.wait_for_timeout(minute * 1000 / SAMPLES)
            counted.append(lab.collect_garbage())
            scene.say(f"{going.turns} turns, " + ", ".join(f"{counted[-1][name]:,.0f} {name}" for name in _COUNTED))
        what = f"page left open with {count} streams, {repeat * minute / 60:g} min"
        lost = _lost(lab, "heap", what)
    half = counted[len(counted) // 2 :]
    third = max(1, len(half) // 3)
    growths = [
        at_most_times(
            "heap",
            f"{what}: {word} in the last sixth",
            median([one[name] for one in half[-third:]]) * scale,
            unit,
            "the same after half of the time",
            median([one[name] for one in half[:third]]) * scale,
            HEAP_GROWTH,
            third,
        )
        for name, (word, scale, unit) in _COUNTED.items()
    ]
    return [*growths, lost]


def _read_earlier(lab: Lab) -> None:
    """Scroll up until there is nothing earlier, and back to the end."""
    session = lab.page.locator(".ocman-Session:visible")
    earlier = session.locator(".ocman-Transcript-earlier")
    earlier.wait_for()
    session.get_by_role("log").focus()
    while earlier.count():
        lab.page.keyboard.press("Home")  # as a reader: what scrolls by itself does not leave the end
        lab.page.wait_for_timeout(100)
    session.get_by_role("button", name=re.compile("jump", re.IGNORECASE)).click()


_COUNTED = {
    "JSHeapUsedSize": ("heap", 1e-6, "MB"),
    "Nodes": ("nodes", 1, ""),
    "JSEventListeners": ("listeners", 1, ""),
}
