"""What the client makes of OpenCode's answers, and of none."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import subprocess
import sys
import time
import zlib
from pathlib import Path
from urllib.parse import unquote

import pytest

from ocman_jupyter import errors
from ocman_jupyter.opencode import transport
from ocman_jupyter.opencode.client import ConnectionRefused, OpenCodeClient, Unsure
from ocman_jupyter.opencode.records import SessionRecord, made_at

from .conftest import FakeOpenCode, hang, reply, reset

SESSION = {
    "id": "ses_1",
    "title": "t",
    "directory": "/w",
    "projectID": "p",
    "time": {"created": 1, "updated": 2},
    "agent": "build",
    "model": {"id": "m/x", "providerID": "prov", "variant": "default"},
    "cost": 0.5,
    "tokens": {"input": 3},
    "permission": [{"permission": "bash", "pattern": "*", "action": "ask"}],
}


@pytest.fixture
def client(fake: FakeOpenCode, jp_asyncio_loop: asyncio.AbstractEventLoop):
    made = OpenCodeClient(fake.url, "s3cret", timeout=2)
    yield made
    jp_asyncio_loop.run_until_complete(made.aclose())


def test_importing_the_client_is_light():
    modules = "sys, ocman_jupyter.opencode.client, ocman_jupyter.opencode.events"
    code = f"import {modules}; print('aiohttp' in sys.modules)"
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# --- probing ---------------------------------------------------------------------------------


async def test_health_gives_the_version_with_basic_auth(fake, client):
    assert await client.health() == "1.18.33"
    assert fake.requests[0].headers["authorization"] == "Basic b3BlbmNvZGU6czNjcmV0"


async def test_each_health_probe_opens_a_new_connection(fake, client):
    # The first request to a new screen form hangs for ever; one on a new connection is answered.
    fake.answers["GET", "/global/health"] = hang
    with pytest.raises(Unsure):
        await client.health(timeout=0.1)
    fake.answers["GET", "/global/health"] = reply({"healthy": True, "version": "1"})
    assert await client.health() == "1"
    assert await client.health() == "1"
    assert len({request.connection for request in fake.requests}) == 3


async def test_other_calls_share_a_connection(fake, client):
    fake.answers["GET", "/session/ses_1"] = reply(SESSION)
    await client.session("ses_1")
    await client.session("ses_1")
    assert fake.opened == 1


async def test_refused_is_dead():
    with socket.socket() as taken:  # bound, never listening: nobody else gets the port
        taken.bind(("127.0.0.1", 0))
        client = OpenCodeClient(f"http://127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(ConnectionRefused):
            await client.health()
        with pytest.raises(ConnectionRefused):
            async with client.events():
                pass
        await client.aclose()


@pytest.mark.parametrize("answer", [hang, reset, reply({"x": 1}, 503), reply(raw=b"", status=500)])
@pytest.mark.parametrize("call", ["health", "path", "config"])
async def test_a_probe_without_a_proper_answer_is_unsure(fake, client, answer, call):
    fake.answers["GET", {"health": "/global/health", "path": "/path", "config": "/config"}[call]] = answer
    with pytest.raises(Unsure) as caught:
        await getattr(client, call)(timeout=0.2)
    assert isinstance(caught.value, errors.OpenCodeUnreachable)


async def test_something_else_at_the_port_is_not_taken_for_an_opencode(fake, client):
    for answer in (reply(raw=b"<html>"), reply({"healthy": True}), reply([1]), reply(status=404)):
        fake.answers["GET", "/global/health"] = answer
        with pytest.raises(errors.OpenCodeError):
            await client.health()


async def test_401_asks_for_a_password(fake, client):
    fake.answers["GET", "/global/health"] = reply(status=401)
    fake.answers["GET", "/global/event"] = reply(status=401)
    with pytest.raises(errors.OpenCodeNeedsPassword):
        await client.health()
    with pytest.raises(errors.OpenCodeNeedsPassword):
        async with client.events():
            pass


async def test_a_slow_trickle_does_not_outlive_the_deadline(fake, client):
    async def trickle(request, writer):
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
        while True:
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.02)

    fake.answers["GET", "/path"] = trickle
    began = time.monotonic()
    with pytest.raises(Unsure):
        await client.path(timeout=0.3)
    assert time.monotonic() - began < 1.5


# --- errors ----------------------------------------------------------------------------------


async def test_an_error_tells_status_and_cut_text_and_never_the_password(fake, client):
    fake.answers["POST", "/session"] = reply(raw=b"s3cret " + b"x" * 5000, status=500)
    with pytest.raises(errors.OpenCodeError) as caught:
        await client.create_session("/w")
    details = caught.value.details
    assert details["status"] == 500 and len(details["text"]) <= 2000 and details["text"].startswith("*** xx")
    assert "s3cret" not in repr(client) + str(vars(caught.value))


async def test_404_of_a_session_ask_or_anything_else_are_told_apart(fake, client):
    with pytest.raises(errors.NoSuchSession):
        await client.session("ses_gone")
    with pytest.raises(errors.NotFound):
        await client.reply_permission("ses_1", "per_1", "/w", "once")
    with pytest.raises(errors.NotFound):
        await client.reply_question("que_1", "/w", [["A"]])
    with pytest.raises(errors.OpenCodeError):
        await client.dispose("/w")


async def test_an_id_that_is_none_is_not_sent(fake, client):
    for odd in ("", "abc", "../x"):
        with pytest.raises(errors.NoSuchSession):
            await client.session(odd)
    assert fake.requests == []


@pytest.mark.parametrize("odd", ["a\ud800", "a\udcff", "a\0"])
async def test_an_id_that_no_url_can_hold_is_nobodys(fake, client, odd):
    with pytest.raises(errors.NoSuchSession):
        await client.session(f"ses_{odd}")
    with pytest.raises(errors.NotFound):
        await client.reply_permission("ses_1", f"per_{odd}", "/w", "once")
    with pytest.raises(errors.NotFound):
        await client.reject_question(f"que_{odd}", "/w")
    for before in (odd, f"msg_{odd}"):
        fake.answers["GET", "/session/ses_1/message"] = reply({}, 400)
        with pytest.raises(errors.InvalidRequest):
            await client.messages("ses_1", before=before)
    with pytest.raises(errors.OpenCodeError):
        await client.tools("/w", f"prov{odd}/m")


async def test_an_id_cannot_reach_another_route(fake, client):
    with pytest.raises(errors.NoSuchSession):
        await client.session("ses_1/../../global/config?x=#y")
    assert fake.requests[0].path == "/session/ses_1%2F..%2F..%2Fglobal%2Fconfig%3Fx%3D%23y"


async def test_busy_is_its_own_error(fake, client):
    fake.answers["POST", "/session/ses_1/shell"] = reply({"_tag": "SessionBusyError"}, 409)
    with pytest.raises(errors.SessionBusy):
        await client.shell("ses_1", "ls")


@pytest.mark.parametrize(
    "answer",
    [
        reply(),
        reply({}),
        reply({"id": ""}),
        reply({"id": "ses_1"}),
        reply([]),
        reply("ok"),
        reply(raw=b"<html>"),
        reply({"id": 7, "directory": "/w"}),
        reply(status=204),
    ],
)
async def test_success_without_a_session_is_an_error(fake, client, answer):
    fake.answers["POST", "/session"] = answer
    fake.answers["POST", "/session/ses_1/fork"] = answer
    with pytest.raises(errors.OpenCodeError):
        await client.create_session("/w")
    with pytest.raises(errors.OpenCodeError):
        await client.fork("ses_1")


async def test_success_without_a_message_id_is_an_error(fake, client):
    for answer in (reply(), reply({"info": {}}), reply({"info": {"id": None}})):
        fake.answers["POST", "/session/ses_1/message"] = answer
        with pytest.raises(errors.OpenCodeError):
            await client.message_no_reply("ses_1", "x")


async def test_lists_that_are_none_are_an_error(fake, client):
    fake.answers["GET", "/session"] = reply({"data": []})
    with pytest.raises(errors.OpenCodeError):
        await client.sessions("/w")


@pytest.mark.parametrize("raw", [b"[" * 100_000, b'{"a":' * 201 + b"1" + b"}" * 201, b"\xff", b"1" * 5000])
async def test_an_answer_that_is_nested_too_deeply_or_no_json_is_not_understood(fake, client, raw):
    for path in ("/session", "/path"):
        fake.answers["GET", path] = reply(raw=raw)
    for call in (client.sessions("/w"), client.path()):
        with pytest.raises(errors.OpenCodeError) as caught:
            await call
        assert caught.value.details["status"] == 200 and len(caught.value.details["text"]) <= 2000


async def test_an_answer_may_be_deep_and_hold_much(fake, client):
    deep: dict = {"many": [{"a": [n]} for n in range(1000)]}
    for _ in range(150):
        deep = {"a": deep}
    fake.answers["GET", "/config"] = reply(deep)
    assert await client.config() == deep


@pytest.mark.parametrize("status", [200, 500])
async def test_an_answer_without_end_is_not_read_to_its_end(fake, client, status, monkeypatch):
    sent = 0

    async def endless(request, writer):
        nonlocal sent
        writer.write(b"HTTP/1.1 %d X\r\ntransfer-encoding: chunked\r\n\r\n" % status)
        while True:
            writer.write(b"10000\r\n" + b" " * 65536 + b"\r\n")
            await writer.drain()
            sent += 65536

    monkeypatch.setattr(transport, "MAX_ANSWER", 2**20)
    fake.answers["GET", "/session"] = endless
    fake.answers["GET", "/global/event"] = endless
    with pytest.raises(errors.OpenCodeError, match=r"GET /session is larger than 1 MiB") as caught:
        await client.sessions("/w")
    assert caught.value.details == {"status": status, "request": "GET /session", "limit": 2**20}
    if status == 500:
        with pytest.raises(errors.OpenCodeError, match="larger"):
            async with client.events():
                pass
    assert sent < 40 * 2**20, "what the sockets hold, not what the server would send"


async def test_two_thousand_messages_are_read(fake, client):
    told = "x" * 10_000
    messages = [{"info": {"id": f"msg_{n}"}, "parts": [{"type": "text", "text": told}]} for n in range(2000)]
    fake.answers["GET", "/session/ses_1/message"] = reply(messages)
    assert len((await client.messages("ses_1")).messages) == 2000


async def test_an_answer_that_unpacks_to_something_huge_is_not_unpacked(fake, client):
    small = zlib.compress(b"[" + b" " * 2**24 + b"]")
    fake.answers["GET", "/session"] = reply(raw=small, headers={"content-encoding": "deflate"})
    with pytest.raises(errors.OpenCodeError) as caught:
        await client.sessions("/w")
    assert fake.requests[0].headers["accept-encoding"] == "identity"
    assert len(caught.value.details["text"]) <= 2000


PASSWORD = 'pa"s\u00e4s\\'


@pytest.mark.parametrize("status", [200, 404, 500])
async def test_no_form_of_the_password_is_in_an_error(fake, status):
    client = OpenCodeClient(fake.url, PASSWORD)
    token = base64.b64encode(f"opencode:{PASSWORD}".encode()).decode()
    forms = [PASSWORD, json.dumps(PASSWORD)[1:-1], json.dumps(PASSWORD, ensure_ascii=False)[1:-1], token]
    for raw in (*(form.encode() for form in forms), json.dumps([PASSWORD, token]).encode(), b'"x"'):
        fake.answers["GET", "/config/providers"] = reply(raw=raw, status=status)
        with pytest.raises(errors.OpenCodeError) as caught:
            await client.providers("/w")
        told = str(caught.value.to_json()) + json.dumps(caught.value.details)
        assert not [form for form in forms if form in told] and "pa" not in caught.value.details["text"]
    await client.aclose()


# --- addresses and passwords -----------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    ["", "not a url", "127.0.0.1:4096", "ftp://h:1", "http://", "http:///x", "http://h:", "http://h:x", "http://h:0",
     "http://h:99999", "http://h :1", "http://h:1/a b", "http://h:1/\n", "http://\u00fcn\u00ef:1", "http://\udcff:1",
     "http://[::1", "http://[fe80::1%25eth0]:1", "http://[fe80::1%eth0]:1", "http://[v1.x]:1", "http://a..b:1",
     "http://h:1?a=b", "http://h:1#a", "http://" + "a" * 64 + ":1", "http://name:s3cret@h:1"],
)
async def test_an_odd_address_is_told_where_it_is_given(url):
    with pytest.raises(errors.InvalidRequest) as caught:
        OpenCodeClient(url, "pw")
    assert caught.value.details == {"field": "url"} and "s3cret" not in str(caught.value.to_json())


@pytest.mark.parametrize("url", ["http://h", "https://h.example:1", "http://[::1]:4096/", "http://h:1/below"])
async def test_an_address_may_be_any_servers(url):
    assert OpenCodeClient(url).url == url.rstrip("/")


@pytest.mark.parametrize("field", ["password", "username"])
async def test_a_name_or_password_that_cannot_be_sent_is_told_by_its_field(field):
    with pytest.raises(errors.InvalidRequest) as caught:
        OpenCodeClient("http://127.0.0.1:1", **{"password": "pw", "username": "u", field: "a\udcff"})
    assert caught.value.details == {"field": field} and f"OPENCODE_SERVER_{field.upper()}" in caught.value.hint


async def test_nothing_is_opened_after_close(fake, client):
    assert await client.health(fresh=False) == "1.18.33"
    await client.aclose()
    for call in (client.health(), client.session("ses_1")):
        with pytest.raises(ConnectionRefused):
            await call
    with pytest.raises(ConnectionRefused):
        async with client.events():
            pass
    assert len(fake.requests) == 1


# --- requests --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "directory", ["/a b", "/é日", "/n\nl", "/p%41", "/p%", "/plus+&=?#", "/%2e%2e", "/\x7f"]
)
async def test_directories_arrive_unchanged(fake, client, directory):
    fake.answers["POST", "/session"] = reply({**SESSION, "directory": directory})
    assert (await client.create_session(directory)).directory == directory
    assert unquote(fake.requests[0].headers["x-opencode-directory"]) == directory


async def test_directories_that_json_cannot_carry_are_refused(fake, client):
    for directory in ("/bad\udcff", "/nul\0"):
        with pytest.raises(errors.InvalidFolder):
            await client.create_session(directory)
        with pytest.raises(errors.InvalidFolder):
            await client.prompt("ses_1", "x", files=[directory])
    assert fake.requests == []


async def test_proxies_of_the_environment_are_not_asked(fake, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    client = OpenCodeClient(fake.url)
    assert await client.health() == "1.18.33"
    assert "authorization" not in fake.requests[0].headers
    await client.aclose()


async def test_sessions_are_all_asked_for(fake, client):
    # OpenCode stops at 100 unless it is told otherwise.
    fake.answers["GET", "/session"] = reply([{**SESSION, "id": f"ses_{n}"} for n in range(101)])
    assert len(await client.sessions("/w")) == 101
    assert fake.requests[0].query == "scope=project&limit=100000"


async def test_a_session_record_keeps_what_it_says(fake, client):
    fake.answers["GET", "/session/ses_1"] = reply(SESSION)
    assert await client.session("ses_1") == SessionRecord(
        "ses_1",
        "t",
        "/w",
        "p",
        None,
        1,
        2,
        "build",
        "prov/m/x",
        0.5,
        {"input": 3},
        [{"permission": "bash", "pattern": "*", "action": "ask"}],
        None,
    )


async def test_a_prompt_carries_model_agent_and_files(fake, client):
    fake.answers["POST", "/session/ses_1/prompt_async"] = reply(status=204)
    await client.prompt("ses_1", "hi \ud83d", files=["/w/a b.py", "/w/p.png"], agent="plan", model="prov/m/x")
    body = fake.requests[0].json
    assert body["model"] == {"providerID": "prov", "modelID": "m/x"} and body["agent"] == "plan"
    assert [part.get("url") for part in body["parts"]] == [None, "file:///w/a%20b.py", "file:///w/p.png"]
    assert [part.get("mime") for part in body["parts"][1:]] == ["text/plain", "image/png"]
    with pytest.raises(errors.InvalidRequest):
        await client.prompt("ses_1", "hi", model="no-provider")


async def test_a_plain_reply_finds_its_ask_by_the_session(fake, client):
    fake.answers["POST", "/session/ses_1/permissions/per_1"] = reply(True)
    fake.answers["POST", "/permission/per_1/reply"] = reply(True)
    await client.reply_permission("ses_1", "per_1", "/w", "always")
    await client.reply_permission("ses_1", "per_1", "/w", "reject", "not there")
    assert fake.requests[0].json == {"response": "always"}
    assert fake.requests[1].json == {"reply": "reject", "message": "not there"}
    assert fake.requests[1].headers["x-opencode-directory"] == "/w"


async def test_pages_begin_before_a_cursor_or_a_message(fake, client):
    fake.answers["GET", "/session/ses_1/message"] = reply([], headers={"x-next-cursor": "abc"})
    fake.answers["GET", "/session/ses_1/message/msg_1"] = reply(
        {"info": {"id": "msg_1", "time": {"created": 5}}}
    )
    assert (await client.messages("ses_1", 3)).next == "abc"
    await client.messages("ses_1", 3, "abc")
    await client.messages("ses_1", before="msg_1")
    queries = [request.query for request in fake.requests if request.path.endswith("/message")]
    assert queries == [
        "limit=3",
        "limit=3&before=abc",
        "limit=100&before=eyJpZCI6ICJtc2dfMSIsICJ0aW1lIjogNX0",
    ]
    fake.answers["GET", "/session/ses_1/message"] = reply({"_tag": "BadRequest"}, 400)
    for odd in ("junk", "msg_none"):
        with pytest.raises(errors.InvalidRequest):
            await client.messages("ses_1", 3, odd)


async def test_an_unknown_command_is_told_from_a_failing_one(fake, client):
    fake.answers["POST", "/session/ses_1/command"] = reply({"name": "UnknownError"}, 500)
    fake.answers["GET", "/session/ses_1"] = reply(SESSION)
    fake.answers["GET", "/command"] = reply([{"name": "init"}])
    with pytest.raises(errors.NotFound):
        await client.command("ses_1", "nope")
    with pytest.raises(errors.OpenCodeError):
        await client.command("ses_1", "init")


def test_the_time_inside_an_id_is_read():
    now = 1_796_037_400_000
    assert made_at("per_22c2ba56b001nClzXoxzzFR9Nh", now) == 1_796_037_387_627
    assert made_at("per_odd", now) == now
    assert made_at("", now) == now


@pytest.mark.parametrize("count", [1000])
def test_many_sessions_become_records_quickly(count):
    began = time.perf_counter()
    records = [SessionRecord.from_json(SESSION) for _ in range(count)]
    assert len(records) == count and time.perf_counter() - began < 0.05
