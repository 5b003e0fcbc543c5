"""``ocman-jupyter demo``: JupyterLab on the sample project, with an agent, in one command."""

from __future__ import annotations

import argparse
import contextlib
import shlex
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from filelock import FileLock, Timeout

from ocman_jupyter.errors import InvalidFolder

from . import check
from .ending import stop_instances
from .model import LABEL, ModelServer
from .place import Place, default_folder
from .provider import configured_provider
from .sample import NOTEBOOK, make_sample
from .server import JupyterServer

_NOTE = (
    "\n\n(This is the demo model. It only follows a script: `RUN bash: <command>`, `READ <file>`, "
    "`WRITE <file>: <text>`, `SAY <text>`, one a line.)"
)


def say(text: str) -> None:
    """A line for the person at the terminal."""
    print(f"demo: {text}", file=sys.stderr, flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    """The shell command."""
    parser = argparse.ArgumentParser(prog="ocman-jupyter demo", description="Try it all on a sample project.")
    parser.add_argument("--check", action="store_true", help="do the main job without a person, and clean up")
    parser.add_argument("--folder", type=Path, help=f"where the demo is kept (default: {default_folder()})")
    parser.add_argument("--fresh", action="store_true", help="make the sample project and its worktrees anew")
    parser.add_argument("--scripted", action="store_true", help="use the demo model even when one is configured")
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser")
    parser.add_argument("--port", type=int, default=8888, help="port of JupyterLab (the next free one is taken)")
    arguments = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, _as_interrupt)
    signal.signal(signal.SIGHUP, _as_interrupt)
    try:
        return check.main(say) if arguments.check else _serve(arguments)
    except KeyboardInterrupt:
        return 130


def _as_interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _serve(arguments: argparse.Namespace) -> int:
    place = Place((arguments.folder or default_folder()).expanduser().absolute())
    place.folder.mkdir(parents=True, exist_ok=True)
    place = Place(place.folder.resolve())
    lock = FileLock(place.lock)
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise InvalidFolder(
            f"A demo already runs in {place.folder}.", hint="End it there, or choose another --folder."
        ) from error
    provider = None if arguments.scripted else configured_provider()
    with contextlib.ExitStack() as cleanup:
        cleanup.callback(lock.release)
        model_url = None if provider else cleanup.enter_context(ModelServer(note=_NOTE)).url
        env = place.environment(model_url)
        stop_instances(env, say=say)  # one that a killed demo left behind would still talk to that demo's model
        make_sample(place.folder, arguments.fresh)
        if arguments.fresh:
            shutil.rmtree(place.state, ignore_errors=True)
        place.prepare(model_url)
        place.write_activation(env)
        page = f"lab/tree/{place.project.name}/{NOTEBOOK}"
        words = [
            f"--ServerApp.port={arguments.port}",
            f"--LabApp.default_url=/{page}",
            "--ContentsManager.allow_hidden=True",  # worktrees are in .worktrees
        ]
        if arguments.no_browser:
            words.append("--no-browser")
        say("starting JupyterLab …")
        # Its root holds the project and the worktrees beside it: files of both can be opened.
        server = JupyterServer(place.folder, env, place.log, lab=True, arguments=words)
        try:
            server.wait_ready()
            say(f"sample project: {place.project}")
            say(f"model: your own ({provider})" if provider else f"model: {LABEL}")
            say(f"Jupyter's log: {place.log}")
            say(f"in a terminal: . {shlex.quote(str(place.activation))} && cd {shlex.quote(str(place.project))}")
            say(f"open {server.url}{page}?token={server.token}")
            say("Ctrl-C ends Jupyter and the demo's OpenCode; the project is kept")
            server.process.wait()
        except KeyboardInterrupt:
            print(file=sys.stderr)
            say("ending …")
        finally:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)  # a second Ctrl-C must not leave half of it running
            server.stop()
            if problem := stop_instances(env, say=say):
                say(problem)
    say("ended")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
