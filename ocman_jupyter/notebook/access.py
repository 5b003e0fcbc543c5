"""Being let in by a Jupyter server, trusting exactly its certificate, and hearing how a request goes."""

from __future__ import annotations

import json
import secrets
import ssl
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ServerUnreachable
from .connection import Server

if TYPE_CHECKING:
    from ..hosts.host import Progress

LISTEN_AFTER = 1.0
"""Seconds: what is quicker needs no progress, and its server no second connection."""


def credentials(server: Server) -> dict[str, str]:
    """The headers that let a request in."""
    if server.token:
        return {"Authorization": f"token {server.token}"}
    # Without a credential Jupyter checks that header and cookie agree.
    value = secrets.token_hex(16)
    return {"Cookie": f"_xsrf={value}", "X-XSRFToken": value}


def trust(server: Server) -> ssl.SSLContext | None:
    """What is trusted: the named certificate and nothing else, or ``None`` for the public authorities."""
    if not server.url.startswith("https:") or not server.certificate:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        pem = Path(server.certificate).read_text()
        if server.client_certificate:  # a hub: the file is its authority, names are checked
            context.load_verify_locations(cadata=pem)
            context.load_cert_chain(*server.client_certificate)
            return context
        # The first certificate of the file is the server's own.  Only it is trusted, so its name need not be
        # the address that we ask (often loopback), and a chain behind it vouches for nobody else.
        end = "-----END CERTIFICATE-----"
        context.load_verify_locations(cadata=pem[pem.index("-----BEGIN CERT") : pem.index(end) + len(end)])
    except (OSError, ValueError, ssl.SSLError):
        raise ServerUnreachable(
            f"The certificate file {server.certificate} of the Jupyter server cannot be read.",
            hint="Set OCMAN_CERTFILE to the right file, or run `%ocman local` to work without the server.",
        ) from None
    context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
    context.check_hostname = False
    return context


@asynccontextmanager
async def telling(
    server: Server, progress: Progress | None, *, operation: str | None = None, directory: str | None = None
) -> AsyncIterator[None]:
    """While inside, what the server says of an operation (or of all in a directory) is given to ``progress``.

    Nothing depends on it: a server whose events cannot be heard is waited for without them.
    """
    if progress is None or server.socket:
        yield
        return
    over = threading.Event()

    def wanted(data: dict[str, Any]) -> bool:
        return bool(data.get("operation") == operation if operation else data.get("directory") == directory)

    threading.Thread(
        target=_listen, args=(server, progress, wanted, over), name="ocman-progress", daemon=True
    ).start()
    try:
        yield
    finally:
        over.set()


def _listen(
    server: Server, progress: Progress, wanted: Callable[[dict[str, Any]], bool], over: threading.Event
) -> None:
    if over.wait(LISTEN_AFTER):
        return
    import websocket

    with suppress(Exception):
        connection = websocket.create_connection(
            "ws" + server.url.removeprefix("http") + "api/ocman/events",
            header=[f"{name}: {value}" for name, value in credentials(server).items()],
            sslopt={"context": trust(server)} if trust(server) else None,
            http_no_proxy=["*"],
            suppress_origin=True,
            timeout=5,
        )
        with closing(connection):
            connection.settimeout(0.5)
            while not over.is_set():
                try:
                    event = json.loads(connection.recv())
                except websocket.WebSocketTimeoutException:
                    continue
                data = event.get("data") or {}
                if event.get("type") == "progress" and wanted(data) and not over.is_set():
                    progress(str(data.get("message")), data.get("fraction"))
