"""Long conversations as agents have them, brought into OpenCode by its own import."""

from __future__ import annotations

import json
import random
import subprocess
import time
import zlib
from pathlib import Path
from typing import Any

from . import repositories
from .scene import Scene

TURN = 5
"""Messages from one prompt to the next."""


def prose(rng: random.Random, size: int) -> str:
    """About ``size`` characters of markdown as agents write it."""
    pieces: list[str] = []
    while sum(map(len, pieces)) < size:
        sentence = repositories.code(rng, 160).replace("\n", " ").strip()
        pieces += [
            f"## Step {rng.randint(1, 99)}\n\nThe `loader` reads **all rows** at once: {sentence}.\n\n",
            f"1. open `data/{rng.randint(1, 999)}.csv`\n2. keep what [fit](src/fit.py) needs\n   - not the rest\n\n",
            f"```python\n{repositories.code(rng, 240)}\n```\n\n",
            f"| field | yield |\n| --- | ---: |\n| north | {rng.random():.3f} |\n| south | {rng.random():.3f} |\n\n",
        ]
    return "".join(pieces)


def import_session(scene: Scene, root: Path, title: str, messages: int) -> str:
    """A session in ``root`` with so many messages, the last of which ends with the title; its id.

    Only for an OpenCode that does not run yet: a running one does not hear of it.
    """
    number = zlib.crc32(title.encode())
    name, rng = f"ses_{number:026d}", random.Random(number)
    began = int(time.time() * 1000) - messages * 1000
    told = [_message(rng, name, root, at, messages, began + at * 1000, title) for at in range(messages)]
    session = {
        "id": name,
        "slug": "imported",
        "projectID": "global",
        "directory": str(root),
        "path": "",
        "title": title,
        "version": "1.17.11",
        "time": {"created": began, "updated": began + messages * 1000},
    }
    file = scene.folder / f"{name}.json"
    file.write_text(json.dumps({"info": session, "messages": told}))
    done = subprocess.run(["opencode", "import", str(file)], cwd=root, env=scene.env, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"opencode import: {done.stderr[-1000:]}")
    return name


def _message(rng: random.Random, session: str, root: Path, at: int, count: int, now: int, title: str) -> dict[str, Any]:
    def named(kind: str, number: int) -> str:
        return f"{kind}_{number:012x}{session[-14:]}"

    info: dict[str, Any] = {"id": named("msg", at), "sessionID": session, "agent": "build"}
    step = at % TURN
    if step == 0:
        info |= {"role": "user", "time": {"created": now}, "model": {"providerID": "scripted", "modelID": "script"}}
        parts = [{"type": "text", "text": f"Prompt {at // TURN}: {prose(rng, 200)[:200]}"}]
    else:
        is_end = step == TURN - 1 or at == count - 1
        tokens = {"total": 15, "input": 10, "output": 5, "reasoning": 0, "cache": {"read": 0, "write": 0}}
        info |= {
            "role": "assistant",
            "parentID": named("msg", at - step),
            "mode": "build",
            "path": {"cwd": str(root), "root": str(root)},
            "cost": 0,
            "tokens": tokens,
            "providerID": "scripted",
            "modelID": "script",
            "time": {"created": now, "completed": now + 900},
            "finish": "stop" if is_end else "tool-calls",
        }
        said = _answer(rng, title if at == count - 1 else "") if is_end else _work(rng, root, step, now)
        ending = {"type": "step-finish", "reason": info["finish"], "tokens": tokens, "cost": 0}
        parts = [{"type": "step-start"}, *said, ending]
    kept = {"sessionID": session, "messageID": info["id"]}
    return {
        "info": info,
        "parts": [{**part, "id": named("prt", at * 16 + place), **kept} for place, part in enumerate(parts)],
    }


def _answer(rng: random.Random, end: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": prose(rng, rng.randint(300, 1500)) + end}]


def _work(rng: random.Random, root: Path, step: int, now: int) -> list[dict[str, Any]]:
    """A step of a turn: it reads, then it edits, then it runs something."""
    ran = {"start": now + 100, "end": now + 800}
    file = str(root / "analysis.py")
    text = repositories.code(rng, 1200)
    lines = text.splitlines()
    if step == 1:
        thought = {"type": "reasoning", "text": prose(rng, 200)[:300], "time": ran}
        return [thought, _tool("read", {"filePath": file}, text, {"preview": lines[0], "truncated": False}, ran)]
    if step == 2:
        old, new = "\n".join(lines[:8]), "\n".join(lines[8:18])
        body = [f"-{line}" for line in lines[:8]] + [f"+{line}" for line in lines[8:18]]
        diff = f"--- {file}\n+++ {file}\n@@ -1,8 +1,10 @@\n" + "\n".join(body) + "\n"
        change = {"filePath": file, "oldString": old, "newString": new}
        plan = {"type": "text", "text": prose(rng, 150)[:200], "time": ran}
        return [plan, _tool("edit", change, "Edit applied successfully.", {"diff": diff, "truncated": False}, ran)]
    run = {"command": "pytest -q", "description": "Runs the tests"}
    return [_tool("bash", run, text, {"output": text, "exit": 0, "truncated": False}, ran)]


def _tool(name: str, given: dict, output: str, metadata: dict, ran: dict) -> dict[str, Any]:
    state = {
        "status": "completed",
        "input": given,
        "output": output,
        "metadata": metadata,
        "title": name,
        "time": ran,
    }
    return {"type": "tool", "tool": name, "callID": f"call_{ran['start']:x}", "state": state}
