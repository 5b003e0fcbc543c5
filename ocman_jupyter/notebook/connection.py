"""Where the Jupyter server of this process is, and what it takes to be let in.

Tokens stay out of every address, log line and ``repr``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from ..errors import InvalidRequest

WILDCARDS = {"", "0.0.0.0", "::", "*"}
CERTIFICATE_VARIABLE = "OCMAN_CERTFILE"
"""Set by the server extension for its kernels: the server's own certificate file."""


@dataclass(frozen=True)
class Server:
    """A Jupyter server: its address (ends with ``/``, holds no secret) and the way in."""

    url: str
    token: str = field(default="", repr=False)
    password: bool = False
    """It wants a password and has no token."""
    socket: str | None = None
    certificate: str | None = None
    """File that is trusted as this server's certificate (or its authority), beside nothing else."""
    client_certificate: tuple[str, str] | None = field(default=None, repr=False)
    """Certificate and key files that the server wants to see (a hub with internal TLS)."""
    pid: int | None = None


def find(environ: dict[str, str] | None = None) -> Server | None:
    """The server that this process belongs to: the hub's, else the one among our ancestors, else ``None``."""
    env = os.environ if environ is None else environ
    if env.get("JUPYTERHUB_SERVICE_URL") and env.get("JUPYTERHUB_API_TOKEN"):
        return _from_hub(env)
    records = {record["pid"]: record for record in running()}
    if not records:
        return None
    for pid in _ancestors():
        if pid in records:
            return _from_record(records[pid], env)
    return None


def at(url: str) -> Server:
    """The server at ``url`` that a user named, with the token of its running-server record or
    ``JUPYTER_TOKEN``.

    Raises ``InvalidRequest`` for a URL that carries a secret or is not one of a server; the secret is not
    repeated.
    """
    parts = urlsplit(url)
    if parts.username or parts.password or "token" in {key.lower() for key, _ in parse_qsl(parts.query)}:
        raise InvalidRequest(
            "The server's URL must not carry a token or a password.",
            hint="Set JUPYTER_TOKEN in the environment; a token in a URL ends up in histories and logs.",
        )
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise InvalidRequest(
            "This is not the address of a Jupyter server.", hint="For example http://127.0.0.1:8888/"
        )
    url = urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/") + "/", "", ""))
    for record in running():
        if (base := _base_at(record, url)) is not None:
            found = _from_record(record, os.environ)
            return Server(base, found.token, found.password, found.socket, found.certificate, None, found.pid)
    return Server(url, os.environ.get("JUPYTER_TOKEN", ""), certificate=os.environ.get(CERTIFICATE_VARIABLE))


def running() -> Iterator[dict[str, Any]]:
    """The readable running-server records of this user."""
    from jupyter_core.paths import jupyter_runtime_dir

    try:
        files = sorted(Path(jupyter_runtime_dir()).glob("jpserver-*.json"))
    except OSError:
        return
    for file in files:
        try:
            record = json.loads(file.read_text())
        except (OSError, ValueError):
            continue
        if (
            isinstance(record, dict)
            and isinstance(record.get("pid"), int)
            and isinstance(record.get("url"), str)
        ):
            yield record


def _ancestors() -> list[int]:
    import psutil

    try:
        return [parent.pid for parent in psutil.Process().parents()]
    except psutil.Error:
        return []


def _from_hub(env: Any) -> Server:
    url = _reachable(env["JUPYTERHUB_SERVICE_URL"])
    if not url.startswith("https:"):
        return Server(url, env["JUPYTERHUB_API_TOKEN"])
    own = (env.get("JUPYTERHUB_SSL_CERTFILE", ""), env.get("JUPYTERHUB_SSL_KEYFILE", ""))
    return Server(
        url,
        env["JUPYTERHUB_API_TOKEN"],
        certificate=env.get("JUPYTERHUB_SSL_CLIENT_CA") or env.get(CERTIFICATE_VARIABLE),
        client_certificate=own if all(own) else None,
    )


def _from_record(record: dict[str, Any], env: Any) -> Server:
    token = str(record.get("token") or env.get("JUPYTER_TOKEN") or "")
    url = record["url"]
    sock = str(record.get("sock") or "") or None
    if sock:
        url = "http://localhost" + str(record.get("base_url") or "/")
    return Server(
        url=_reachable(url),
        token=token,
        password=bool(record.get("password")) and not token,
        socket=sock,
        certificate=_certificate(record, env) if record.get("secure") else None,
        pid=record["pid"],
    )


def _reachable(url: str) -> str:
    """``url`` with a wildcard address replaced, ending with ``/``; the path stays as it was encoded."""
    parts = urlsplit(url)
    netloc = parts.netloc
    if (parts.hostname or "") in WILDCARDS:
        netloc = "127.0.0.1" + (f":{parts.port}" if parts.port else "")
    return urlunsplit((parts.scheme or "http", netloc, parts.path.rstrip("/") + "/", "", ""))


def _base_at(record: dict[str, Any], url: str) -> str | None:
    """The base address of the recorded server as ``url`` writes its host, when ``url`` is in that server."""
    mine, theirs = urlsplit(url), urlsplit(_reachable(record["url"]))
    local = {"127.0.0.1", "localhost", "::1"}
    same_host = mine.hostname == theirs.hostname or (
        mine.hostname in local and (theirs.hostname in local or record.get("hostname") in WILDCARDS)
    )
    if not same_host or (mine.scheme, mine.port) != (theirs.scheme, theirs.port):
        return None
    if not mine.path.startswith(theirs.path):
        return None  # both end with a slash, so this compares whole path components
    return urlunsplit((mine.scheme, mine.netloc, theirs.path, "", ""))


def _certificate(record: dict[str, Any], env: Any) -> str | None:
    # The record does not name the file: the extension tells its kernels; else the server's own command line
    # does.
    if env.get(CERTIFICATE_VARIABLE):
        return str(env[CERTIFICATE_VARIABLE])
    import psutil

    try:
        process = psutil.Process(record["pid"])
        words, folder = process.cmdline(), process.cwd()
    except psutil.Error:
        return None
    for word, following in zip(words, [*words[1:], ""], strict=True):
        name, equals, value = word.partition("=")
        if name.lstrip("-") in ("certfile", "ServerApp.certfile", "NotebookApp.certfile"):
            return os.path.join(folder, os.path.expanduser(value if equals else following))
    return None
