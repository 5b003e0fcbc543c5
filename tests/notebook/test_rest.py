"""The REST client over a transport of the test: errors, retries, secrets (hazards 13, 14, 82, 86)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from ocman_jupyter.errors import NoCommits, OcmanError, ServerUnreachable, SessionBusy, Unauthorized
from ocman_jupyter.notebook import rest
from ocman_jupyter.notebook.connection import Server
from ocman_jupyter.notebook.rest import RestClient

SECRET = "s3cret-token"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    async def no_sleep(seconds: float) -> None:
        assert seconds < 5

    monkeypatch.setattr(rest.asyncio, "sleep", no_sleep)


def client(answer: Callable[[httpx.Request], httpx.Response], **server: Any) -> RestClient:
    values = {"url": "http://localhost:8888/a%40b/", "token": SECRET, **server}
    return RestClient(Server(**values), httpx.MockTransport(answer))


async def test_token_goes_in_the_header_and_nowhere_else() -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, json={"checks": []})

    asked = client(answer)
    assert await asked.doctor() == {"checks": []}
    assert seen[0].headers["authorization"] == f"token {SECRET}"
    assert "cookie" not in seen[0].headers
    assert str(seen[0].url) == "http://localhost:8888/a%40b/api/ocman/doctor"
    assert SECRET not in repr(asked) + asked.where + str(seen[0].url)


async def test_a_path_is_said_to_the_server_as_it_is() -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, json={"files": []})

    assert await client(answer).diff("/w/a b&c", "feat/x") == {"files": []}
    assert seen[0].url.path.endswith("/api/ocman/worktrees/diff")
    assert dict(seen[0].url.params) == {"path": "/w/a b&c", "against": "feat/x"}


async def test_without_a_token_cookie_and_header_agree() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        assert request.headers["cookie"] == f"_xsrf={request.headers['x-xsrftoken']}"
        assert "authorization" not in request.headers
        return httpx.Response(200, json={})

    await client(answer, token="").abort("ses_1")


async def test_errors_of_the_server_are_the_same_typed_errors() -> None:
    body = {"code": "no_commits", "message": "None yet.", "hint": "Commit.", "details": {"x": 1}}
    with pytest.raises(NoCommits) as caught:
        await client(lambda request: httpx.Response(422, json=body)).ensure("/x")
    assert caught.value.to_json() == body


async def test_an_error_code_of_a_newer_server_is_kept() -> None:
    body = {"code": "new_thing", "message": "m", "hint": None, "details": {}}
    with pytest.raises(OcmanError) as caught:
        await client(lambda request: httpx.Response(409, json=body)).asks()
    assert caught.value.code == "new_thing"


@pytest.mark.parametrize("answer", [
    httpx.Response(403, json={"message": "Forbidden", "reason": None}),
    httpx.Response(401, json={"code": "unauthorized", "message": "m", "hint": None, "details": {}}),
    httpx.Response(302, headers={"location": "/login"}),
])  # fmt: skip
@pytest.mark.parametrize("token", ["", SECRET])
async def test_refused_credentials_are_said_in_one_line(answer: httpx.Response, token: str) -> None:
    with pytest.raises(Unauthorized) as caught:
        await client(lambda request: answer, token=token).doctor()
    assert "%ocman local" in (caught.value.hint or "")
    assert ("no token for it was found" in caught.value.message) == (not token)


async def test_a_server_without_the_extension_is_said_in_one_line() -> None:
    with pytest.raises(ServerUnreachable, match="does not run the ocman_jupyter extension") as caught:
        await client(lambda request: httpx.Response(404, text="<html>404")).worktrees("/x")
    assert "%ocman local" in (caught.value.hint or "")


async def test_something_else_at_the_address_is_said() -> None:
    with pytest.raises(ServerUnreachable, match="not a Jupyter server"):
        await client(lambda request: httpx.Response(200, text="hello")).doctor()


@pytest.mark.parametrize("failure", ["timeout", "reset", "proxy"])
async def test_a_create_that_is_sent_again_is_one_create(failure: str) -> None:
    seen: list[dict[str, Any]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(json.loads(request.content))
        if len(seen) > 1:
            return httpx.Response(200, json={"session_id": "ses_1"})
        if failure == "proxy":
            return httpx.Response(504, text="gateway time-out")
        raise {"timeout": httpx.ReadTimeout, "reset": httpx.ReadError}[failure]("x", request=request)

    body = {"directory": "/x", "branch": "b", "request_id": "r1"}
    assert await client(answer).create(body) == {"session_id": "ses_1"}
    assert seen == [body, body]


async def test_a_typed_error_is_not_asked_again() -> None:
    seen = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(
            503, json={"code": "launch_failed", "message": "m", "hint": None, "details": {}}
        )

    with pytest.raises(OcmanError) as caught:
        await client(answer).create({"request_id": "r"})
    assert caught.value.code == "launch_failed" and len(seen) == 1


async def test_a_prompt_is_never_sent_twice_by_itself() -> None:
    seen = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        raise httpx.ReadTimeout("x", request=request)

    with pytest.raises(ServerUnreachable, match="may still be at work"):
        await client(answer).prompt("ses_1", {"text": "x"})
    assert len(seen) == 1


async def test_a_server_that_is_gone_is_said_without_the_token() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError(f"refused {SECRET}", request=request)

    with pytest.raises(ServerUnreachable) as caught:
        await client(answer).doctor()
    assert SECRET not in json.dumps(caught.value.to_json())


async def test_ids_cannot_leave_their_place_in_the_path() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        assert request.url.raw_path == b"/a%40b/api/ocman/sessions/..%2F..%2Fx%3Fy/abort"
        return httpx.Response(200, json={"aborted": True})

    await client(answer).abort("../../x?y")


async def test_stream_gives_events_and_typed_errors() -> None:
    event = {"type": "session.updated", "data": {"id": "ses_1"}}
    text = f": stream\n\nid: 1\nevent: session.updated\ndata: {json.dumps(event)}\n\n"
    error = {"code": "session_busy", "message": "m", "hint": None, "details": {}}
    text += f"event: error\ndata: {json.dumps(error)}\n\n"
    answer = httpx.Response(200, headers={"content-type": "text/event-stream"}, text=text)
    seen = []
    with pytest.raises(SessionBusy):
        async for sent in client(lambda request: answer).stream("ses_1"):
            seen.append(sent)
    assert seen == [event]


async def test_proxies_of_the_environment_never_see_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    asked = RestClient(Server("http://127.0.0.1:9/", SECRET))
    http = asked._make()
    assert http.trust_env is False and not http._mounts
    await http.aclose()
