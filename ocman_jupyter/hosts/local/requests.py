"""A request with a ``request_id`` is done once: asked again within a day, its first answer is given again."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from pydantic import BaseModel

from ...errors import InvalidRequest
from ...settings import OcmanSettings
from ...store import Store
from ..request import fault
from .locks import directory_lock

KEEP_SECONDS = 24 * 3600

Answer = TypeVar("Answer", bound=BaseModel)


class Requests:
    """Answers by request id: those under way in this process, and the finished ones in the store."""

    def __init__(self, store: Store, settings: OcmanSettings) -> None:
        self._store = store
        self._settings = settings
        self._running: dict[str, tuple[str, asyncio.Future[Any]]] = {}

    async def once(
        self,
        request_id: str | None,
        verb: str,
        body: dict[str, Any],
        answer_type: type[Answer],
        work: Callable[[], Awaitable[Answer]],
    ) -> Answer:
        """The answer of ``work()``, or the one that this ``request_id`` got before.

        Failures are not remembered: the same id may try again.  Raises `InvalidRequest` when the id came before
        with another verb or body.
        """
        if request_id is None:
            return await work()
        if fault(request_id):
            raise InvalidRequest(f"request_id {fault(request_id)}.", details={"field": "request_id"})
        digest = hashlib.sha256(
            json.dumps([verb, {**body, "request_id": None}], sort_keys=True).encode("utf-8", "surrogatepass")
        ).hexdigest()
        if request_id in self._running:
            known, future = self._running[request_id]
            self._same(request_id, known, digest)
            return await asyncio.shield(future)
        future = asyncio.get_running_loop().create_future()
        # Without other waiters nobody reads the future's exception.
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._running[request_id] = (digest, future)
        try:
            # Also of other processes of the user only one does it.
            async with directory_lock(self._settings, f"request {request_id}"):
                stored = await self._store.run(lambda db: self._load(db, request_id))
                if stored is not None:
                    self._same(request_id, stored[0], digest)
                    answer = answer_type.model_validate_json(stored[1])
                else:
                    answer = await work()
                    text = answer.model_dump_json()
                    await self._store.run(lambda db: self._save(db, request_id, verb, digest, text))
            future.set_result(answer)
            return answer
        except BaseException as error:
            if not future.done():
                if isinstance(error, asyncio.CancelledError):
                    future.cancel()
                else:
                    future.set_exception(error)
            raise
        finally:
            del self._running[request_id]

    @staticmethod
    def _same(request_id: str, known: str, digest: str) -> None:
        if known != digest:
            raise InvalidRequest(
                "request_id was used before with another request.",
                hint="Use a new request_id for each new request.",
                details={"field": "request_id", "request_id": request_id},
            )

    @staticmethod
    def _load(db: Any, request_id: str) -> tuple[str, str] | None:
        db.execute("DELETE FROM requests WHERE created < ?", (time.time() - KEEP_SECONDS,))
        return db.execute("SELECT body_sha256, answer FROM requests WHERE id = ?", (request_id,)).fetchone()

    @staticmethod
    def _save(db: Any, request_id: str, verb: str, digest: str, text: str) -> None:
        db.execute(
            "INSERT OR REPLACE INTO requests VALUES (?, ?, ?, ?, ?)",
            (request_id, verb, digest, text, time.time()),
        )
