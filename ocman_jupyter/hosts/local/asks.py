"""Permissions and questions that wait for a person, over all instances of this machine."""

from __future__ import annotations

from ...errors import InvalidRequest, NotFound
from ...opencode.records import AskRecord
from ..host import Ask, ReplyRequest
from .feed import Feed
from .feeds import Feeds
from .joining import ask

ADOPT_SECONDS = 0.5
"""How long a list waits to hear of instances that others launched."""


class Asks:
    """The asks service of this machine."""

    def __init__(self, feeds: Feeds) -> None:
        self._feeds = feeds

    async def list(self) -> list[Ask]:
        await self._feeds.adopt_soon(ADOPT_SECONDS)
        found = []
        for feed in self._feeds.all():
            found += [ask(record, feed) for record in feed.asks()]
        # Clones share sessions, not asks; the same ask never comes twice.
        return sorted({a.id: a for a in found}.values(), key=lambda a: a.created)

    async def reply(self, ask_id: str, request: ReplyRequest) -> None:
        """Answer an ask.  Raises `NotFound` when it was answered elsewhere."""
        feed, record = await self._find(ask_id)
        if record.kind == "question":
            await self._answer(feed, record, request)
            return
        if request.reply is None:
            raise InvalidRequest("reply is required for a permission.", details={"field": "reply"})
        if request.answers is not None:
            raise InvalidRequest("answers is for questions only.", details={"field": "answers"})
        await feed.client.reply_permission(
            record.session_id, record.id, record.directory, request.reply, request.message
        )

    async def _answer(self, feed: Feed, record: AskRecord, request: ReplyRequest) -> None:
        if request.answers is None:
            if request.reply != "reject":
                raise InvalidRequest("answers is required for a question.", details={"field": "answers"})
            await feed.client.reject_question(record.id, record.directory)
            return
        if len(request.answers) != len(record.questions):
            raise InvalidRequest(
                f"answers must hold one list for each of the {len(record.questions)} questions.",
                details={"field": "answers"},
            )
        await feed.client.reply_question(record.id, record.directory, request.answers)

    async def _find(self, ask_id: str) -> tuple[Feed, AskRecord]:
        for attempt in range(2):
            for feed in self._feeds.all():
                for record in feed.asks():
                    if record.id == ask_id:
                        return feed, record
            if attempt == 0:
                await self._feeds.adopt()
        raise NotFound("This ask was answered already, or is gone.", details={"id": ask_id})
