"""Following a session until it rests."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from ocman_jupyter.errors import NoSuchSession, OpenCodeUnreachable, ServerUnreachable
from ocman_jupyter.hosts.host import PromptRequest
from ocman_jupyter.notebook import turns
from ocman_jupyter.notebook.client import InProcessClient
from ocman_jupyter.notebook.transcript import Transcript
from ocman_jupyter.notebook.turns import Turn, follow
from tests.notebook.fake import FakeHost, now, permission


class Case:
    def __init__(self) -> None:
        self.fake = FakeHost()
        self.client: Any = InProcessClient(self.fake.host())
        self.session = self.fake.add_session("/w", "t", created="2020-01-01T00:00:00Z").id
        self.said: list[str] = []

    async def follow(self, prompt: str | None = None, **options: Any) -> Turn:
        transcript = Transcript(self.said.append)
        send = None
        if prompt is not None:

            async def send() -> None:
                await self.client.prompt(self.session, {"text": prompt})

        return await asyncio.wait_for(follow(self.client, self.session, transcript, send, **options), 20)

    @property
    def text(self) -> str:
        return "".join(self.said)


@pytest.fixture
def case() -> Case:
    return Case()


async def test_a_prompt_is_followed_to_its_answer(case: Case) -> None:
    turn = await case.follow("count rows")
    assert turn == Turn("idle", "did: count rows", None)
    assert case.text == "you: count rows\n> bash  pwd  ok 2.5 s\ndid: count rows\n"
    assert not case.fake.listeners


async def test_the_answer_of_a_queued_prompt_is_its_own(case: Case) -> None:
    case.fake.turn_seconds = 0.1
    await case.fake.prompt(case.session, PromptRequest(text="first"))
    while case.fake.known[case.session].status != "busy":
        await asyncio.sleep(0.01)
    original = case.fake.begin

    def later(session_id: str, text: str) -> None:  # as OpenCode does: after the running turn
        async def queued() -> None:
            await turn_before
            await asyncio.sleep(0.05)
            await case.fake.turn(session_id, text)

        turn_before = case.fake._turn
        case.fake._turn = asyncio.get_running_loop().create_task(queued())

    case.fake.begin = later  # type: ignore[method-assign]
    turn = await case.follow("second")
    case.fake.begin = original  # type: ignore[method-assign]
    assert turn.answer == "did: second"


async def test_watching_a_session_that_rests_gives_its_last_turn_at_once(case: Case) -> None:
    await case.follow("one")
    await case.follow("two")
    case.said.clear()
    assert (await case.follow()).answer == "did: two"
    assert case.text == "you: two\n> bash  pwd  ok 2.5 s\ndid: two\n"


async def test_watching_waits_for_a_prompt_that_was_just_sent(case: Case) -> None:
    case.session = case.fake.add_session("/w", "new").id
    case.fake.turn_seconds = 0.3
    await case.fake.prompt(case.session, PromptRequest(text="slow start"))
    assert (await case.follow()).answer == "did: slow start"


async def test_watching_an_old_empty_session_ends_at_once(case: Case) -> None:
    assert await case.follow() == Turn("idle", "", None)


async def test_an_edge_that_was_lost_is_found_by_looking(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "LOOK", 0.1)
    tell = case.fake.tell

    def lossy(session_id: str, kind: str, /, **data: Any) -> None:
        if data.get("status") != "idle":
            tell(session_id, kind, **data)

    case.fake.tell = lossy  # type: ignore[method-assign]
    assert (await case.follow("x")).answer == "did: x"


async def test_an_ask_is_said_while_waiting(case: Case) -> None:
    case.fake.turn_ask = permission(session_id=case.session)
    await case.follow("x")
    assert "! needs you: outside the worktree: /etc/hosts" in case.text


async def test_a_turn_that_failed_says_why(case: Case) -> None:
    case.fake.turn_error = "model error 429"
    turn = await case.follow("x")
    assert (turn.status, turn.error) == ("error", "model error 429")


async def test_a_turn_that_failed_outside_of_any_message_ends_at_once_and_says_why(case: Case) -> None:
    case.fake.broken = "no such model: \x1b[31mx/y"
    turn = await case.follow("x")
    assert turn == Turn("error", "", "no such model: \x1b[31mx/y")
    assert case.text == "you: x\n! failed: no such model: x/y\n"


@pytest.mark.parametrize("just_made", [False, True])
async def test_watching_a_session_that_failed_already_ends_at_once(case: Case, just_made: bool) -> None:
    created = now() if just_made else "2020-01-01T00:00:00Z"
    failed = case.fake.add_session("/w", "t", status="error", error="no such model", created=created)
    case.session = failed.id
    begun = time.monotonic()
    assert await case.follow() == Turn("error", "", "no such model")
    assert time.monotonic() - begun < 2 and case.text == "! failed: no such model\n"


async def test_a_prompt_launches_an_opencode_that_is_gone_and_is_sent_once(case: Case) -> None:
    await case.follow("before")
    case.fake.dead = True
    turn = await case.follow("after")
    assert turn.answer == "did: after"
    assert case.fake.given("ensure") == "/w"
    assert [given[1].text for name, given in case.fake.calls if name == "prompt"] == ["before", "after"]


async def test_watching_launches_nothing(case: Case) -> None:
    case.fake.dead = True
    with pytest.raises(OpenCodeUnreachable):
        await case.follow()
    assert "ensure" not in case.fake.names()


async def test_a_session_that_is_deleted_ends_the_wait(case: Case) -> None:
    case.fake.turn_seconds = 30
    following = asyncio.ensure_future(case.follow("x"))
    while not case.fake.listeners:
        await asyncio.sleep(0.01)
    case.fake.tell(case.session, "session.removed", id=case.session, directory="/w")
    with pytest.raises(NoSuchSession):
        await following
    case.fake._turn.cancel()


async def test_a_work_that_never_begins_is_not_waited_for_for_ever(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "LOOK", 0.1)
    case.fake.begin = lambda session_id, text: None  # type: ignore[method-assign]
    assert (await case.follow("x", grace=0.3)).answer == ""


async def test_a_stream_that_breaks_is_taken_up_again(case: Case) -> None:
    stream, broken = case.client.stream, []

    async def breaking(session_id: str) -> AsyncIterator[dict[str, Any]]:
        async for event in stream(session_id):
            yield event
            if event["type"] == "message.updated" and not broken:
                broken.append(True)
                raise ServerUnreachable()

    case.client.stream = breaking
    case.fake.turn_seconds = 0.4
    assert (await case.follow("x")).answer == "did: x"
    assert case.text.count("did: x") == 1


async def test_a_stream_that_was_never_there_is_an_error(case: Case) -> None:
    case.session = "ses_unknown"
    with pytest.raises(NoSuchSession):
        await case.follow()
