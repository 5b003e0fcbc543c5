"""Streams many deltas from a fake host, as the real one does: merged per part, asks and status at once."""

from __future__ import annotations

import asyncio
import time

from tests.server.fake_host import FakeMachine, ask

MERGE_SECONDS = 0.04


def drive(machine: FakeMachine, sessions: int, deltas: int) -> None:
    """From its start ``machine`` streams ``deltas`` a second from so many ``sessions``, and 20 asks."""

    async def stream(number: int) -> None:
        waiting = ""
        each = sessions / deltas
        told = time.monotonic()
        while True:
            await asyncio.sleep(each)
            waiting += "some words "
            if time.monotonic() - told >= MERGE_SECONDS:
                machine.tell(
                    "message.delta",
                    session_id=f"ses_{number}",
                    message_id="m",
                    part_id=f"p{number}",
                    field="text",
                    delta=waiting,
                )
                waiting, told = "", time.monotonic()

    async def questions() -> None:
        number = 0
        while True:
            await asyncio.sleep(0.05)
            number += 1
            machine.tell("ask.created", **ask(f"per_{number}").model_dump(), at=time.time())

    async def start() -> None:
        machine.running = [asyncio.ensure_future(stream(number)) for number in range(sessions)]
        machine.running.append(asyncio.ensure_future(questions()))

    machine.start = start
