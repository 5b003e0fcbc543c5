"""A program that pretends to be OpenCode as far as a launch can tell.  What it does wrong stands in a file.

Started as ``opencode serve …``, ``opencode --port 0`` or ``opencode --version``.  ``FAKE_OPENCODE`` names a
folder: ``starts`` gets a line for each start, ``behaviour`` (JSON) is read anew for each request.
"""

import base64
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

FOLDER = os.environ["FAKE_OPENCODE"]
BIRTH = time.time()


def behaviour():
    try:
        with open(os.path.join(FOLDER, "behaviour")) as file:
            return json.load(file)
    except (OSError, ValueError):
        return {}


def answer(connection, told):
    with connection:
        head = b""
        while b"\r\n\r\n" not in head:
            data = connection.recv(65536)
            if not data:
                return
            head += data
        told = {**told, **behaviour()}
        lines = head.decode("latin-1").split("\r\n")
        path = lines[0].split(" ")[1].partition("?")[0]
        headers = dict(line.lower().split(": ", 1) for line in lines[1:] if ": " in line)
        if told.get("hang") or time.time() < BIRTH + told.get("silent_for", 0):
            time.sleep(30)
            return
        if told.get("reset"):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            return
        password = os.environ.get("OPENCODE_SERVER_PASSWORD")
        token = base64.b64encode(f"opencode:{password}".encode()).decode()
        status, body = 200, {}
        if password and headers.get("authorization") != f"basic {token}".lower():
            status = 401
        elif "status" in told:
            status = told["status"]
        elif path == "/global/health":
            body = {"healthy": True, "version": "9.9.9"}
        elif path == "/path":
            time.sleep(30 if told.get("path_hangs") else 0)
            here = told.get("directory", os.environ.get("FAKE_CWD", os.getcwd()))
            status = told.get("path_status", 200)
            body = {"worktree": here, "directory": here} if status == 200 else {"name": "ConfigJsonError"}
        elif path == "/config":
            time.sleep(30 if told.get("config_hangs") else 0)
            body = {"permission": json.loads(os.environ.get("OPENCODE_PERMISSION", "{}"))}
            if "shell" in told:
                body["shell"] = told["shell"]
        elif path == "/agent":
            body = []
        else:
            status = 404
        data = json.dumps(body).encode()
        connection.sendall(b"HTTP/1.1 %d X\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%s" % (
            status, len(data), data))


def refuse_all(listener):
    while True:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 404 X\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")


def main():
    if "--version" in sys.argv:
        print(behaviour().get("version", "9.9.9"))
        return
    told = behaviour()
    with open(os.path.join(FOLDER, "starts"), "a") as file:
        file.write(json.dumps({"pid": os.getpid(), "argv": sys.argv[1:], "cwd": os.getcwd(),
                               "environ": dict(os.environ)}) + "\n")
    if "exit" in told:
        print("a line before", flush=True)
        print(told.get("words", "cannot start: the cupboard is bare"), file=sys.stderr)
        sys.exit(told["exit"])
    if told.get("stubborn"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    if told.get("child"):
        subprocess.Popen(["sleep", "60"], start_new_session=told["child"] == "session")
    time.sleep(told.get("delay", 0))
    if told.get("deaf"):
        time.sleep(60)
    if told.get("second_port"):  # as OpenCode does for a log-in that comes back
        other = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=refuse_all, args=(other,), daemon=True).start()
    listener = socket.create_server(("127.0.0.1", told.get("port", 0)), backlog=64)
    if "says" in told:
        print(told["says"], flush=True)
    if "serve" in sys.argv:
        print(f"opencode server listening on http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=answer, args=(connection, told), daemon=True).start()


main()
