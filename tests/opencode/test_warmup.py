"""The warm-up against a stand-in: what it asks, and that its throw-away goes whatever happens."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from ocman_jupyter import errors
from ocman_jupyter.opencode import warmup
from ocman_jupyter.opencode.client import OpenCodeClient
from ocman_jupyter.opencode.records import WARM_UP_TITLE, SessionRecord

from .conftest import FakeOpenCode, hang, reply, until

ROUTES = {
    ("GET", "/config/providers"): {"providers": [], "default": {"prov": "m"}},
    ("GET", "/agent"): [],
    ("GET", "/command"): [],
    ("GET", "/experimental/tool"): [],
    ("GET", "/global/health"): {"healthy": True, "version": "1.17.11"},
    ("GET", "/api/location"): {},
    ("POST", "/session"): {"id": "ses_w", "directory": "/w", "title": WARM_UP_TITLE},
    ("POST", "/session/ses_w/message"): {"info": {"id": "msg_1"}, "parts": []},
    ("POST", "/session/ses_w/revert"): {"id": "ses_w", "directory": "/w"},
    ("DELETE", "/session/ses_w"): True,
}


@pytest.fixture
def client(fake: FakeOpenCode, jp_asyncio_loop: asyncio.AbstractEventLoop):
    for route, body in ROUTES.items():
        fake.answers[route] = reply(body)
    made = OpenCodeClient(fake.url, timeout=1)
    yield made
    jp_asyncio_loop.run_until_complete(made.aclose())


def asked(fake: FakeOpenCode) -> list[str]:
    return [f"{request.method} {request.path}" for request in fake.requests]


async def test_it_asks_for_what_a_first_prompt_needs_and_for_no_answer(fake, client):
    await warmup.warm(client, "/w")
    assert sorted(asked(fake)) == sorted(f"{method} {path}" for method, path in ROUTES)
    assert asked(fake)[-3:] == [
        "POST /session/ses_w/message",
        "POST /session/ses_w/revert",
        "DELETE /session/ses_w",
    ]
    by_path = {request.path: request for request in fake.requests}
    assert by_path["/session"].json == {"title": WARM_UP_TITLE}
    assert by_path["/session/ses_w/message"].json["noReply"] is True
    assert by_path["/session/ses_w/revert"].json == {"messageID": "msg_1"}
    assert by_path["/experimental/tool"].query == "provider=prov&model=m"
    directories = {r.headers.get("x-opencode-directory") for r in fake.requests if "ses_w" not in r.path}
    assert directories == {"/w", None}  # None: health


async def test_later_versions_are_not_made_to_load_what_they_load_anew(fake, client):
    fake.answers["GET", "/global/health"] = reply({"healthy": True, "version": "1.18.33"})
    await warmup.warm(client, "/w")
    await warmup.warm(client, "/w")
    assert "GET /api/location" not in asked(fake) and asked(fake).count("GET /global/health") == 1


@pytest.mark.parametrize("route", [route for route in ROUTES if route[0] != "DELETE" and route[1] != "/session"])
async def test_when_a_step_fails_the_throw_away_is_deleted(fake, client, route):
    fake.answers[route] = reply({"name": "UnknownError"}, 500)
    with pytest.raises(errors.OcmanError):
        await warmup.warm(client, "/w")
    assert asked(fake)[-1] == "DELETE /session/ses_w"


@pytest.mark.parametrize("route", [route for route in ROUTES if route[0] != "DELETE"])
async def test_when_it_is_cancelled_the_throw_away_is_deleted(fake, client, route):
    release = asyncio.Event()

    async def slow(request, writer):
        await release.wait()
        await reply(ROUTES[route])(request, writer)

    fake.answers[route] = slow
    warming = asyncio.ensure_future(warmup.warm(client, "/w"))
    await until(lambda: f"{route[0]} {route[1]}" in asked(fake))
    warming.cancel()
    await asyncio.sleep(0.02)
    release.set()
    with contextlib.suppress(asyncio.CancelledError):
        await warming
    assert warming.cancelled()
    await until(lambda: "DELETE /session/ses_w" in asked(fake))


async def test_a_second_cancel_does_not_stop_the_deleting(fake, client):
    fake.answers["POST", "/session/ses_w/message"] = hang
    release = asyncio.Event()

    async def slow(request, writer):
        await release.wait()
        await reply(True)(request, writer)

    fake.answers["DELETE", "/session/ses_w"] = slow
    warming = asyncio.ensure_future(warmup.warm(client, "/w"))
    await until(lambda: "POST /session/ses_w/message" in asked(fake))
    warming.cancel()
    await until(lambda: "DELETE /session/ses_w" in asked(fake))
    warming.cancel()
    await asyncio.sleep(0.02)
    assert not warming.done()
    release.set()
    await asyncio.wait([warming])
    assert warming.cancelled()


async def test_a_throw_away_that_is_gone_already_is_no_error(fake, client):
    fake.answers["DELETE", "/session/ses_w"] = reply({}, 404)
    await warmup.warm(client, "/w")


async def test_only_throw_aways_are_swept(fake, client):
    sessions = [SessionRecord("ses_w", WARM_UP_TITLE, "/w"), SessionRecord("ses_1", "mine", "/w")]
    assert await warmup.sweep(client, sessions) == 1
    assert asked(fake) == ["DELETE /session/ses_w"]
