"""The demo without a person: the whole main job on real parts, and proof that nothing is left behind."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from ocman_jupyter.errors import OcmanError

from .ending import end_the_rest, opencode_processes, stop_instances
from .model import ModelServer
from .place import Place
from .sample import make_sample
from .server import JupyterServer, free_port

PROMPT = "RUN bash: pwd"
ANSWER_TIMEOUT = 180.0
Say = Callable[[str], None]


class CheckFailed(Exception):
    """Something did not come out as it must; the text says what."""


def check(say: Say) -> None:
    """Make a worktree session on a new sample project, ask it for ``pwd``, print what came, clean up.

    Raises ``CheckFailed`` or an ``OcmanError``.
    """
    place = Place(Path(tempfile.mkdtemp(prefix="ocman-demo-")).resolve())
    try:
        with ModelServer() as model:
            env = place.environment(model.url)
            place.prepare(model.url)
            make_sample(place.folder)
            _with_a_server(place, env, say)
    except BaseException:
        end_the_rest(place)
        raise
    else:
        if killed := end_the_rest(place):
            raise CheckFailed(f"still running at the end, and killed: {', '.join(killed)}")
        say("nothing is left running")
    finally:
        place.remove()


def _with_a_server(place: Place, env: dict[str, str], say: Say) -> None:
    say("starting a Jupyter server …")
    arguments = ["--no-browser", f"--ServerApp.port={free_port()}"]
    server = JupyterServer(place.project, env, place.log, arguments=arguments)
    try:
        server.wait_ready()
        with server.client() as client:
            _main_job(client, place, say)
    except BaseException:
        say("Jupyter said last:\n" + server.tail())
        raise
    finally:
        server.stop()
        problem = stop_instances(env)
    if problem:
        raise CheckFailed(problem)


def _main_job(client: httpx.Client, place: Place, say: Say) -> None:
    say("asking for a worktree session …")
    body = {"directory": str(place.project), "branch": "fix-loader", "prompt": PROMPT}
    made = _told(client.post("api/ocman/worktrees", json=body))
    session, worktree = str(made["session_id"]), str(made["worktree_path"])
    print(f"session: {session}")
    print(f"worktree: {worktree}", flush=True)
    answer = _answer(client, session, say)
    print(f"answer: {answer}")
    count = len(opencode_processes(place))
    print(f"opencode processes: {count}", flush=True)
    if os.path.realpath(answer) != os.path.realpath(worktree):
        raise CheckFailed(f"the agent works in {answer}, not in {worktree}")
    if count != 1:
        raise CheckFailed(f"{count} OpenCode processes run where one must")


def _told(response: httpx.Response) -> dict[str, Any]:
    try:
        body = response.json()
    except ValueError:
        body = {}
    if response.status_code >= 400:
        if "code" in body:
            raise OcmanError.from_json(body)
        raise CheckFailed(f"{response.request.url.path} answered {response.status_code}")
    return dict(body)


def _answer(client: httpx.Client, session: str, say: Say) -> str:
    """What the agent says at the end of its turn."""
    say("waiting for the agent …")
    deadline = time.monotonic() + ANSWER_TIMEOUT
    texts: list[str] = []
    while time.monotonic() < deadline:
        messages = _told(client.get(f"api/ocman/sessions/{session}/messages"))["messages"]
        for message in messages:
            if error := message["info"].get("error"):
                raise CheckFailed(f"the agent's turn failed: {error}")
        texts = [
            part["text"] for message in messages if message["info"]["role"] == "assistant"
            for part in message["parts"] if part.get("type") == "text"
        ]  # fmt: skip
        done = [text for text in texts if text.startswith("DONE ")]
        if done and _told(client.get(f"api/ocman/sessions/{session}"))["status"] == "idle":
            return done[-1].removeprefix("DONE ").strip()
        time.sleep(0.2)
    raise CheckFailed(f"the agent gave no answer within {ANSWER_TIMEOUT:g} s; it said {texts}")


def main(say: Say) -> int:
    """``ocman-jupyter demo --check``: the exit code."""
    try:
        check(say)
    except CheckFailed as error:
        say(f"FAILED: {error}")
        return 1
    except OcmanError as error:
        say(f"FAILED [{error.code}]: {error.message}")
        for line in (error.hint, error.details.get("output")):
            if line:
                print(line, file=sys.stderr)
        return 1
    say("ok")
    return 0
