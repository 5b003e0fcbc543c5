"""The panels: live from events, answered by buttons, harmless whatever is in them, and gone when closed."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import ipywidgets as W
import pytest
from aiohttp import web

import ocman_jupyter as ocman
from ocman_jupyter.errors import NoSuchSession, ServerUnreachable
from ocman_jupyter.notebook import answering, feed, markup, panel
from ocman_jupyter.notebook.api import DESK
from ocman_jupyter.notebook.client import InProcessClient
from ocman_jupyter.notebook.connection import Server
from ocman_jupyter.notebook.conversation import unseen
from ocman_jupyter.notebook.overview import Worktrees
from ocman_jupyter.notebook.panels import SessionPanel
from ocman_jupyter.notebook.rest import RestClient
from ocman_jupyter.notebook.verbs import Verbs
from ocman_jupyter.notebook.worker import WORKER
from tests.notebook.fake import FakeHost, permission, question
from tests.notebook.test_views import Tags

HOSTILE = "<script>alert(1)</script>\x1b[2J\"'><img src=x onerror=alert(1)>\u202etxt"


@pytest.fixture(autouse=True)
def no_widgets_left() -> Iterator[None]:
    yield
    W.Widget.close_all()


@pytest.fixture
def session(fake: FakeHost) -> str:
    fake.add_tree("fix-loader")
    return fake.add_session("/repo/.worktrees/fix-loader", "Fix the loader").id


def until(condition: Callable[[], Any], seconds: float = 8.0) -> Any:
    """What ``condition`` gives once it is true."""
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not happen in time"
        pause.wait(0.01)
    return found


def there(work: Callable[[], Any]) -> Any:
    """Run ``work`` on the background loop, where the fake and the panels live."""

    async def run() -> Any:
        return work()

    return WORKER.submit(run()).outcome.result(timeout=10)


def parts(widget: W.Widget) -> Iterator[W.Widget]:
    yield widget
    for child in getattr(widget, "children", ()):
        yield from parts(child)


def page(shown: panel.Panel) -> str:
    """All the HTML of a panel."""
    return "\n".join(w.value for w in list(parts(shown.widget)) if isinstance(w, W.HTML))


def button(shown: panel.Panel, label: str) -> W.Button:
    found = [w for w in list(parts(shown.widget)) if isinstance(w, W.Button) and w.description.startswith(label)]
    assert found, f"there is no button {label}"
    return found[0]


def has_button(shown: panel.Panel, label: str) -> bool:
    return any(isinstance(w, W.Button) and w.description.startswith(label) for w in list(parts(shown.widget)))


def live(shown: panel.Panel) -> None:
    """Wait until the panel has read everything and draws."""
    assert shown.widget is not None
    until(lambda: shown._drawn and not shown._loading and shown._verbs.feed.connected)


def said(key: str, role: str, *parts: dict[str, Any]) -> dict[str, Any]:
    return {"info": {"id": key, "role": role}, "parts": list(parts)}


def text(key: str, words: str) -> dict[str, Any]:
    return {"id": key, "type": "text", "text": words}


# --- a session -------------------------------------------------------------------------------


def test_a_session_with_its_turns_todos_and_where_it_works(fake: FakeHost, session: str) -> None:
    tool = {
        "id": "t",
        "type": "tool",
        "tool": "bash",
        "state": {"status": "completed", "input": {"command": "pytest -q"}, "time": {"start": 1000, "end": 4200}},
    }
    fake.history[session] = [
        said("msg_1", "user", text("p1", "please fix the loader")),
        said("msg_2", "assistant", tool, text("p2", "Done.\n\n```python\nx < 1\n```\nand `code`")),
    ]
    fake.todo = [{"content": "Read data", "status": "completed"}, {"content": "Fit", "status": "pending"}]
    fake.known[session] = fake.known[session].model_copy(update={"cost": 0.123})
    shown = ocman.SessionPanel(session)
    live(shown)
    until(lambda: "Todo 1/2" in page(shown))
    html = page(shown)
    for expected in (
        "<bdi>fix-loader</bdi> / <bdi>Fix the loader</bdi>",
        "idle",
        "branch <bdi>fix-loader</bdi>",
        "$0.12",
        "please fix the loader",
        "› bash pytest -q ok 3.2 s",
        "<pre>x &lt; 1</pre>",
        "<code>code</code>",
    ):
        assert expected in html, expected
    assert button(shown, "Stop").disabled and not button(shown, "Send").disabled


def test_an_unknown_session_is_a_typed_error(fake: FakeHost) -> None:
    with pytest.raises(NoSuchSession):
        ocman.SessionPanel("nothing")


def test_a_message_is_sent_and_its_turn_is_seen_live(fake: FakeHost, session: str) -> None:
    fake.turn_seconds = 0.3
    shown = SessionPanel(session)
    live(shown)
    shown._text.value = "count to three"
    button(shown, "Send").click()
    assert shown._text.value == ""
    until(lambda: has_button(shown, "Queue") and "busy" in page(shown))
    assert not button(shown, "Stop").disabled
    until(lambda: "did: count to three" in page(shown))
    until(lambda: has_button(shown, "Send"))
    assert "The turn is over." in page(shown)
    assert fake.given("prompt")[1].text == "count to three"


def test_a_message_that_was_not_sent_is_given_back(fake: FakeHost, session: str) -> None:
    shown = SessionPanel(session)
    live(shown)
    fake.fail = ServerUnreachable("The Jupyter server does not answer.")
    shown._text.value = "precious"
    button(shown, "Send").click()
    until(lambda: shown._text.value == "precious")
    until(lambda: "does not answer" in page(shown))


def test_stop_stops_the_turn(fake: FakeHost, session: str) -> None:
    shown = SessionPanel(session)
    live(shown)
    there(lambda: fake.status(session, "busy"))
    until(lambda: not button(shown, "Stop").disabled)
    button(shown, "Stop").click()
    until(lambda: "abort" in fake.names())


def test_streaming_draws_a_few_times_a_second_and_only_what_changed(fake: FakeHost, session: str) -> None:
    fake.history[session] = [
        said("msg_1", "user", text("p1", "go")),
        said("msg_2", "assistant", text("p2", "start ")),
    ]
    shown = SessionPanel(session)
    live(shown)
    until(lambda: "start" in page(shown))
    changes: list[Any] = []
    for widget in parts(shown.widget):
        if isinstance(widget, W.HTML):
            widget.observe(lambda change: changes.append(change["owner"]), "value")

    async def stream() -> None:
        for number in range(200):
            data = {"session_id": session, "message_id": "msg_2", "part_id": "p2", "field": "text"}
            fake.tell(session, "message.delta", **data, delta=f"w{number} ")
            await asyncio.sleep(0.005)

    begun = time.monotonic()
    WORKER.submit(stream()).outcome.result(timeout=20)
    until(lambda: "w199" in page(shown))
    took = time.monotonic() - begun
    assert len(changes) <= took / panel.PAUSE + 2
    assert set(changes) == {shown._widgets["msg_2"]}


def test_what_came_while_the_panel_read_is_neither_lost_nor_told_twice() -> None:
    assert unseen("did: so", "so far") == " far"
    assert unseen("did: ", "so far") == "so far"
    assert unseen("did: so far", "so far") == ""
    assert unseen("", "x") == "x"


def test_only_the_last_turns_are_kept(fake: FakeHost, session: str) -> None:
    fake.history[session] = [
        said(f"msg_{number:03d}", role, text(f"p{number}", f"turn {number} {role}"))
        for number in range(0, 40)
        for role in ("user",)
    ]
    shown = SessionPanel(session)
    live(shown)
    until(lambda: "turn 39 " in page(shown))
    assert "turn 29 " not in page(shown) and "turn 30 " in page(shown)


def test_nothing_that_others_wrote_is_more_than_text(fake: FakeHost) -> None:
    tree = fake.add_tree(HOSTILE, path="/repo/.worktrees/" + HOSTILE)
    session = fake.add_session(
        tree.path, HOSTILE, status="error", error=HOSTILE, agent=HOSTILE, model="a/" + HOSTILE
    ).id
    tool = {
        "id": "t",
        "type": "tool",
        "tool": HOSTILE,
        "state": {"status": "error", "input": {"command": HOSTILE}, "error": HOSTILE},
    }
    fake.history[session] = [
        said("msg_1", "user", text("p1", HOSTILE)),
        {
            "info": {"id": "msg_2", "role": "assistant", "error": {"name": "x", "data": {"message": HOSTILE}}},
            "parts": [tool, text("p2", f"{HOSTILE}\n\n```{HOSTILE}\n{HOSTILE}\n```\n`{HOSTILE}`")],
        },
    ]
    fake.todo = [{"content": HOSTILE, "status": HOSTILE}]
    bad = {"patterns": [HOSTILE], "always": [HOSTILE], "metadata": {HOSTILE: HOSTILE}, "permission": HOSTILE}
    fake.pending["per_1"] = permission(session_id=session).model_copy(update={**bad, "title": HOSTILE})
    options = [{"label": HOSTILE, "description": HOSTILE}]
    asked = question("que_1").model_copy(
        update={"session_id": session, "title": HOSTILE, "questions": [{"question": HOSTILE, "options": options}]}
    )
    panels = [SessionPanel(session), Worktrees("/repo")]
    for shown in panels:
        live(shown)
        until(lambda shown=shown: has_button(shown, "Always"))
    there(lambda: fake.pending.pop("per_1") and fake.tell(session, "ask.resolved", id="per_1", session_id=session))
    fake.pending["que_1"] = asked
    pages = [page(shown) for shown in panels]
    there(lambda: fake.tell(session, "ask.created", **asked.model_dump(mode="json")))
    for shown in panels:
        until(lambda shown=shown: has_button(shown, "Answer"))
    pages += [page(shown) for shown in panels] + [shown.still()[0] for shown in panels]
    for html in pages:
        tags = Tags(html)
        assert not tags.tags & {"script", "img", "a", "iframe", "svg", "form"}
        attributes = {name for name, _ in tags.attributes}
        assert attributes <= {"class", "role", "dir", "aria-hidden", "style", "data-ocman-session"}
        assert "alert(1)" in html and "\x1b" not in html and "\u202e" not in html
    for shown in panels:
        assert "\x1b" not in repr(shown) and "\u202e" not in repr(shown)
    # What is allowed is shown as it is: what cannot be seen is named.
    assert "\\u202e" in pages[0]


def test_a_flood_of_text_is_cut_in_the_middle() -> None:
    html = markup.markdown("begin " + "x" * 500_000 + " end")
    assert len(html) < 30_000 and "begin" in html and "end" in html and "characters are not shown" in html


# --- asks ------------------------------------------------------------------------------------


def ask_it(fake: FakeHost, session: str, ask_id: str = "per_1") -> float:
    """The session asks; when."""
    ask = permission(ask_id, session)
    fake.pending[ask_id] = ask
    there(lambda: fake.tell(session, "ask.created", **ask.model_dump(mode="json")))
    return time.monotonic()


def test_an_ask_is_answered_by_its_button_but_not_before_it_could_be_read(fake: FakeHost, session: str) -> None:
    shown = SessionPanel(session)
    live(shown)
    asked = ask_it(fake, session)
    until(lambda: has_button(shown, "Once"))
    once = button(shown, "Once")
    assert button(shown, "Always /etc/*") and not button(shown, "Reject").disabled
    assert "/etc/hosts" in page(shown)
    assert "asks: outside the worktree:</b> <code>/etc/hosts</code>" in page(shown)
    grant = "all work on what is at <code>/etc/*</code> in this worktree, until OpenCode restarts."
    assert f"Always would allow {grant}" in page(shown)
    assert "external_directory" not in page(shown)
    assert "needs you" in page(shown)
    if time.monotonic() - asked < answering.SETTLE:  # else this machine was too slow to try
        once.click()
        assert "reply" not in fake.names()
    until(lambda: not once.disabled)
    assert time.monotonic() - asked >= answering.SETTLE
    once.click()
    until(lambda: "reply" in fake.names())
    assert (fake.given("reply")[0], fake.given("reply")[1].reply) == ("per_1", "once")
    until(lambda: not has_button(shown, "Once"))
    until(lambda: "Allowed once" in page(shown))
    assert "elsewhere" not in page(shown)


def test_what_allows_is_off_from_its_first_moment(
    fake: FakeHost, session: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    enable, seen = answering.AskBox._enable, []

    def looking(box: answering.AskBox) -> None:
        seen.append([button.disabled for button in box._allowing])
        enable(box)

    monkeypatch.setattr(answering.AskBox, "_enable", looking)
    shown = SessionPanel(session)
    live(shown)
    ask_it(fake, session)
    until(lambda: has_button(shown, "Once"))
    assert seen[0] == [True, True]


def test_a_second_ask_waits_its_turn_and_settles_anew(fake: FakeHost, session: str) -> None:
    shown = SessionPanel(session)
    live(shown)
    ask_it(fake, session, "per_1")
    ask_it(fake, session, "per_2")
    until(lambda: "(1 of 2)" in page(shown))
    first = button(shown, "Once")
    until(lambda: not first.disabled)
    first.click()
    until(lambda: has_button(shown, "Once") and button(shown, "Once") is not first)
    if button(shown, "Once").disabled:
        button(shown, "Once").click()
    assert [given[0] for name, given in fake.calls if name == "reply"] == ["per_1"]
    until(lambda: not button(shown, "Once").disabled)


def test_rejecting_needs_no_time(fake: FakeHost, session: str) -> None:
    shown = SessionPanel(session)
    live(shown)
    ask_it(fake, session)
    until(lambda: has_button(shown, "Reject"))
    button(shown, "Reject").click()
    until(lambda: "reply" in fake.names())
    assert fake.given("reply")[1].reply == "reject"


def test_what_the_agent_stressed_is_drawn_and_nothing_else_becomes_a_tag() -> None:
    html = markup.markdown("## What I did\n\n**Done**: *all* of `a ** b` and 2 * 3 * 4, snake_case, **<b onclick=x>**")
    assert html == (
        '<p dir="auto"><b>What I did</b></p><p dir="auto"><b>Done</b>: <i>all</i> of <code>a ** b</code> and '
        "2 * 3 * 4, snake_case, <b>&lt;b onclick=x&gt;</b></p>"
    )


def test_a_session_learns_that_its_folder_went_and_came(fake: FakeHost, session: str) -> None:
    path = fake.known[session].directory
    shown, trees = SessionPanel(session), Worktrees("/repo")
    live(shown)
    live(trees)

    def change(status: str, **facts: Any) -> None:
        """In a shell: no event tells of the session."""
        fake.known[session] = fake.known[session].model_copy(update={"status": status})
        fake.trees[path] = fake.trees[path].model_copy(update=facts)
        tree = fake.trees[path].model_dump(mode="json", exclude={"sessions"})
        fake.tell("", "worktree.changed", **tree, repo_root="/repo")

    there(lambda: change("directory_missing", state="missing"))
    until(lambda: "folder gone" in page(shown) and "folder gone" in page(trees))
    there(lambda: change("idle", state="ok"))
    until(lambda: "folder gone" not in page(shown) and "folder gone" not in page(trees))


def test_an_ask_that_was_answered_elsewhere_says_so(fake: FakeHost, session: str) -> None:
    shown = SessionPanel(session)
    live(shown)
    ask_it(fake, session)
    until(lambda: has_button(shown, "Once"))
    fake.pending.clear()
    until(lambda: not button(shown, "Once").disabled)
    button(shown, "Once").click()  # the news is still on its way
    until(lambda: not has_button(shown, "Once"))
    assert "no longer asked" in page(shown)
    ask_it(fake, session, "per_2")
    until(lambda: has_button(shown, "Once"))
    there(lambda: fake.tell(session, "ask.resolved", id="per_2", session_id=session, reply="always"))
    until(lambda: "Answered elsewhere: allowed always" in page(shown))


def test_a_question_is_answered_with_the_label_as_it_was_given(fake: FakeHost, session: str) -> None:
    fake.pending["que_1"] = question().model_copy(update={"session_id": session})
    shown = SessionPanel(session)
    live(shown)
    until(lambda: has_button(shown, "Answer"))
    assert "Which column?" in page(shown)
    until(lambda: not button(shown, "Answer").disabled)
    button(shown, "Answer").click()
    until(lambda: "Each question needs an answer." in page(shown))
    assert "reply" not in fake.names()
    choice = next(w for w in parts(shown.widget) if isinstance(w, W.Dropdown))
    choice.value = 1
    button(shown, "Answer").click()
    until(lambda: "reply" in fake.names())
    assert fake.given("reply")[1].answers == [["weight"]]


# --- life ------------------------------------------------------------------------------------


def test_panels_share_one_stream_and_closing_leaves_nothing(fake: FakeHost, session: str) -> None:
    before = set(threading.enumerate())
    shown = [SessionPanel(session), SessionPanel(session), Worktrees("/repo")]
    for one in shown:
        live(one)
    assert len(fake.places) == 1 and fake.places[0].sessions == {session}
    shown[0].close()
    assert len(fake.places) == 1
    shown[1].close()
    until(lambda: fake.places[0].sessions == set())
    shown[2].close()
    until(lambda: not fake.places)
    assert all(one.widget.comm is None for one in shown)
    new = [t for t in set(threading.enumerate()) - before if not t.name.startswith(("asyncio_", "ocman-notebook"))]
    assert not new
    assert shown[0]._repr_mimebundle_()["text/html"]  # it can still be read


def test_a_panel_that_is_not_shown_holds_no_stream(fake: FakeHost, session: str) -> None:
    shown = SessionPanel(session)
    assert "Fix the loader" in repr(shown)
    assert not fake.places and not DESK.verbs().feed.connected


def test_a_panel_whose_widgets_are_gone_and_that_nobody_holds_stops(fake: FakeHost, session: str) -> None:
    shown = SessionPanel(session)
    live(shown)
    gone = weakref.ref(shown)
    del shown
    gc.collect()
    assert gone() is not None and fake.places  # it is on the page
    W.Widget.close_all()

    def collected() -> bool:
        gc.collect()
        return gone() is None

    until(collected)
    until(lambda: not fake.places)


def test_a_widget_that_was_closed_by_itself_ends_its_panel(fake: FakeHost, session: str) -> None:
    shown = SessionPanel(session)
    live(shown)
    shown.widget.close()
    there(lambda: fake.status(session, "busy"))
    until(lambda: not fake.places)


def test_a_stream_that_breaks_is_said_and_comes_back(
    fake: FakeHost, session: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "FIRST_PAUSE", 0.1)
    monkeypatch.setattr(feed, "LONGEST_PAUSE", 0.2)
    shown = SessionPanel(session)
    live(shown)
    fake.unreachable = True
    there(fake.break_off)
    until(lambda: "Reconnecting" in page(shown))
    until(lambda: button(shown, "Send").disabled)
    shown._text.value = "kept"
    button(shown, "Send").click()
    fake.history[session] = [said("msg_9", "assistant", text("p", "said meanwhile"))]
    fake.unreachable = False
    until(lambda: "said meanwhile" in page(shown))
    until(lambda: "Reconnecting" not in page(shown) and not button(shown, "Send").disabled)
    assert shown._text.value == "kept" and "prompt" not in fake.names()


async def serve(fake: FakeHost, port: int) -> tuple[web.AppRunner, int]:
    """What a panel asks of a Jupyter server, at ``port`` (0: a free one)."""
    client = InProcessClient(fake.host())

    async def events(request: web.Request) -> web.WebSocketResponse:
        answer = web.WebSocketResponse()
        await answer.prepare(request)

        async def tell(channel: Any) -> None:
            while events := await channel.next():
                for event in events:
                    await answer.send_json(event)

        async with client.events() as channel:
            telling = asyncio.ensure_future(tell(channel))
            try:
                async for frame in answer:
                    await channel.follow(set(frame.json()["subscribe"]["sessions"]))
            finally:
                telling.cancel()
        return answer

    def answers(work: Any) -> Any:
        async def handle(request: web.Request) -> web.Response:
            return web.json_response(await work(request))

        return handle

    app = web.Application()
    root = "/api/ocman"
    app.router.add_get(f"{root}/events", events)
    app.router.add_get(f"{root}/worktrees", answers(lambda request: client.worktrees(request.query["directory"])))
    app.router.add_get(f"{root}/sessions/{{id}}", answers(lambda request: client.session(request.match_info["id"])))
    for name in ("messages", "todos"):
        ask = getattr(client, name)
        app.router.add_get(
            f"{root}/sessions/{{id}}/{name}", answers(lambda request, ask=ask: ask(request.match_info["id"]))
        )
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port)
    await site.start()
    return runner, site._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]


def test_a_server_that_goes_away_is_said_and_comes_back(
    fake: FakeHost, session: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "FIRST_PAUSE", 0.1)
    monkeypatch.setattr(feed, "LONGEST_PAUSE", 0.2)

    def do(work: Any) -> Any:
        return WORKER.submit(work).outcome.result(timeout=20)

    runner, port = do(serve(fake, 0))
    verbs = Verbs(RestClient(Server(f"http://127.0.0.1:{port}/", "secret")))
    shown = [SessionPanel(session, _verbs=verbs), SessionPanel(session, _verbs=verbs)]
    for one in shown:
        live(one)
    until(lambda: len(fake.places) == 1 and fake.places[0].sessions == {session})
    there(lambda: fake.status(session, "busy"))
    until(lambda: all("busy" in page(one) for one in shown))
    do(runner.cleanup())
    until(lambda: all("Reconnecting" in page(one) for one in shown))
    assert "secret" not in "".join(map(page, shown))
    fake.known[session] = fake.known[session].model_copy(update={"title": "Renamed meanwhile", "status": "idle"})
    runner, _ = do(serve(fake, port))
    until(lambda: all("Renamed meanwhile" in page(one) and "Reconnecting" not in page(one) for one in shown), 20)
    for one in shown:
        one.close()
    until(lambda: not fake.places)
    do(verbs.client.close())
    do(runner.cleanup())


def test_another_connection_ends_the_panels_of_the_one_before(fake: FakeHost, session: str) -> None:
    shown = SessionPanel(session)
    live(shown)
    DESK.use(None)
    until(lambda: "Run the cell again" in page(shown))
    assert button(shown, "Send").disabled and not fake.places


def test_a_session_that_is_deleted_says_so(fake: FakeHost, session: str) -> None:
    shown = SessionPanel(session)
    live(shown)
    there(lambda: fake.tell(session, "session.removed", id=session, directory=""))
    until(lambda: "deleted" in page(shown) and button(shown, "Send").disabled)


def test_without_opencode_the_panel_says_what_starts_it(fake: FakeHost, session: str) -> None:
    fake.dead = True
    shown = SessionPanel(session)
    live(shown)
    until(lambda: "a message starts it" in page(shown))
    assert not button(shown, "Send").disabled


# --- worktrees -------------------------------------------------------------------------------


def test_worktrees_with_their_sessions_what_needs_you_first(fake: FakeHost, session: str) -> None:
    fake.add_tree("plots", changes={"modified": 2, "untracked": 0, "conflicted": 0}, ahead=1)
    other = fake.add_session("/repo/.worktrees/plots", "Plots").id
    shown = ocman.Worktrees("/repo")
    live(shown)
    until(lambda: "plots" in page(shown))
    assert "2 modified" in page(shown) and "up 1" in page(shown)
    ask_it(fake, other)
    until(lambda: has_button(shown, "Once") and "1 needs you" in page(shown))
    until(lambda: page(shown).index("<bdi>plots</bdi>") < page(shown).index("<bdi>fix-loader</bdi>"))
    there(lambda: fake.status(session, "busy"))
    until(lambda: "1 busy" in page(shown))
    until(lambda: not button(shown, "Once").disabled)
    button(shown, "Once").click()
    until(lambda: not has_button(shown, "Once"))
    assert fake.given("reply")[0] == "per_1"


def test_a_session_opens_below_and_the_next_one_takes_its_place(fake: FakeHost, session: str) -> None:
    fake.add_tree("plots")
    fake.add_session("/repo/.worktrees/plots", "Plots")
    shown = Worktrees("/repo")
    live(shown)
    until(lambda: sum(isinstance(w, W.Button) and w.description == "Open" for w in parts(shown.widget)) == 2)
    buttons = [w for w in parts(shown.widget) if isinstance(w, W.Button) and w.description == "Open"]
    buttons[0].click()
    first = until(lambda: shown._opened)
    live(first)
    buttons[1].click()
    second = until(lambda: shown._opened is not first and shown._opened)
    live(second)
    until(lambda: fake.places[0].sessions == {second.session_id})
    assert {first.session_id, second.session_id} == set(fake.known)
    shown.close()
    until(lambda: not fake.places)


def test_a_new_worktree_session_is_made_with_its_progress(fake: FakeHost) -> None:
    shown = Worktrees("/repo")
    live(shown)

    async def hold() -> None:
        fake.hold = asyncio.Event()

    WORKER.submit(hold()).outcome.result()
    button(shown, "New").click()
    until(lambda: "needs the name of a branch" in page(shown))
    until(lambda: not button(shown, "New").disabled)
    shown._branch.value, shown._prompt.value = "idea", "count"
    button(shown, "New").click()
    until(lambda: "idea: Starting OpenCode 50%" in page(shown))
    assert button(shown, "New").disabled
    there(fake.hold.set)
    opened = until(lambda: shown._opened)
    live(opened)
    assert (fake.given("create").branch, fake.given("create").prompt) == ("idea", "count")
    until(lambda: "did: count" in page(opened))
    until(lambda: "<bdi>idea</bdi>" in page(shown))
    assert shown._branch.value == ""


def test_a_new_worktree_session_that_fails_keeps_what_was_written(fake: FakeHost) -> None:
    shown = Worktrees("/repo")
    live(shown)
    fake.fail = ServerUnreachable("No.")
    shown._branch.value, shown._prompt.value = "idea", "count"
    button(shown, "New").click()
    until(lambda: "✗ No." in page(shown) and not button(shown, "New").disabled)
    assert (shown._branch.value, shown._prompt.value) == ("idea", "count")


def test_worktrees_come_and_go(fake: FakeHost, session: str) -> None:
    shown = Worktrees("/repo")
    live(shown)
    tree = fake.add_tree("late")
    data = {**tree.model_dump(mode="json", exclude={"sessions"}), "repo_root": "/repo"}
    there(lambda: fake.tell("", "worktree.changed", **data))
    until(lambda: "<bdi>late</bdi>" in page(shown))
    there(lambda: fake.tell("", "worktree.removed", path=tree.path, repo_root="/repo"))
    until(lambda: "<bdi>late</bdi>" not in page(shown))
    there(lambda: fake.tell(session, "session.removed", id=session, directory=""))
    until(lambda: "Fix the loader" not in page(shown))


def test_many_worktrees_are_shown_in_pieces(fake: FakeHost) -> None:
    for number in range(100):
        fake.add_tree(f"idea-{number:03d}")
    shown = Worktrees("/repo")
    live(shown)
    more = until(lambda: has_button(shown, "Show more (60") and button(shown, "Show more"))
    assert page(shown).count("<bdi>idea-") == 40
    more.click()
    until(lambda: page(shown).count("<bdi>idea-") == 80)


# --- what is saved ---------------------------------------------------------------------------


def test_outside_of_a_notebook_there_is_the_page_and_the_text(fake: FakeHost, session: str, shell: Any) -> None:
    fake.history[session] = [said("msg_1", "user", text("p1", "please fix the loader"))]
    bundle = SessionPanel(session)._repr_mimebundle_()
    assert set(bundle) == {"text/html", "text/plain"}
    assert "please fix the loader" in bundle["text/html"] and "as of " in bundle["text/html"]
    assert f"Session {session}: Fix the loader — idle" in bundle["text/plain"]
    bundle = Worktrees("/repo")._repr_mimebundle_()
    assert "fix-loader" in bundle["text/plain"] and "<table>" in bundle["text/html"]
    result = shell.run_cell("%ocman wt fix").result
    data, _ = shell.display_formatter.format(result)
    assert set(data) == {"text/html", "text/plain"} and not fake.places
