"""Where the server of this process is (hazards 82, 85, 86, 92)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ocman_jupyter.errors import InvalidRequest
from ocman_jupyter.notebook import connection

SECRET = "s3cret-token"


def record(pid: int, **more: Any) -> Path:
    """A running-server record as Jupyter writes it."""
    folder = Path(os.environ["JUPYTER_RUNTIME_DIR"])
    folder.mkdir(parents=True, exist_ok=True)
    values = {
        "pid": pid, "url": "http://localhost:8888/", "base_url": "/", "hostname": "localhost", "port": 8888,
        "sock": "", "secure": False, "token": SECRET, "password": False, "root_dir": "/", "version": "2",
    }  # fmt: skip
    file = folder / f"jpserver-{pid}.json"
    file.write_text(json.dumps({**values, **more}))
    return file


def test_without_a_server_there_is_none() -> None:
    assert connection.find({}) is None


def test_record_of_an_ancestor_is_taken_and_of_another_process_not() -> None:
    record(os.getppid())
    record(2**22 - 1, url="http://localhost:9999/")
    found = connection.find({})
    assert found is not None and (found.url, found.token, found.pid) == (
        "http://localhost:8888/",
        SECRET,
        os.getppid(),
    )


def test_record_of_a_process_that_is_no_ancestor_is_not_ours() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        record(child.pid)
        assert connection.find({}) is None
    finally:
        child.communicate(b"\n")


def test_a_wrapper_between_server_and_kernel_does_not_matter() -> None:
    record(os.getpid())
    code = "from ocman_jupyter.notebook import connection; print(connection.find({}).pid)"
    wrapped = [
        sys.executable,
        "-c",
        f"import subprocess, sys; subprocess.run([sys.executable, '-c', {code!r}])",
    ]
    assert int(subprocess.run(wrapped, capture_output=True, text=True, check=True).stdout) == os.getpid()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": "x"}', '{"pid": 1}'])
def test_a_broken_record_is_passed_over(text: str) -> None:
    file = record(os.getppid())
    file.with_name("jpserver-0.json").write_text(text)
    assert connection.find({}) is not None


def test_hub_comes_first() -> None:
    record(os.getppid())
    env = {"JUPYTERHUB_SERVICE_URL": "http://0.0.0.0:8081/user/a%40b/", "JUPYTERHUB_API_TOKEN": SECRET}
    found = connection.find(env)
    assert found is not None and (found.url, found.token) == ("http://127.0.0.1:8081/user/a%40b/", SECRET)


def test_hub_with_tls_of_its_own() -> None:
    env = {
        "JUPYTERHUB_SERVICE_URL": "https://:8081/user/x", "JUPYTERHUB_API_TOKEN": SECRET,
        "JUPYTERHUB_SSL_CERTFILE": "/c", "JUPYTERHUB_SSL_KEYFILE": "/k", "JUPYTERHUB_SSL_CLIENT_CA": "/ca",
    }  # fmt: skip
    found = connection.find(env)
    assert found is not None
    assert (found.url, found.certificate, found.client_certificate) == (
        "https://127.0.0.1:8081/user/x/", "/ca", ("/c", "/k")
    )  # fmt: skip


def test_base_url_with_odd_characters_stays_as_it_was_written() -> None:
    record(os.getppid(), url="http://localhost:8888/a%40b/%C3%A9%20x/")
    found = connection.find({})
    assert found is not None and found.url == "http://localhost:8888/a%40b/%C3%A9%20x/"


def test_unix_socket() -> None:
    record(os.getppid(), url="http+unix://%2Ftmp%2Fs/lab/", sock="/tmp/s", base_url="/lab/")
    found = connection.find({})
    assert found is not None and (found.url, found.socket) == ("http://localhost/lab/", "/tmp/s")


def test_password_without_token_is_known_and_a_token_of_the_user_helps() -> None:
    record(os.getppid(), token="", password=True)
    found = connection.find({})
    assert found is not None and found.password and not found.token
    given = connection.find({"JUPYTER_TOKEN": SECRET})
    assert given is not None and not given.password and given.token == SECRET


def test_certificate_is_the_one_that_the_extension_tells() -> None:
    record(os.getppid(), url="https://localhost:8888/", secure=True)
    found = connection.find({"OCMAN_CERTFILE": "/c.pem"})
    assert found is not None and found.certificate == "/c.pem"


@pytest.mark.parametrize("words", [["--certfile=c.pem"], ["--ServerApp.certfile", "c.pem"]])
def test_certificate_of_the_servers_own_command_line(tmp_path: Path, words: list[str]) -> None:
    code = "import sys; input()"
    server = subprocess.Popen([sys.executable, "-c", code, *words], stdin=subprocess.PIPE, cwd=tmp_path)
    try:
        file = record(server.pid, url="https://localhost:8888/", secure=True)
        assert connection._certificate(json.loads(file.read_text()), {}) == str(tmp_path / "c.pem")
    finally:
        server.communicate(b"\n")


def test_token_is_in_no_repr() -> None:
    assert SECRET not in repr(connection.Server("http://x/", SECRET))


@pytest.mark.parametrize(
    "url",
    [f"http://x:8888/?token={SECRET}", f"http://x/lab?a=1&TOKEN={SECRET}", f"http://user:{SECRET}@x/", "ftp://x/",
     "x:8888", f"http://x/#{SECRET}", "http:///lab"],
)  # fmt: skip
def test_a_url_with_a_secret_or_without_a_host_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        connection.at(url)
    assert SECRET not in json.dumps(refused.value.to_json())


def test_named_server_gets_the_token_of_its_record() -> None:
    record(4242, url="http://localhost:8888/a%40b/", base_url="/a%40b/")
    for url in ("http://127.0.0.1:8888/a%40b", "http://localhost:8888/a%40b/lab/tree/x.ipynb"):
        found = connection.at(url)
        assert found.token == SECRET and found.url.endswith(":8888/a%40b/")
    assert connection.at("http://localhost:8889/").token == ""
    assert connection.at("http://elsewhere:8888/a%40b/").token == ""
    assert connection.at("http://localhost:8888/other/").token == ""


def test_named_server_elsewhere_gets_the_token_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTER_TOKEN", SECRET)
    assert connection.at("https://elsewhere/user/x").token == SECRET
