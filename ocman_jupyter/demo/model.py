"""A scripted, offline stand-in for a language model, with the OpenAI chat-completions protocol.

It is no model: the last message of the user is a script, one directive a line, and each directive
is one turn of the agent's loop.  The demo, the tests and the benchmarks drive the real OpenCode
with it.

======================== ============================================================
``RUN bash: COMMAND``    call the bash tool
``READ PATH``            call the read tool
``WRITE PATH: TEXT``     call the write tool
``EDIT PATH: A -> B``    call the edit tool
``GLOB PATTERN``         call the glob tool (``LIST`` is the same)
``TOOL NAME JSON``       call any tool with these arguments
``SLEEP SECONDS``        stream slow text that long, then go on with the next directive
``STREAM COUNT RATE``    stream COUNT small pieces of text, RATE a second, and end
``FAIL STATUS``          answer with that HTTP status
``SAY TEXT``             answer with this text and end
======================== ============================================================

A message without a directive is echoed.  After the last directive the answer is
``DONE <result of the last tool>``.

Run alone: ``python -m ocman_jupyter.demo.model [--port N] [--port-file FILE] [--log FILE]``;
prints ``LISTENING http://127.0.0.1:PORT/v1`` and serves until it is interrupted.
"""

from __future__ import annotations

import argparse
import json
import re
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

PROVIDER = "scripted"
MODEL = "script"
LABEL = "demo model (scripted, offline)"
"""What people see as the name of this model."""

_DIRECTIVE = re.compile(r"^\s*(RUN bash:|(?:READ|WRITE|EDIT|GLOB|LIST|TOOL|SLEEP|STREAM|FAIL|SAY) )(.*)$")
_RESULT_CHARS = 600
_ECHO_CHARS = 400


class Directive(NamedTuple):
    """One line of a script: what to do, and with what."""

    verb: str
    rest: str


@dataclass(frozen=True)
class Turn:
    """What the model does in one turn; exactly one of ``status``, ``tool`` and ``text`` is set."""

    pause: float = 0.0
    """Seconds of slow text before it."""
    status: int | None = None
    """Fail with this HTTP status."""
    tool: tuple[str, dict[str, Any]] | None = None
    """Call this tool with these arguments."""
    text: str | None = None
    """Say this and end the agent's loop."""
    pieces: int = 1
    """How many pieces the text comes in."""
    rate: float = 0.0
    """Pieces a second; 0 = at once."""


def parse(script: str) -> list[Directive]:
    """The directives in ``script``, in order; other lines are left out."""
    found = (_DIRECTIVE.match(line) for line in script.splitlines())
    return [Directive(match[1].strip(), match[2].strip()) for match in found if match]


def next_turn(body: dict[str, Any], note: str = "") -> Turn:
    """What the script in the request ``body`` wants next.

    ``note`` is added to answers that only echo.  Raises ``ValueError`` for a directive that cannot
    be understood.
    """
    messages = body.get("messages") or []
    last = max((at for at, message in enumerate(messages) if message.get("role") == "user"), default=-1)
    script = _text(messages[last]) if last >= 0 else ""
    if not body.get("tools"):  # a request for a title or a summary: nothing to run
        return Turn(text="title: " + script[:40].replace("\n", " "))
    results = [message for message in messages[last + 1 :] if message.get("role") == "tool"]
    pause, done = 0.0, 0
    for directive in parse(script):
        if directive.verb == "SLEEP":
            pause += float(directive.rest)
        elif done < len(results):
            done, pause = done + 1, 0.0
        else:
            return _turn(directive, pause)
    if results:
        return Turn(pause, text="DONE " + _text(results[-1])[:_RESULT_CHARS])
    return Turn(pause, text="echo: " + script[-_ECHO_CHARS:] + note)


def _text(message: dict[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content or [] if part.get("type") == "text")


def _turn(directive: Directive, pause: float) -> Turn:
    verb, rest = directive
    if verb == "SAY":
        return Turn(pause, text=rest)
    if verb == "FAIL":
        return Turn(status=int(rest))
    if verb == "STREAM":
        count, _, rate = rest.partition(" ")
        pieces = int(count)
        text = "".join(f"w{number:05d} " for number in range(pieces))
        return Turn(pause, text=text, pieces=pieces, rate=float(rate or 0))
    return Turn(pause, tool=_tool(verb, rest))


def _tool(verb: str, rest: str) -> tuple[str, dict[str, Any]]:
    if verb == "RUN bash:":
        return "bash", {"command": rest, "description": "scripted"}
    if verb == "READ":
        return "read", {"filePath": rest}
    if verb == "WRITE":
        path, text = _two(rest, ": ")
        return "write", {"filePath": path, "content": text}
    if verb == "EDIT":
        path, change = _two(rest, ": ")
        old, new = _two(change, " -> ")
        return "edit", {"filePath": path, "oldString": old, "newString": new}
    if verb in ("GLOB", "LIST"):
        return "glob", {"pattern": rest}
    name, _, arguments = rest.partition(" ")
    return name, json.loads(arguments or "{}")


def _two(text: str, separator: str) -> tuple[str, str]:
    first, found, second = text.partition(separator)
    if not found:
        raise ValueError(f"{separator!r} is missing in {text!r}")
    return first, second


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ModelServer

    def log_message(self, format: str, *args: object) -> None:
        """Nothing on stderr: the log file is the log."""

    def do_GET(self) -> None:
        self._json(200, {"object": "list", "data": [{"id": MODEL, "object": "model"}]})

    def do_POST(self) -> None:
        try:
            body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)))
            self.server.record(self.path, body)
            turn = next_turn(body, self.server.note)
        except (ValueError, TypeError, AttributeError) as error:
            return self._json(400, {"error": {"message": f"script: {error}", "type": "script"}})
        if turn.status is not None:
            return self._json(turn.status, {"error": {"message": "scripted failure", "type": "script"}})
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.close_connection = True
        self.end_headers()
        try:
            for chunk in _chunks(turn):
                self.wfile.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
                self.wfile.flush()
            self.wfile.write(b"data: [DONE]\n\n")
        except (BrokenPipeError, ConnectionResetError):
            pass  # the agent was aborted

    def _json(self, status: int, answer: dict[str, Any]) -> None:
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _chunks(turn: Turn) -> Iterator[dict[str, Any]]:
    """The answer as the protocol's stream of chunks, in its own time."""
    yield _chunk({"role": "assistant", "content": ""})
    end = time.monotonic() + turn.pause
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(0.5, left))
        yield _chunk({"content": "."})
    if turn.tool is not None:
        name, arguments = turn.tool
        function = {"name": name, "arguments": json.dumps(arguments)}
        call = {"index": 0, "id": f"call_{time.time_ns():x}", "type": "function", "function": function}
        yield _chunk({"tool_calls": [call]})
    else:
        yield from _text_chunks(turn)
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    yield {**_chunk({}, "tool_calls" if turn.tool else "stop"), "usage": usage}


def _text_chunks(turn: Turn) -> Iterator[dict[str, Any]]:
    text = turn.text or ""
    size = max(1, -(-len(text) // max(1, turn.pieces)))
    began = time.monotonic()
    for number, at in enumerate(range(0, len(text), size)):
        if turn.rate > 0:
            time.sleep(max(0.0, began + number / turn.rate - time.monotonic()))
        yield _chunk({"content": text[at : at + size]})


def _chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {
        "id": "chatcmpl-script",
        "object": "chat.completion.chunk",
        "created": int(time.time()),
        "model": MODEL,
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }


class ModelServer(ThreadingHTTPServer):
    """The model on a loopback port.  ``with ModelServer() as model: … model.url …``."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int = 0, log: str | None = None, note: str = "") -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.note = note
        self._log = log
        self._log_lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def record(self, path: str, body: dict[str, Any]) -> None:
        """Write the request to the log file, one JSON object a line."""
        if self._log:
            line = json.dumps({"t": time.time(), "path": path, "body": body})
            with self._log_lock, open(self._log, "a", encoding="utf-8") as file:
                file.write(line + "\n")

    def start(self) -> ModelServer:
        """Serve from a thread of its own."""
        threading.Thread(target=self.serve_forever, name="scripted-model", daemon=True).start()
        return self

    def stop(self) -> None:
        self.shutdown()
        self.server_close()

    def __enter__(self) -> ModelServer:
        return self.start()

    def __exit__(self, *exc: object) -> None:
        self.stop()


def start(port: int = 0, log: str | None = None, note: str = "") -> tuple[ModelServer, str]:
    """Start the model in a thread; the server and its base URL."""
    server = ModelServer(port, log, note).start()
    return server, server.url


def opencode_config(base_url: str, **extra: Any) -> dict[str, Any]:
    """The OpenCode configuration (``OPENCODE_CONFIG_CONTENT``) that makes this the only model."""
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": LABEL,
        "options": {"baseURL": base_url, "apiKey": "none"},
        "models": {MODEL: {"name": LABEL, "tool_call": True, "limit": {"context": 200_000, "output": 8_000}}},
    }
    return {
        "$schema": "https://opencode.ai/config.json",
        "model": f"{PROVIDER}/{MODEL}",
        "small_model": f"{PROVIDER}/{MODEL}",
        "enabled_providers": [PROVIDER],
        "share": "disabled",
        "autoupdate": False,
        "provider": {PROVIDER: provider},
        **extra,
    }


OFFLINE = {
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
}
"""What keeps OpenCode from looking for anything on the network."""


def opencode_environment(base_url: str, **extra: Any) -> dict[str, str]:
    """The environment variables with which OpenCode uses this model and nothing from the network."""
    return {"OPENCODE_CONFIG_CONTENT": json.dumps(opencode_config(base_url, **extra)), **OFFLINE}


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m ocman_jupyter.demo.model", description=LABEL)
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1; 0 = any free one")
    parser.add_argument("--port-file", help="write the base URL to this file")
    parser.add_argument("--log", help="write each request to this file, one JSON object a line")
    arguments = parser.parse_args(argv)
    server = ModelServer(arguments.port, arguments.log)
    if arguments.port_file:
        with open(arguments.port_file, "w", encoding="utf-8") as file:
            file.write(server.url)
    print("LISTENING", server.url, flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
