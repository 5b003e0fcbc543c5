"""The verbs asked from a Jupyter server over REST."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from ..errors import OcmanError, ServerUnreachable, Unauthorized
from .access import credentials, telling, trust
from .connection import Server

if TYPE_CHECKING:
    import httpx

    from ..hosts.host import Progress
    from .channel import Channel

Json = dict[str, Any]

QUICK = 60.0
"""Seconds that an ordinary answer may take."""
LONG = 300.0
"""Seconds that a create or a launch may take: a big checkout, then OpenCode's start."""
RETRIES = 2
"""How often a request that is safe to repeat is sent again after the connection failed."""


class RestClient:
    """A Jupyter server that runs this extension.

    ``trust_env=False``: no proxy of the environment ever sees the token.
    """

    def __init__(self, server: Server, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self.server = server
        self.where = f"Jupyter server {server.url}"
        self._transport = transport
        self._http: httpx.AsyncClient | None = None
        self._opening = asyncio.Lock()

    # --- the verbs ---------------------------------------------------------------------------

    async def capabilities(self) -> Json:
        return await self._get("capabilities")

    async def doctor(self) -> Json:
        return await self._get("doctor")

    async def ensure(self, directory: str, progress: Progress | None = None) -> Json:
        body = {"directory": directory}
        async with telling(self.server, progress, directory=directory):
            return await self._post("ensure", body, LONG, again=True)

    async def stop(self, directory: str, force: bool = False) -> Json:
        return await self._post("instances/stop", {"directory": directory, "force": force})

    async def restart(self, directory: str, force: bool = False, progress: Progress | None = None) -> Json:
        async with telling(self.server, progress, directory=directory):
            return await self._post("instances/restart", {"directory": directory, "force": force}, LONG)

    async def worktrees(self, directory: str, changes: bool = True) -> Json:
        return await self._get(
            "worktrees", {"directory": directory, "changes": "true" if changes else "false"}
        )

    async def create(self, body: Json, progress: Progress | None = None) -> Json:
        async with telling(self.server, progress, operation=body.get("request_id")):
            return await self._post("worktrees", body, LONG, again=bool(body.get("request_id")))

    async def removal(self, path: str, delete_branch: bool = False) -> Json:
        return await self._get(
            "worktrees/removal", {"path": path, "delete_branch": str(delete_branch).lower()}
        )

    async def remove(self, body: Json) -> Json:
        return await self._send("DELETE", "worktrees", body=body, timeout=LONG)

    async def diff(self, path: str, against: str = "base") -> Json:
        return await self._get("worktrees/diff", {"path": path, "against": against})

    async def sessions(self, directory: str) -> Json:
        return await self._get("sessions", {"directory": directory})

    async def create_session(self, body: Json, progress: Progress | None = None) -> Json:
        async with telling(self.server, progress, operation=body.get("request_id")):
            return await self._post("sessions", body, LONG, again=bool(body.get("request_id")))

    async def session(self, session_id: str) -> Json:
        return await self._get(f"sessions/{_part(session_id)}")

    async def messages(self, session_id: str, limit: int = 100) -> Json:
        return await self._get(f"sessions/{_part(session_id)}/messages", {"limit": str(limit)})

    async def todos(self, session_id: str) -> Json:
        return await self._get(f"sessions/{_part(session_id)}/todos")

    async def prompt(self, session_id: str, body: Json) -> Json:
        return await self._post(f"sessions/{_part(session_id)}/prompt", body, LONG)

    async def abort(self, session_id: str) -> Json:
        return await self._post(f"sessions/{_part(session_id)}/abort", {})

    async def asks(self) -> Json:
        return await self._get("asks")

    async def reply(self, ask_id: str, body: Json) -> Json:
        return await self._post(f"asks/{_part(ask_id)}/reply", body)

    async def stream(self, session_id: str) -> AsyncIterator[Json]:
        import httpx
        from httpx_sse import EventSource

        http = await self._open()
        # The server sends a comment every 15 s: 60 s of silence is a dead connection.
        timeout = httpx.Timeout(QUICK, connect=10.0)
        url = self._url(f"sessions/{_part(session_id)}/stream")
        try:
            async with http.stream("GET", url, headers=self._headers(), timeout=timeout) as response:
                if response.status_code >= 300:
                    await response.aread()
                    raise self._refusal(response)
                async for sent in EventSource(response).aiter_sse():
                    if not sent.data:
                        continue
                    data = json.loads(sent.data)
                    if sent.event == "error":
                        raise OcmanError.from_json(data)
                    yield data
        except httpx.HTTPError as error:
            raise self._unreachable(error) from None

    def events(self) -> AbstractAsyncContextManager[Channel]:
        from .channel import of_server

        return of_server(self.server)

    async def close(self) -> None:
        if self._http is not None:
            await self._http.aclose()
            self._http = None

    # --- how it is asked ---------------------------------------------------------------------

    async def _get(self, path: str, query: dict[str, str] | None = None) -> Json:
        return await self._send("GET", path, query=query, again=True)

    async def _post(self, path: str, body: Json, timeout: float = QUICK, again: bool = False) -> Json:
        return await self._send("POST", path, body=body, timeout=timeout, again=again)

    async def _send(
        self,
        method: str,
        path: str,
        *,
        query: dict[str, str] | None = None,
        body: Json | None = None,
        timeout: float = QUICK,
        again: bool = False,
    ) -> Json:
        """Ask, and ask again when that is safe (``again``) and the connection or a proxy failed."""
        import httpx

        http = await self._open()
        pause = 0.5
        for left in range(RETRIES if again else 0, -1, -1):
            try:
                response = await http.request(
                    method,
                    self._url(path),
                    params=query,
                    json=body,
                    headers=self._headers(),
                    timeout=httpx.Timeout(timeout, connect=10.0),
                )
            except httpx.HTTPError as error:
                if not left:
                    raise self._unreachable(error) from None
            else:
                if response.status_code < 300:
                    return self._answer(response)
                refusal = self._refusal(response)
                # A proxy that gave up waiting; our own errors of these statuses carry our own object.
                if not left or not (
                    response.status_code in (502, 503, 504) and type(refusal) is ServerUnreachable
                ):
                    raise refusal
            await asyncio.sleep(pause)
            pause *= 2
        raise AssertionError("unreachable")

    def _answer(self, response: httpx.Response) -> Json:
        if not response.content:
            return {}
        try:
            answer = response.json()
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise ServerUnreachable("What answers at this address is not a Jupyter server with ocman.")
        return answer

    def _refusal(self, response: httpx.Response) -> OcmanError:
        """The typed error of an answer that is not a success."""
        try:
            body = response.json()
        except ValueError:
            body = None
        status = response.status_code
        typed = (
            OcmanError.from_json(body)
            if isinstance(body, dict) and isinstance(body.get("code"), str)
            else None
        )
        if isinstance(typed, Unauthorized) or (
            typed is None and (status in (401, 403) or 300 <= status < 400)
        ):
            if not self.server.token:
                return Unauthorized(
                    "The Jupyter server wants a login, and no token for it was found.",
                    hint="Set JUPYTER_TOKEN to the server's token. A server with a password alone has none: start "
                    "it with a token too (c.IdentityProvider.token), or run `%ocman local` in a notebook.",
                )
            return typed or Unauthorized(details={"status": status})
        if typed is not None:
            return typed
        if status == 404:
            return ServerUnreachable(
                "The Jupyter server does not run the ocman_jupyter extension.",
                hint="Run `jupyter server extension enable ocman_jupyter` and restart it, "
                "or run `%ocman local` to work without the server.",
            )
        return ServerUnreachable(
            f"The Jupyter server answered with status {status}.", details={"status": status}
        )

    def _unreachable(self, error: Exception) -> ServerUnreachable:
        import httpx

        text = str(error)
        if "CERTIFICATE_VERIFY_FAILED" in text:
            return ServerUnreachable(
                "The Jupyter server's certificate is not trusted.",
                hint="Set OCMAN_CERTFILE to the server's certificate file, "
                "or run `%ocman local` to work without the server.",
            )
        if isinstance(error, httpx.ReadTimeout):
            return ServerUnreachable(
                "The Jupyter server did not answer in time; it may still be at work.",
                hint="Look with `%ocman worktrees` before you try again.",
            )
        return ServerUnreachable(f"The Jupyter server at {self.server.url} does not answer.")

    def _url(self, path: str) -> str:
        return f"{self.server.url}api/ocman/{path}"

    def _headers(self) -> dict[str, str]:
        return credentials(self.server)

    async def _open(self) -> httpx.AsyncClient:
        if self._http is None:
            async with self._opening:
                if self._http is None:
                    self._http = await asyncio.get_running_loop().run_in_executor(None, self._make)
        return self._http

    def _make(self) -> httpx.AsyncClient:
        import httpx

        transport = self._transport
        if transport is None:
            transport = httpx.AsyncHTTPTransport(
                uds=self.server.socket, verify=trust(self.server) or True, trust_env=False, retries=1
            )
        return httpx.AsyncClient(transport=transport, trust_env=False, follow_redirects=False)

    def __repr__(self) -> str:
        return f"<RestClient {self.server.url}>"


def _part(text: str) -> str:
    return quote(text, safe="")
