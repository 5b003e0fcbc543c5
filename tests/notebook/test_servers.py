"""Every kind of Jupyter server that a kernel may find itself under, for real (hazards 82, 85, 86, 92)."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ocman_jupyter.errors import NoSuchSession, ServerUnreachable, Unauthorized
from ocman_jupyter.notebook import connection
from ocman_jupyter.notebook.rest import RestClient
from ocman_jupyter.notebook.verbs import Verbs

pytestmark = pytest.mark.slow

SECRET = "s3cret-token-of-this-test"

CONFIG = """
from ocman_jupyter.hosts.router import Router
from tests.notebook.fake import FakeHost

def factory(settings):
    fake = FakeHost()
    long = fake.long
    async def slow(name, progress):
        import asyncio
        if progress: progress("Starting OpenCode", 0.25)
        await asyncio.sleep(0.1)
        await long(name, None)
    async def slow_restart(directory, force=False, progress=None):
        import asyncio
        for _ in range(25):
            progress("Restarting OpenCode", 0.75)
            await asyncio.sleep(0.1)
        from tests.notebook.fake import instance
        return instance(directory)
    fake.long, fake.restart = slow, slow_restart
    return Router(fake.host())

c.OcmanExtension.host_factory = factory
c.ServerApp.jpserver_extensions = {"ocman_jupyter": True}
"""

KINDS: dict[str, list[str]] = {
    "token": [f"--IdentityProvider.token={SECRET}"],
    "odd-base-url": [f"--IdentityProvider.token={SECRET}", "--ServerApp.base_url=/a%40b/~x.y/%C3%A9/"],
    "token-and-password": [f"--IdentityProvider.token={SECRET}", "PASSWORD"],
    "password": ["--IdentityProvider.token=", "PASSWORD"],
    "no-auth": ["--IdentityProvider.token=", "--PasswordIdentityProvider.hashed_password="],
    "https": [f"--IdentityProvider.token={SECRET}", "CERTIFICATE"],
    "unix-socket": [f"--IdentityProvider.token={SECRET}", "SOCKET"],
    "without-extension": [f"--IdentityProvider.token={SECRET}", "PLAIN"],
}


PLAIN = "c.ServerApp.jpserver_extensions = {'ocman_jupyter': False}\n"
"""Where the package is installed its server extension is on."""


@dataclass
class Running:
    process: subprocess.Popen[bytes]
    runtime: Path
    log: Path
    certificate: Path

    def record(self) -> dict[str, Any]:
        return json.loads((self.runtime / f"jpserver-{self.process.pid}.json").read_text())


def make_certificate(certificate: Path, key: Path) -> None:
    """A self-signed one, for another name than the loopback address."""
    words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=elsewhere"]
    paths = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(["openssl", *words, *paths], check=True, capture_output=True)


def start(kind: str, folder: Path, sockets: Path) -> Running:
    home = folder / kind
    (home / "config").mkdir(parents=True)
    (home / "config" / "jupyter_server_config.py").write_text(CONFIG if kind != "without-extension" else PLAIN)
    certificate = home / "cert.pem"
    words = [
        "--ServerApp.port=0",
        "--ServerApp.open_browser=False",
        "--ServerApp.allow_root=True",
        f"--ServerApp.root_dir={home}",
    ]
    for word in KINDS[kind]:
        if word == "PASSWORD":
            from jupyter_server.auth import passwd

            words.append(f"--PasswordIdentityProvider.hashed_password={passwd('x', 'sha1')}")
        elif word == "CERTIFICATE":
            key = home / "key.pem"
            make_certificate(certificate, key)
            words += [f"--ServerApp.certfile={certificate}", f"--ServerApp.keyfile={key}"]
        elif word == "SOCKET":
            words += [f"--ServerApp.sock={sockets / 'j.sock'}"]
            words.remove("--ServerApp.port=0")
        elif word != "PLAIN":
            words.append(word)
    env = {
        **{k: v for k, v in os.environ.items() if not k.startswith(("JUPYTER", "JPY_"))},
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "HOME": str(home),
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
    }
    log = home / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "jupyter_server", *words], env=env, stdout=output, stderr=output, cwd=home
        )
    return Running(process, home / "runtime", log, certificate)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Running]]:
    sockets = Path(tempfile.mkdtemp(prefix="ocs-", dir="/tmp"))
    folder = tmp_path_factory.mktemp("servers")
    kinds = [kind for kind in KINDS if kind != "https" or shutil.which("openssl")]
    running = {kind: start(kind, folder, sockets) for kind in kinds}
    try:
        deadline = time.monotonic() + 90
        for server in running.values():
            while not (server.runtime / f"jpserver-{server.process.pid}.json").exists():
                assert server.process.poll() is None and time.monotonic() < deadline, server.log.read_text()
                time.sleep(0.1)
        yield running
    finally:
        for server in running.values():
            server.process.terminate()
        for server in running.values():
            server.process.wait(timeout=20)
        shutil.rmtree(sockets, ignore_errors=True)


def found(
    server: Running, monkeypatch: pytest.MonkeyPatch, environ: dict[str, str] | None = None
) -> RestClient:
    """The client that a kernel of this server would make."""
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(server.runtime))
    monkeypatch.setattr(connection, "_ancestors", lambda: [server.process.pid])
    at = connection.find({} if environ is None else environ)
    assert at is not None
    return RestClient(at)


async def main_job(client: RestClient) -> None:
    verbs = Verbs(client)
    made = await verbs.worktree("fix", "count", directory="/repo")
    assert made.prompt_sent
    assert (await verbs.watch()).answer == "did: count"
    assert (await verbs.prompt(None, "more", wait=True)).answer == "did: more"
    assert await hears(verbs, made.session_id) >= {"message.updated", "message.delta", "session.status"}
    assert (await verbs.worktree("fix", "count", directory="/repo")).session_reused
    with pytest.raises(NoSuchSession):
        await client.session("ses_unknown")
    assert (await verbs.remove("fix", directory="/repo")).removed
    await client.close()


async def hears(verbs: Verbs, session_id: str) -> set[str]:
    """What the stream of everything tells of a turn."""
    told: set[str] = set()
    async with verbs.client.events() as channel:
        assert [event["type"] for event in await channel.next()] == ["snapshot"]
        await channel.follow({session_id})
        await verbs.prompt(session_id, "louder")
        while "message.delta" not in told or "session.status" not in told:
            told |= {event["type"] for event in await asyncio.wait_for(channel.next(), 10)}
    assert await verbs.client.todos(session_id) == {"todos": []}
    return told


@pytest.mark.parametrize(
    "kind", ["token", "odd-base-url", "token-and-password", "no-auth", "https", "unix-socket"]
)
async def test_main_job(servers: dict[str, Running], monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    if kind not in servers:
        pytest.skip("no openssl to make a certificate with")
    await main_job(found(servers[kind], monkeypatch))
    asked = [line for line in servers[kind].log.read_text().splitlines() if "api/ocman" in line]
    assert not [line for line in asked if SECRET in line]


async def test_password_only_is_said_in_one_line(
    servers: dict[str, Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = found(servers["password"], monkeypatch)
    with pytest.raises(Unauthorized, match="wants a login, and no token for it was found") as caught:
        await client.create({"directory": "/repo", "branch": "x"})
    assert "%ocman local" in (caught.value.hint or "") and len(caught.value._render_traceback_()) == 2
    await client.close()


async def test_a_wrong_token_is_said_in_one_line(
    servers: dict[str, Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = found(servers["password"], monkeypatch, {"JUPYTER_TOKEN": "wrong"})
    with pytest.raises(Unauthorized):
        await client.doctor()
    await client.close()


async def test_a_server_without_the_extension_is_said_in_one_line(
    servers: dict[str, Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = found(servers["without-extension"], monkeypatch)
    with pytest.raises(ServerUnreachable, match="does not run the ocman_jupyter extension"):
        await client.worktrees("/repo")
    await client.close()


async def test_an_untrusted_certificate_is_never_passed_over(
    servers: dict[str, Running], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if "https" not in servers:
        pytest.skip("no openssl to make a certificate with")
    other = tmp_path / "other.pem"
    make_certificate(other, tmp_path / "other.key")
    client = found(servers["https"], monkeypatch, {"OCMAN_CERTFILE": str(other)})
    with pytest.raises(ServerUnreachable, match="certificate is not trusted"):
        await client.doctor()
    await client.close()
    broken = found(servers["https"], monkeypatch, {"OCMAN_CERTFILE": "/nowhere.pem"})
    with pytest.raises(ServerUnreachable, match="cannot be read"):
        await broken.doctor()


@pytest.mark.parametrize("kind", ["odd-base-url", "no-auth", "https"])
async def test_progress_of_a_long_operation_is_heard(
    servers: dict[str, Running], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    if kind not in servers:
        pytest.skip("no openssl to make a certificate with")
    client = found(servers[kind], monkeypatch)
    heard: list[tuple[str, float | None]] = []
    await client.restart("/repo", progress=lambda message, fraction: heard.append((message, fraction)))
    assert ("Restarting OpenCode", 0.75) in heard
    await client.close()


async def test_a_server_that_went_away_is_said(
    servers: dict[str, Running], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    record = {**servers["token"].record(), "pid": servers["token"].process.pid, "url": "http://127.0.0.1:9/"}
    (tmp_path / f"jpserver-{record['pid']}.json").write_text(json.dumps(record))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(connection, "_ancestors", lambda: [record["pid"]])
    server = connection.find({})
    assert server is not None
    client = RestClient(server)
    with pytest.raises(ServerUnreachable, match="does not answer"):
        await asyncio.wait_for(client.prompt("ses_1", {"text": "x"}), 20)
    await client.close()


@pytest.mark.parametrize("kind", ["odd-base-url", "https"])
def test_the_shell_asks_a_named_server_with_the_token_of_its_record(
    servers: dict[str, Running], kind: str
) -> None:
    if kind not in servers:
        pytest.skip("no openssl to make a certificate with")
    server = servers[kind]
    env = {
        **os.environ,
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "JUPYTER_RUNTIME_DIR": str(server.runtime),
        "OCMAN_CERTFILE": str(server.certificate),
    }
    words = ["wt", "from-the-shell", "--server", server.record()["url"], "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "ocman_jupyter", *words], env=env, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["branch"] == "from-the-shell"
    assert SECRET not in done.stdout + done.stderr
