"""A listener's pending events: coalesced, bounded, and no edge lost."""

from __future__ import annotations

import asyncio

from ocman_jupyter.hosts.host import Event
from ocman_jupyter.hosts.local.subscription import Bus, Subscription


def delta(text: str, session: str = "s", message: str = "m", part: str = "p") -> Event:
    data = {"session_id": session, "message_id": message, "part_id": part, "field": "text", "delta": text}
    return Event(type="message.delta", data=data)


def whole(text: str, session: str = "s", message: str = "m") -> Event:
    parts = [{"id": "p", "type": "text", "text": text}]
    data = {"session_id": session, "message": {"info": {"id": message}, "parts": parts}}
    return Event(type="message.updated", data=data)


def status(value: str, session: str = "s") -> Event:
    return Event(type="session.status", data={"id": session, "directory": "/w", "status": value})


def ask(kind: str, identity: str) -> Event:
    return Event(type=kind, data={"id": identity, "session_id": "s"})


async def read(subscription: Subscription) -> list[Event]:
    return await asyncio.wait_for(subscription.next(), 5)


async def test_deltas_of_a_part_that_were_not_read_are_joined() -> None:
    subscription = Subscription()
    subscription.follow(None)
    for text in ("a", "b", "c"):
        subscription.offer(delta(text))
    (event,) = await read(subscription)
    assert event.data["delta"] == "abc"


async def test_a_whole_message_replaces_its_pending_deltas_and_later_text_follows_it() -> None:
    subscription = Subscription()
    subscription.follow(None)
    subscription.offer(delta("a"))
    subscription.offer(delta("other", message="m2"))
    subscription.offer(whole("ab"))
    subscription.offer(delta("c"))
    events = await read(subscription)
    assert [(e.type, e.data.get("delta")) for e in events] == [
        ("message.delta", "other"), ("message.updated", None), ("message.delta", "c"),
    ]


async def test_a_slow_listener_gets_the_last_status_and_every_ask() -> None:
    """Hazard 54: a full buffer drops the idle edge."""
    subscription = Subscription()
    for n in range(10_000):
        subscription.offer(status("busy" if n % 2 else "needs_you"))
        subscription.offer(delta("x"))
    for n in range(50):
        subscription.offer(ask("ask.created", f"per_{n}"))
    subscription.offer(ask("ask.resolved", "per_3"))
    subscription.offer(status("idle"))
    events = await read(subscription)
    assert [e.data["status"] for e in events if e.type == "session.status"] == ["idle"]
    assert len([e for e in events if e.type == "ask.created"]) == 50
    assert [e.data["id"] for e in events if e.type == "ask.resolved"] == ["per_3"]
    assert len(events) == 52


async def test_messages_come_only_of_sessions_that_are_followed() -> None:
    subscription = Subscription()
    subscription.follow({"b"})
    subscription.offer(whole("no", session="a"))
    subscription.offer(whole("yes", session="b"))
    subscription.offer(status("busy", session="a"))
    events = await read(subscription)
    assert [(e.type, e.data.get("session_id")) for e in events] == [
        ("message.updated", "b"), ("session.status", None),
    ]


async def test_who_begins_to_follow_gets_what_was_said_so_far_before_what_is_said_next() -> None:
    asked = []

    def said_so_far(session: str) -> list[Event]:
        asked.append(session)
        subscription.offer(delta("held back, and in the whole text", session=session))
        return [whole("so far", session=session)]

    subscription = Subscription(said_so_far)
    subscription.follow({"b"})
    subscription.follow({"a", "b"})
    subscription.offer(delta(", and on", session="a"))
    assert asked == ["b", "a"]
    events = [e for e in await read(subscription) if e.data["session_id"] == "a"]
    assert [(e.type, e.data.get("delta")) for e in events] == [
        ("message.updated", None), ("message.delta", ", and on"),
    ]


async def test_a_removed_session_takes_its_older_news_along() -> None:
    subscription = Subscription()
    subscription.offer(status("idle"))
    subscription.offer(Event(type="session.removed", data={"id": "s", "directory": "/w"}))
    assert [e.type for e in await read(subscription)] == ["session.removed"]


async def test_closing_gives_what_is_pending_and_then_ends() -> None:
    bus = Bus()
    subscription = bus.open()
    assert bus.listened
    bus.publish(status("idle"))
    bus.close()
    assert not bus.listened
    assert len(await read(subscription)) == 1
    assert await read(subscription) == []
    bus.publish(status("busy"))
    assert await read(subscription) == []
