"""What of OpenCode's agents, models and commands a person can choose."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ocman_jupyter import errors
from ocman_jupyter.opencode.choices import read_choices
from ocman_jupyter.opencode.client import OpenCodeClient

from .conftest import FakeOpenCode, reply

AGENTS = [
    {"name": "build", "mode": "primary", "description": "Builds"},
    {"name": "mine", "mode": "all"},
    {"name": "general", "mode": "subagent", "description": "Helps"},
    {"name": "title", "mode": "primary", "hidden": True},
    {"mode": "primary"},
]
PROVIDERS = {
    "providers": [
        {"id": "p", "name": "Provider", "models": {"a/b": {"id": "a/b", "name": "A B"}, "c": {}}},
        {"id": "q", "models": {"d": {"name": "D"}}},
        {"id": "r", "name": "Empty"},
    ],
    "default": {"q": "d", "p": "c"},
}
COMMANDS = [{"name": "init", "description": "Begin", "template": "…"}, {"name": "x", "description": ""}, {}]


def answer(fake: FakeOpenCode, config: Any = None, providers: Any = PROVIDERS) -> None:
    fake.answers["GET", "/agent"] = reply(AGENTS)
    fake.answers["GET", "/config/providers"] = reply(providers)
    fake.answers["GET", "/command"] = reply(COMMANDS)
    fake.answers["GET", "/config"] = reply(config or {})


@pytest.fixture
def client(fake: FakeOpenCode, jp_asyncio_loop: asyncio.AbstractEventLoop):
    made = OpenCodeClient(fake.url, timeout=5)
    yield made
    jp_asyncio_loop.run_until_complete(made.aclose())


async def test_what_a_person_can_choose(fake, client) -> None:
    answer(fake)
    choices = await read_choices(client, "/w é")
    assert choices.agents == [("build", "Builds"), ("mine", None)]
    assert choices.models == [("p/a/b", "A B", "Provider"), ("p/c", "c", "Provider"), ("q/d", "D", "q")]
    assert choices.commands == [("init", "Begin"), ("x", None)]
    assert choices.default_model == "q/d"
    assert {request.headers["x-opencode-directory"] for request in fake.requests} == {"/w%20%C3%A9"}


@pytest.mark.parametrize(
    "config,providers,expected",
    [
        ({"model": "p/a/b"}, PROVIDERS, "p/a/b"),
        ({"model": "gone/x"}, PROVIDERS, "q/d"),
        ({"model": 1}, PROVIDERS, "q/d"),
        ({}, {**PROVIDERS, "default": {"gone": "x", "p": "c"}}, "p/c"),
        ({}, {"providers": [], "default": {}}, None),
        ({}, {"providers": {}, "default": []}, None),
        ({}, {}, None),
    ],
)
async def test_the_model_that_is_taken_when_none_is_named(fake, client, config, providers, expected) -> None:
    answer(fake, config, providers)
    assert (await read_choices(client, "/w")).default_model == expected


async def test_an_answer_that_cannot_be_read_is_opencodes_error(fake, client) -> None:
    answer(fake)
    fake.answers["GET", "/agent"] = reply({"name": "odd"})
    with pytest.raises(errors.OpenCodeError):
        await read_choices(client, "/w")
