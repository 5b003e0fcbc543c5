"""A record that is broken counts as none, and keeps no other from working."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from ocman_jupyter import errors
from ocman_jupyter.opencode.registry import Record, Registry
from ocman_jupyter.store import Store

GOOD = Record(
    identity="/good/.git", state="running", root="/good", cwd="/good", owner="ocman", password="pw",
    url="http://127.0.0.1:4096", port=4096, pid=7, pid_mark="boot:1", launched_at=1.5, started_at=2)

WRONG: list[tuple[str, Any]] = [
    ("identity", None), ("identity", ""), ("identity", "/another/.git"), ("state", "odd"), ("state", []),
    ("root", 5), ("root", "relative"), ("root", "/a\0b"), ("root", "/\ud800"), ("cwd", None), ("cwd", ""),
    ("owner", "nobody"), ("url", None), ("url", "nonsense"), ("url", "http://[::1"), ("url", ""),
    ("url", "http://[fe80::1%eth0]:1"), ("url", "http://a b:1"), ("url", "http://ü:1"), ("url", "http://a:b@c:1"),
    ("url", "http://127.0.0.1:99999"), ("port", "x"), ("port", True), ("port", -1), ("port", 1.5),
    ("pid", "7"), ("pid", -1), ("pid", 2**64), ("pid_mark", 1), ("launch_pid", {}), ("launch_mark", None),
    ("username", None), ("username", "\udcff"), ("password", 1), ("password", "\udcff"), ("launch_id", 1),
    ("launcher", "screen"), ("tmux_session", 1),
    ("log_path", None), ("seeded", "yes"), ("version", 1), ("started_at", "now"), ("started_at", 1e300),
    ("launched_at", None), ("launched_at", float("inf")), ("launched_at", float("nan")),
]


def broken(name: str, value: Any) -> str:
    return json.dumps({**json.loads(GOOD.to_json()), "identity": "/bad/.git", name: value})


TEXTS = ["", "{", "null", "[]", "5", "{}", "[" * 100_000, b"\xff\xfe{", b"\x00", *(broken(*one) for one in WRONG)]
IDS = [str(number) for number in range(9)] + [f"{name}-{number}" for number, (name, _) in enumerate(WRONG)]


@pytest.mark.parametrize("text", TEXTS, ids=IDS)
async def test_a_broken_record_is_none_and_the_others_stay(
    tmp_path: Path, text: str | bytes, caplog: pytest.LogCaptureFixture
) -> None:
    store = Store(tmp_path / "state.sqlite")
    registry = Registry(store)
    await registry.put(GOOD)
    data = text.encode() if isinstance(text, str) else text
    await store.run(lambda db: db.execute(
        "INSERT INTO instances VALUES ('/bad/.git', CAST(? AS TEXT))", (data,)))
    with caplog.at_level(logging.WARNING):
        assert await registry.get("/bad/.git") is None
        assert await registry.all() == [GOOD]
    assert [("/bad/.git" in one.getMessage(), "pw" in one.getMessage()) for one in caplog.records] == [(True, False)]
    assert await registry.get(GOOD.identity) == GOOD
    mended = Record(identity="/bad/.git", state="launching", root="/bad", cwd="/bad", owner="ocman")
    await registry.put(mended)
    assert await registry.all() == [mended, GOOD]
    store.close()


def test_every_field_can_be_wrong() -> None:
    assert {name for name, _ in WRONG} == set(json.loads(GOOD.to_json()))


async def test_a_path_that_is_not_utf8(tmp_path: Path) -> None:
    store = Store(tmp_path / "state.sqlite")
    registry = Registry(store)
    record = Record(identity="/r/\udcff/.git", state="launching", root="/r/\udcff", cwd="/r/\udcff", owner="user")
    await registry.put(record)
    assert await registry.get(record.identity) == record and await registry.all() == [record]
    store.close()


async def test_no_second_one_is_launched_beside_one_whose_record_broke(world) -> None:
    async with world.instances() as first:
        await first.ensure(world.target())
        identity = world.target().identity
        await first.registry._store.run(lambda db: db.execute("UPDATE instances SET record = '{'"))
        running = world.running()
        async with world.instances() as second:
            with pytest.raises(errors.OpenCodeNeedsPassword):
                await second.ensure(world.target())
            assert await second.registry.get(identity) is None and world.running() == running
