"""The same request id again: done once, answered the same."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from pydantic import BaseModel

from ocman_jupyter.errors import InvalidRequest, LaunchFailed
from ocman_jupyter.hosts.local import requests
from ocman_jupyter.hosts.local.requests import Requests
from ocman_jupyter.settings import OcmanSettings
from ocman_jupyter.store import Store


class Answer(BaseModel):
    number: int


class Work:
    def __init__(self) -> None:
        self.done = 0

    async def __call__(self) -> Answer:
        self.done += 1
        await asyncio.sleep(0)
        return Answer(number=self.done)


@pytest.fixture
def store(tmp_path: Path):
    store = Store(tmp_path / "state.sqlite")
    yield store
    store.close()


async def test_the_same_id_is_done_once_also_after_a_restart(store: Store) -> None:
    """Hazard 14: a slow create hit the client's time-out, the user tried again."""
    work = Work()
    first = await Requests(store, OcmanSettings()).once("r1", "worktrees", {"a": 1}, Answer, work)
    again = await Requests(store, OcmanSettings()).once("r1", "worktrees", {"a": 1}, Answer, work)
    assert first == again == Answer(number=1)
    assert work.done == 1


async def test_two_at_once_share_one_piece_of_work(store: Store) -> None:
    work, known = Work(), Requests(store, OcmanSettings())
    answers = await asyncio.gather(*(known.once("r", "v", {}, Answer, work) for _ in range(5)))
    assert [a.number for a in answers] == [1] * 5


async def test_without_an_id_everything_is_done(store: Store) -> None:
    work, known = Work(), Requests(store, OcmanSettings())
    assert [(await known.once(None, "v", {}, Answer, work)).number for _ in range(2)] == [1, 2]


async def test_a_failure_is_not_remembered(store: Store) -> None:
    known, work = Requests(store, OcmanSettings()), Work()

    async def fail() -> Answer:
        raise LaunchFailed

    with pytest.raises(LaunchFailed):
        await known.once("r", "v", {}, Answer, fail)
    assert (await known.once("r", "v", {}, Answer, work)).number == 1


async def test_an_id_that_came_with_another_body_is_refused(store: Store) -> None:
    known, work = Requests(store, OcmanSettings()), Work()
    await known.once("r", "v", {"branch": "a"}, Answer, work)
    with pytest.raises(InvalidRequest) as caught:
        await known.once("r", "v", {"branch": "b"}, Answer, work)
    assert caught.value.details["field"] == "request_id"
    assert work.done == 1


async def test_an_answer_is_forgotten_after_a_day(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    known, work = Requests(store, OcmanSettings()), Work()
    await known.once("r", "v", {}, Answer, work)
    now = requests.time.time()
    monkeypatch.setattr(requests.time, "time", lambda: now + requests.KEEP_SECONDS + 1)
    assert (await known.once("r", "v", {}, Answer, work)).number == 2


async def test_another_process_with_the_same_id_waits_and_gets_the_first_answer(store: Store) -> None:
    work = Work()

    async def slow() -> Answer:
        await asyncio.sleep(0.2)
        return await work()

    known = [Requests(store, OcmanSettings()) for _ in range(3)]  # none knows what the others have under way
    answers = await asyncio.gather(*(one.once("r", "v", {}, Answer, slow) for one in known))
    assert [a.number for a in answers] == [1] * 3
