"""One odd record of OpenCode: it is mended or left out, and never takes the whole answer along."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocman_jupyter.errors import OpenCodeError
from ocman_jupyter.hosts.local import instances as local_instances
from ocman_jupyter.hosts.local import local_host
from ocman_jupyter.hosts.local.feeds import Feeds
from ocman_jupyter.hosts.local.joining import ask, joined, retrying
from ocman_jupyter.hosts.local.parts import Parts
from ocman_jupyter.hosts.local.sessions import Sessions
from ocman_jupyter.opencode.client import OpenCodeClient
from ocman_jupyter.opencode.instances import Instance
from ocman_jupyter.opencode.processes import current
from ocman_jupyter.opencode.records import AskRecord, SessionRecord
from ocman_jupyter.opencode.state import DirectorySnapshot, InstanceState
from ocman_jupyter.settings import OcmanSettings
from tests.opencode.conftest import FakeOpenCode, fake, reply  # noqa: F401  a fixture
from tests.opencode.said import NOW, W, event, info, message_event, part_event, permission, question
from tests.opencode.world import PRETENDER

WRONG: list[Any] = [
    None, True, 5, -1, 1e300, -1e300, float("nan"), float("inf"), 10**400, "", "x", [], [1], [None], [[]], {},
    {"a": 1}, {"created": "x", "updated": [1]}, {"created": 1e300, "updated": -1e300, "archived": 10**400},
    {"created": float("nan"), "updated": float("inf")}, {"providerID": [1], "id": {}}, {"input": float("nan")},
    [{"permission": 1, "pattern": [], "action": None}], [{"options": 5}], [{"label": 1}],
]
SESSION = {
    "id": "ses_1", "title": "t", "directory": W, "projectID": "p", "parentID": "ses_0", "agent": "build",
    "model": {"providerID": "a", "id": "b"}, "cost": 1.5, "tokens": {"input": 1, "cache": {"read": 2}},
    "permission": [{"permission": "a", "pattern": "b", "action": "allow"}],
    "time": {"created": 1, "updated": 2, "archived": 3},
}  # fmt: skip
ASKS = [permission("per_1", "ses_1"), question("que_1", "ses_1")]
odd = st.recursive(
    st.sampled_from(WRONG) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


def with_each_wrong(body: dict[str, Any]) -> list[Any]:
    """``body`` with each wrong value in the place of each of its fields."""
    return [pytest.param({**body, key: value}, id=f"{key}-{value!r:.40}") for key in body for value in WRONG]


def told(record: SessionRecord, state: InstanceState) -> dict[str, Any]:
    """The session as it goes out."""
    state.note(record)
    known = type("Known", (), {
        "status": state.status, "pending": state.pending, "record": state.sessions.get, "top": state.top,
        "missing": lambda self, directory: False, "error": lambda self, one: None, "retry": lambda self, one: None,
    })()
    return strict(joined(record, known, W).model_dump_json(warnings="error"))


def strict(text: str) -> dict[str, Any]:
    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.mark.parametrize("body", with_each_wrong(SESSION))
def test_a_field_of_a_wrong_type_becomes_its_default(body: dict[str, Any]) -> None:
    try:
        record = SessionRecord.from_json(body)
    except OpenCodeError:
        assert not (str(body["directory"]).startswith("/") and isinstance(body["id"], str) and body["id"])
        return
    out = told(record, InstanceState())
    assert isinstance(out["title"], str) and isinstance(out["cost"], float | int) and isinstance(out["tokens"], dict)
    assert all(out[key] is None or isinstance(out[key], str) for key in ("agent", "model", "parent_id"))
    assert out["created"].endswith("Z") and out["updated"].endswith("Z")
    for key in ("title", "cost", "agent", "tokens"):
        if body[key] == SESSION[key]:
            assert out[key] == SESSION[key]


@pytest.mark.parametrize("body", [each for body in ASKS for each in with_each_wrong(body)])
def test_an_ask_with_a_wrong_field_can_be_shown_or_is_left_out(body: dict[str, Any]) -> None:
    record = AskRecord.from_json(body, W, int(NOW * 1000))
    if record is None:
        assert not (isinstance(body["id"], str) and body["id"] and isinstance(body["sessionID"], str))\
            or not body["sessionID"]
        return
    state = InstanceState()
    state.note(SessionRecord.from_json(SESSION))
    known = type("Known", (), {"record": state.sessions.get, "top": state.top})()
    out = json.loads(ask(record, known).model_dump_json(warnings="error"))
    assert all(isinstance(one, str) for one in out["patterns"] + out["always"])
    assert all(isinstance(one["options"], list) and isinstance(one["question"], str) for one in out["questions"])


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_no_event_and_no_snapshot_can_break_the_state(data: st.DataObject) -> None:
    state = InstanceState(clock=lambda: NOW)
    state.note(SessionRecord.from_json(SESSION))
    told_of = {"type": "retry", "attempt": 1, "message": "m", "next": 5}
    events = [
        event("session.updated", info=SESSION), event("session.status", sessionID="ses_1", status=told_of),
        event("session.error", sessionID="ses_1", error={"name": "E", "data": {"message": "m"}}),
        event("permission.asked", **ASKS[0]), event("question.asked", **ASKS[1]),
        event("permission.replied", requestID="per_1", reply="once"), event("server.instance.disposed", directory=W),
        message_event("msg_1"), part_event("msg_1", "prt_1", "text"),
        event("session.deleted", sessionID="ses_2", info=SESSION),
    ]  # fmt: skip
    for _ in range(3):
        state.apply(data.draw(mutated(data.draw(st.sampled_from(events)))))
        snapshot = DirectorySnapshot(
            [data.draw(mutated(ASKS[0]))], [data.draw(mutated(ASKS[1]))], {"ses_1": data.draw(mutated(told_of))}
        )
        state.replace(directories={W: snapshot}, since=state.mark(), gap=True)
        state.fill("ses_1", [{"info": data.draw(mutated(info("msg_1"))), "parts": [data.draw(mutated(
            {"id": "prt_1", "type": "tool", "text": "t", "state": {"status": "running"}, "time": {"end": 1}}))]}])
        state.messages("ses_1")
        found = state.retry("ses_1")
        if found is not None:
            strict(retrying(found).model_dump_json(warnings="error"))
        for record in [*state.sessions.values()]:
            told(record, state)


def mutated(body: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """``body`` with something odd somewhere in it."""
    return st.one_of(*(
        odd.map(lambda value, key=key: {**body, key: value})
        | (mutated(body[key]).map(lambda value, key=key: {**body, key: value}) if isinstance(body[key], dict)
           and body[key] else st.nothing())
        for key in body
    ))


@pytest.fixture
def served(
    fake: FakeOpenCode, tmp_path: Path, repository: Callable[..., Path], connections_closed: list[Any],  # noqa: F811
    jp_asyncio_loop: Any,
) -> Iterator[tuple[FakeOpenCode, str, Callable[[], Any]]]:
    """A repository whose OpenCode answers what a test wants, and who listens to it."""
    root = str(repository())
    good = {**SESSION, "id": "ses_2", "title": "good", "directory": root, "parentID": None}
    fake.answers["GET", "/session"] = reply([good])
    fake.answers["GET", "/session/status"] = reply({"ses_2": {"type": "busy"}})
    for path in ("/permission", "/question"):
        fake.answers["GET", path] = reply([])
    parts = Parts.make(OcmanSettings(data_dir=str(tmp_path / "data"), request_timeout=5.0))
    process = current(os.getpid())
    assert process is not None
    client = OpenCodeClient(fake.url)
    instance = Instance(
        f"{root}/.git", root, root, fake.url, 1, process, "user", None, True, "1", None, None, client,
        ("opencode", None))

    async def known() -> list[Instance]:
        return [instance]

    parts.instances.known, parts.instances.is_live = known, lambda one: True  # type: ignore[method-assign]
    feeds = Feeds(parts)

    async def listen() -> Sessions:
        await feeds.adopt()
        return Sessions(parts, feeds)

    yield fake, root, listen
    for close in (feeds.close, client.aclose, parts.close):
        jp_asyncio_loop.run_until_complete(close())


async def test_what_cannot_be_used_is_left_out_and_the_others_are_told(served: Any, caplog: Any) -> None:
    opencode, root, listen = served
    good = {**SESSION, "title": "good", "directory": root, "parentID": None}
    nothing = [5, {}, {**good, "id": 5}, {**good, "id": "ses_3", "directory": "here"}]
    odd_parent = {**good, "id": "ses_4", "title": 5, "parentID": [1], "time": {"created": "x", "updated": 1e300}}
    opencode.answers["GET", "/session"] = reply([*nothing, {**good, "id": "ses_2"}, odd_parent])
    opencode.answers["GET", "/permission"] = reply([{**permission("per_1", "ses_2"), "patterns": 5, "always": [1]}, 5])
    with caplog.at_level(logging.WARNING, "ocman_jupyter"):
        sessions = await listen()
        listed = await sessions.list(root)
        await sessions.list(root)
    assert {one.id: one.title for one in listed.sessions} == {"ses_2": "good", "ses_4": ""}
    (pending,) = next(one for one in listed.sessions if one.id == "ses_2").pending
    assert pending.patterns == [] and pending.always == []
    assert len([one for one in caplog.messages if "left out" in one]) == 1


async def test_half_of_a_surrogate_pair_does_not_stop_an_answer(served: Any) -> None:
    opencode, root, listen = served
    body = {**SESSION, "id": "ses_\udcff", "title": "a\ud800b \U0001f600", "directory": root + "/\udcff"}
    opencode.answers["GET", "/session"] = reply([{**body, "parentID": None}])
    message = {"info": {"id": "msg_1", "role": "user"}, "parts": [{"id": "prt_1", "type": "text", "text": "\udcff"}]}
    opencode.answers["GET", "/session/ses_1/message"] = reply([message])
    sessions = await listen()
    (feed,) = sessions._feeds.all()
    (record,) = feed.records()
    assert record.title == "a\ufffdb \U0001f600" and record.directory == root + "/\ufffd"
    told(record, InstanceState())
    (page,) = (await feed.client.messages("ses_1")).messages
    assert page["parts"][0]["text"] == "\ufffd"


async def test_force_stops_one_whose_state_cannot_be_read(
    tmp_path: Path, runtime_dir: Path, repository: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its event stream never begins."""
    folder, program = tmp_path / "fake", tmp_path / "opencode"
    folder.mkdir()
    program.write_text(f"#!{sys.executable} -IS\n{PRETENDER.read_text()}")
    program.chmod(0o755)
    monkeypatch.setenv("FAKE_OPENCODE", str(folder))
    monkeypatch.setattr(local_instances, "FORCED_SECONDS", 0.2)
    host = local_host(OcmanSettings(
        data_dir=str(tmp_path / "data"), runtime_dir=str(runtime_dir / "ocman"), opencode_command=str(program),
        launcher="process", launch_timeout=10.0, probe_timeout=0.5, request_timeout=1.0))
    root = str(repository())
    try:
        await host.start()
        with pytest.raises(OpenCodeError):
            await host.instances.ensure(root)
        started = json.loads((folder / "starts").read_text())["pid"]
        with pytest.raises(OpenCodeError):
            await host.instances.stop(root)
        assert current(started) is not None
        await host.instances.stop(root, force=True)
        assert current(started) is None
    finally:
        with contextlib.suppress(OpenCodeError):
            await host.instances.stop(root, force=True)
        await host.close()
