"""How a request to OpenCode is made: connections, deadlines, and what each failure means."""

from __future__ import annotations

import asyncio
import base64
import json as _json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from .. import errors

if TYPE_CHECKING:
    import httpx

MAX_TEXT = 2000
"""Characters of an unwelcome answer that are kept in the error."""
CONNECT_TIMEOUT = 5.0


class ConnectionRefused(errors.OpenCodeUnreachable):  # type: ignore[misc,valid-type]
    """Nothing listens there: the instance is dead."""


class Unsure(errors.OpenCodeUnreachable):  # type: ignore[misc,valid-type]
    """No answer in time, a reset, or a 5xx to a probe: it may well be alive, so nothing is done about it."""


class Transport:
    """Requests to one server: pooled connections, basic auth, a deadline (seconds) for each."""

    def __init__(self, url: str, password: str | None, username: str, timeout: float) -> None:
        self.url = url.rstrip("/")
        self.timeout = timeout
        self._username = username
        self._password = password or ""
        self._pool: httpx.AsyncClient | None = None
        self._fresh: httpx.AsyncClient | None = None

    async def aclose(self) -> None:
        """Close all connections; a later call opens new ones."""
        pools, self._pool, self._fresh = (self._pool, self._fresh), None, None
        for pool in pools:
            if pool is not None:
                await pool.aclose()

    @asynccontextmanager
    async def stream(self, path: str, silence: float) -> AsyncIterator[AsyncIterator[bytes]]:
        """The bytes of a stream.  Raises :class:`Unsure` when it breaks or is silent for ``silence`` s."""
        import httpx

        timeout = httpx.Timeout(CONNECT_TIMEOUT, read=silence)
        headers = {"accept": "text/event-stream", "accept-encoding": "identity"}
        try:
            async with self._client(fresh=True).stream(
                "GET", path, headers=headers, timeout=timeout
            ) as response:
                if response.status_code != 200:
                    await response.aread()
                    raise self._failure(response, f"GET {path}", probe=True)
                yield _chunks(response, f"GET {path}")
        except httpx.HTTPError as error:
            raise _unreachable(error, f"GET {path}") from error

    def _client(self, fresh: bool = False) -> httpx.AsyncClient:
        import httpx

        client = self._fresh if fresh else self._pool
        if client is None:
            # OpenCode drops a connection that was idle for 10 s: let go of it well before.
            limits = httpx.Limits(
                max_connections=None, max_keepalive_connections=0 if fresh else 20, keepalive_expiry=5.0
            )
            headers = {"accept": "application/json"}
            if self._password:
                token = base64.b64encode(f"{self._username}:{self._password}".encode()).decode()
                headers["authorization"] = f"Basic {token}"
            client = httpx.AsyncClient(
                base_url=self.url,
                headers=headers,
                limits=limits,
                trust_env=False,
                timeout=httpx.Timeout(self.timeout, connect=CONNECT_TIMEOUT),
                # Loading certificate authorities takes 30 ms that a loopback address does not need.
                verify=self.url.startswith("https:"),
            )
            if fresh:
                self._fresh = client
            else:
                self._pool = client
        return client

    async def call(self, method: str, path: str, **options: Any) -> Any:
        response = await self.exchange(method, path, **options)
        return self.json(response, f"{method} {path}")

    async def exchange(
        self,
        method: str,
        path: str,
        *,
        directory: str | None = None,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        timeout: float | None = None,
        probe: bool = False,
        fresh: bool = False,
        session_id: str | None = None,
        ask_id: str | None = None,
    ) -> httpx.Response:
        import httpx

        deadline = self.timeout if timeout is None else timeout
        headers = {}
        if directory is not None:
            headers["x-opencode-directory"] = quote(utf8(directory), safe="/")
        request = f"{method} {path}"
        arguments: dict[str, Any] = {"headers": headers, "params": query or None}
        arguments["timeout"] = httpx.Timeout(deadline, connect=min(deadline, CONNECT_TIMEOUT))
        if body is not None:
            # Lone surrogates would make httpx's own encoder fail; escaped they are valid JSON.
            arguments["content"] = _json.dumps(body).encode()
            headers["content-type"] = "application/json"
        try:
            response = await asyncio.wait_for(
                self._client(fresh).request(method, path, **arguments), deadline
            )
        except (asyncio.TimeoutError, TimeoutError):
            raise Unsure(
                "OpenCode did not answer in time; it was left alone.",
                details={"request": request, "seconds": deadline},
            ) from None
        except httpx.HTTPError as error:
            raise _unreachable(error, request) from error
        if not response.is_success:
            raise self._failure(response, request, probe, session_id, ask_id)
        return response

    def _failure(
        self,
        response: httpx.Response,
        request: str,
        probe: bool = False,
        session_id: str | None = None,
        ask_id: str | None = None,
    ) -> errors.OcmanError:
        status = response.status_code
        text = response.text
        if self._password:
            text = text.replace(self._password, "***")
        details = {"status": status, "text": text[:MAX_TEXT], "request": request}
        if status == 401:
            return errors.OpenCodeNeedsPassword(details={"url": self.url})
        if status == 404 and ask_id:
            return errors.NotFound("This ask was answered already, or is gone.", details={"id": ask_id})
        if status == 404 and session_id:
            return errors.NoSuchSession(details={"id": session_id})
        if status == 409 and session_id:
            return errors.SessionBusy(details={"id": session_id})
        if probe and status >= 500:
            return Unsure("OpenCode answered with an error; it was left alone.", details=details)
        return errors.OpenCodeError(details=details)

    def json(self, response: httpx.Response, request: str) -> Any:
        if not response.content:
            return None
        try:
            return _json.loads(response.content)
        except ValueError:
            raise odd(request, response.text) from None


async def _chunks(response: httpx.Response, request: str) -> AsyncIterator[bytes]:
    import httpx

    try:
        async for chunk in response.aiter_raw():
            yield chunk
    except httpx.HTTPError as error:
        raise _unreachable(error, request) from error


def utf8(directory: str) -> str:
    """``directory``, if OpenCode can be told of it: its JSON is UTF-8."""
    try:
        directory.encode()
    except UnicodeEncodeError:
        raise errors.InvalidFolder(
            "OpenCode cannot work in a directory whose name is not UTF-8.",
            details={"path": directory.encode(errors="surrogateescape").decode(errors="replace")},
        ) from None
    if "\0" in directory:
        raise errors.InvalidFolder("A directory's name cannot hold a NUL.")
    return directory


def odd(request: str, body: Any) -> errors.OcmanError:
    """The error of a 2xx that does not hold what it should."""
    text = body if isinstance(body, str) else _json.dumps(body)
    return errors.OpenCodeError(
        "OpenCode's answer was empty or not understood.",
        details={"status": 200, "text": text[:MAX_TEXT], "request": request},
    )


def _unreachable(error: Exception, request: str) -> errors.OcmanError:
    """The refusal or the doubt that an error of httpx means."""
    pending: list[BaseException | None] = [error]
    seen: set[int] = set()
    while pending:
        cause = pending.pop()
        if cause is None or id(cause) in seen:
            continue
        if isinstance(cause, ConnectionRefusedError):
            return ConnectionRefused("No OpenCode listens there.", details={"request": request})
        seen.add(id(cause))
        pending += [cause.__cause__, cause.__context__, *getattr(cause, "exceptions", ())]
    return Unsure(
        "OpenCode did not answer; it was left alone.",
        details={"request": request, "reason": type(error).__name__},
    )
