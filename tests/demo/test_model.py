"""The scripted model: what each directive makes it do, and the protocol that OpenCode reads."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from ocman_jupyter.demo.model import (
    ModelServer,
    Turn,
    next_turn,
    opencode_config,
    opencode_environment,
    parse,
)  # fmt: skip

TOOLS = [{"type": "function", "function": {"name": "bash"}}]


def request(script: str, results: list[str] = (), **more: Any) -> dict[str, Any]:  # type: ignore[assignment]
    """What OpenCode sends after ``results`` came back from tools."""
    messages = [{"role": "system", "content": "SAY never"}, {"role": "user", "content": script}]
    for result in results:
        messages += [{"role": "assistant", "content": ""}, {"role": "tool", "content": result}]
    return {"model": "script", "messages": messages, "tools": TOOLS, **more}


@pytest.mark.parametrize(
    ("line", "tool"),
    [
        ("RUN bash: ls -l | wc", ("bash", {"command": "ls -l | wc", "description": "scripted"})),
        ("READ src/a b.py", ("read", {"filePath": "src/a b.py"})),
        ("WRITE a.md: x: y", ("write", {"filePath": "a.md", "content": "x: y"})),
        ("EDIT a.py: 1 -> 2 -> 3", ("edit", {"filePath": "a.py", "oldString": "1", "newString": "2 -> 3"})),
        ("GLOB **/*.py", ("glob", {"pattern": "**/*.py"})),
        ("LIST src", ("glob", {"pattern": "src"})),
        ('TOOL task {"prompt": "x"}', ("task", {"prompt": "x"})),
        ("TOOL todoread", ("todoread", {})),
    ],
)
def test_each_directive_calls_its_tool(line: str, tool: tuple[str, dict[str, Any]]) -> None:
    assert next_turn(request(f"Please do this.\n  {line}")).tool == tool


def test_directives_are_done_one_turn_after_the_other() -> None:
    script = "RUN bash: pwd\nREAD a.py\nSAY finished"
    assert next_turn(request(script)).tool == ("bash", {"command": "pwd", "description": "scripted"})
    assert next_turn(request(script, ["/x"])).tool == ("read", {"filePath": "a.py"})
    assert next_turn(request(script, ["/x", "text"])) == Turn(text="finished")


def test_after_the_last_tool_its_result_is_told_and_cut() -> None:
    assert next_turn(request("RUN bash: pwd", ["/a/b\n"])).text == "DONE /a/b\n"
    assert len(next_turn(request("RUN bash: pwd", ["x" * 5000])).text or "") < 1000


def test_only_the_last_message_of_the_user_is_the_script() -> None:
    body = request("RUN bash: first", ["one"])
    body["messages"].append({"role": "user", "content": [{"type": "text", "text": "RUN bash: second"}]})
    turn = next_turn(body)
    assert turn.tool is not None
    assert turn.tool[1]["command"] == "second"


def test_sleep_delays_the_next_directive_and_is_not_one_of_them() -> None:
    script = "SLEEP 2\nRUN bash: pwd\nSLEEP 3\nSAY end"
    assert next_turn(request(script)).pause == 2
    assert next_turn(request(script, ["/x"])) == Turn(3, text="end")
    assert next_turn(request("SLEEP 1.5")).pause == 1.5


def test_stream_is_text_in_pieces_at_a_rate() -> None:
    turn = next_turn(request("STREAM 30 10"))
    assert (turn.pieces, turn.rate, (turn.text or "").count("w")) == (30, 10, 30)


def test_what_is_no_directive_is_echoed_with_the_note() -> None:
    assert next_turn(request("How are you?"), note=" (a demo)").text == "echo: How are you? (a demo)"
    assert parse("RUN\nREAD\nsay hello\nWRITEa") == []


def test_a_request_without_tools_is_for_a_title_and_runs_nothing() -> None:
    assert next_turn(request("RUN bash: rm -rf x", tools=[])).text == "title: RUN bash: rm -rf x"


def answers(url: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    """The chunks that the model streams."""
    response = httpx.post(f"{url}/chat/completions", json=body, timeout=30, trust_env=False)
    assert response.status_code == 200, response.text
    lines = [line.removeprefix("data: ") for line in response.text.splitlines() if line]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


def test_the_stream_ends_as_the_protocol_wants() -> None:
    with ModelServer() as model:
        said = answers(model.url, request("SAY hello"))
        called = answers(model.url, request("RUN bash: pwd"))
    assert "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in said) == "hello"
    assert said[-1]["choices"][0]["finish_reason"] == "stop"
    assert said[-1]["usage"]["total_tokens"] == 15
    [call] = [call for chunk in called for call in chunk["choices"][0]["delta"].get("tool_calls", [])]
    assert json.loads(call["function"]["arguments"])["command"] == "pwd"
    assert called[-1]["choices"][0]["finish_reason"] == "tool_calls"


def test_a_stream_comes_in_as_many_pieces_as_were_asked_for() -> None:
    with ModelServer() as model:
        chunks = answers(model.url, request("STREAM 25 500"))
    pieces = [chunk["choices"][0]["delta"].get("content") for chunk in chunks]
    assert len([piece for piece in pieces if piece]) == 25


@pytest.mark.parametrize(
    ("script", "status"),
    [
        ("FAIL 429", 429),
        ("FAIL 500", 500),
        ("FAIL soon", 400),
        ("WRITE nowhere", 400),
        ("TOOL x {broken", 400),
    ],
)
def test_a_failure_is_a_status_also_of_a_script_that_makes_no_sense(script: str, status: int) -> None:
    with ModelServer() as model:
        url = f"{model.url}/chat/completions"
        assert httpx.post(url, json=request(script), trust_env=False).status_code == status
        assert httpx.post(url, content=b"[1, 2", trust_env=False).status_code == 400


def test_each_request_is_written_to_the_log(tmp_path: Any) -> None:
    log = tmp_path / "log.jsonl"
    with ModelServer(log=str(log)) as model:
        answers(model.url, request("SAY one"))
        answers(model.url, request("SAY two"))
    bodies = [json.loads(line)["body"] for line in log.read_text().splitlines()]
    assert [body["messages"][-1]["content"] for body in bodies] == ["SAY one", "SAY two"]


def test_the_configuration_knows_no_other_provider_and_says_what_this_is() -> None:
    config = opencode_config("http://127.0.0.1:1/v1", permission={"bash": "ask"})
    assert config["enabled_providers"] == ["scripted"]
    assert config["permission"] == {"bash": "ask"}
    assert "scripted, offline" in json.dumps(config)
    env = opencode_environment("http://127.0.0.1:1/v1")
    assert json.loads(env["OPENCODE_CONFIG_CONTENT"])["model"] == "scripted/script"
    assert env["OPENCODE_DISABLE_MODELS_FETCH"] == "1"
