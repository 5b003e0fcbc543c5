"""``ocman-jupyter``: the verbs of the magics as a shell command, with demo, setup and attach.

What was asked for goes to stdout (with ``--json`` exactly the REST answer, or the error object), words for
people to stderr.  Exit codes: 0 done, 1 an OcmanError or a turn that failed, 2 usage, 130 interrupted.
With ``OCMAN_DEBUG=1`` a fault of ours shows where it was.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from .errors import InvalidRequest, OcmanError, OpenCodeError

if TYPE_CHECKING:
    import argparse

    from .notebook.options import Parser
    from .notebook.verbs import Verbs

PROG = "ocman-jupyter"
HELP = {"-h", "--help", "help"}
FOREIGN = {
    "setup": ("ocman_jupyter.setup", "install OpenCode into a private folder"),
    "demo": ("ocman_jupyter.demo.run", "try it all on a sample project"),
}
"""Verbs with a command line of their own: where their ``main(argv) -> int`` is, and what they do."""

COLOURS = {"ok": "32", "warning": "33", "error": "31"}


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        # Names of files may hold what the terminal's encoding cannot say.
        with suppress(AttributeError, ValueError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        code = _run(words)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # `| head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _run(words: list[str]) -> int:
    from .notebook import options
    from .notebook.verbs import check_utf8
    from .notebook.worker import Interrupted

    as_json = "--json" in words
    try:
        verb, words = _verb(words)
        if verb in FOREIGN:
            import importlib

            return int(importlib.import_module(FOREIGN[verb][0]).main(words) or 0)
        if verb == "help":
            print(_help(words))
            return 0
        for word in words:
            check_utf8(word)
        parser = _grammar(verb)
        if HELP & {word for word in words if word != "help"}:
            print(parser.format_help().rstrip())
            return 0
        given = options.settle(verb, parser.parse_intermixed_args(words), PROG)
        return _perform(verb, given)
    except options.Usage as error:
        _note(f"{PROG}: {error}\nusage: {error.usage}")
        return 2
    except OcmanError as error:
        return _failed(error, as_json)
    except Interrupted as stop:
        _note(f"\n{stop}")
        return 130
    except KeyboardInterrupt:
        _note("\nInterrupted.")
        return 130
    except BrokenPipeError:
        raise
    except Exception as error:
        from .notebook.text import one_line

        hint: str | None = "This is a fault of ocman. Set OCMAN_DEBUG=1 to see where it is."
        if os.environ.get("OCMAN_DEBUG") == "1":
            import traceback

            traceback.print_exc()
            hint = None
        return _failed(OcmanError(one_line(f"{type(error).__name__}: {error}", 400), hint=hint), as_json)


# --- the words ---------------------------------------------------------------------------------


def _verb(words: list[str]) -> tuple[str, list[str]]:
    """The verb and the words without it.  Options of all verbs may stand before it."""
    from . import __version__
    from .notebook import options

    index = 0
    while index < len(words) and words[index].startswith("-"):
        if words[index] in HELP:
            return "help", []
        if words[index] == "--version":
            print(__version__)
            raise SystemExit(0)
        index += 2 if words[index] in ("-C", "--directory", "--server") else 1
    if index >= len(words):
        raise options.Usage("the verb is missing", f"{PROG} VERB …; `{PROG} help` lists the verbs")
    word, rest = words[index], words[:index] + words[index + 1 :]
    if word in FOREIGN or word == "help":
        return word, rest
    return options.verb_of(word, PROG), rest


def _grammar(verb: str) -> Parser:
    from .notebook import options

    parser = options.grammar(verb, PROG)
    add = parser.add_argument
    add("-C", "--directory", dest="where", metavar="DIR", help="work as if started there")
    add("--server", metavar="URL", help="ask this Jupyter server instead of working in this process")
    add("--json", action="store_true", help="print exactly the REST answer, or the error object")
    return parser


def _help(words: list[str]) -> str:
    from .notebook import options

    if words:
        if words[0] in FOREIGN:
            return f"{PROG} {words[0]}: {FOREIGN[words[0]][1]}; see `{PROG} {words[0]} --help`"
        return _grammar(options.verb_of(words[0], PROG)).format_help().rstrip()
    lines = options.help_text(None, PROG).splitlines()
    extra = [f"  {name.ljust(9)}  {text}" for name, (_, text) in FOREIGN.items()]
    return "\n".join(
        [*lines[:-1], *extra, lines[-1], f"Options of all: -C DIR, --server URL, --json; {PROG} --version"]
    )


# --- the work ----------------------------------------------------------------------------------

LAUNCHING = "Interrupted. If OpenCode was starting, it goes on, and the next command uses it."


def _perform(verb: str, given: argparse.Namespace) -> int:
    from .notebook import live
    from .notebook.api import WATCH_ENDED
    from .notebook.perform import perform
    from .notebook.verbs import absolute

    where = absolute(given.where)
    for name in ("directory", "rescue"):
        if getattr(given, name, None):
            setattr(given, name, os.path.join(where, os.path.expanduser(getattr(given, name))))
    if verb == "attach":
        return _attach(given, given.directory or where)
    verbs = _connect(given.server)
    try:
        answer = live.call(
            lambda reports: perform(
                verb, given, verbs, directory=where, progress=reports.progress, say=reports.put
            ),
            None if verb == "watch" else getattr(given, "branch", None) or verb,
            say=None if given.json else _say if verb == "watch" else _say_asks,
            interrupted=WATCH_ENDED
            if verb == "watch" or getattr(given, "wait", False)
            else LAUNCHING
            if verb in ("wt", "session", "ensure")
            else None,
        )
    finally:
        _close(verbs)
    if given.json:
        print(json.dumps(answer.data, indent=2))
    elif verb != "watch":
        print(_coloured(verb, repr(answer)))
    elif answer.error:
        return _failed(OpenCodeError(f"The turn failed: {answer.error}"), as_json=False)
    if verb == "watch" and answer.error:
        return 1
    return 1 if verb == "doctor" and not answer.healthy else 0


def _connect(server: str | None) -> Verbs:
    from .notebook.verbs import Verbs

    if server is None:
        from .notebook.api import in_process

        return Verbs(in_process(), how=PROG)
    from .notebook import connection
    from .notebook.rest import RestClient

    return Verbs(RestClient(connection.at(server)), how=PROG)


def _close(verbs: Verbs) -> None:
    from .notebook.worker import WORKER

    running = WORKER.submit(verbs.client.close())
    with suppress(Exception):  # what cannot be closed in time ends with this process
        running.outcome.result(timeout=5)


def _attach(given: argparse.Namespace, directory: str) -> int:
    """Become OpenCode's own screen on the instance.  Its password goes through the environment only."""
    from .hosts.local.attach import screen
    from .notebook import live, options
    from .settings import OcmanSettings

    if given.server or given.json:
        raise options.Usage(
            "attach shows a screen on this machine; --server and --json are not for it",
            options.grammar("attach", PROG).short_usage(),
        )
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InvalidRequest("A screen needs a terminal.", hint="Run `ocman-jupyter attach` in one.")
    shown = live.call(
        lambda reports: screen(OcmanSettings.load(), directory, reports.progress),
        "attach",
        interrupted=LAUNCHING,
    )
    sys.stdout.flush()
    os.execve(shown.argv[0], shown.argv, {**os.environ, **shown.environment})


# --- what is printed ---------------------------------------------------------------------------


def _say(text: str) -> None:
    from .notebook.live import say_to_stdout

    say_to_stdout(text)


def _say_asks(text: str) -> None:
    """While an answer is waited for: only what needs the user, and to stderr."""
    if text.startswith(("! needs you", f"  {PROG} reply")):
        _note(text.rstrip())


def _failed(error: OcmanError, as_json: bool) -> int:
    from .notebook.text import clean

    error.hint = _in_the_shell(error.hint)
    if as_json:
        print(json.dumps(error.to_json(), indent=2))
        return 1
    lines = [f"{_colour('error', 'error', sys.stderr)} [{error.code}]: {clean(error.message)}"]
    lines += error.lines
    if error.hint:
        lines.append(f"  {clean(error.hint)}")
    output = error.details.get("output")
    if isinstance(output, str) and output.strip():
        lines += ["  " + line for line in clean(output).rstrip().splitlines()[-20:]]
    _note("\n".join(lines))
    return 1


def _in_the_shell(hint: str | None) -> str | None:
    """A hint that names the magics, in this command's words.  ``%ocman local`` is to leave --server out."""
    if hint is None or "%ocman" not in hint:
        return hint
    hint = re.sub(rf"(`{PROG} [^`]*`) or `%ocman [^`]*`", r"\1", hint)
    hint = re.sub(
        r"\b([Rr])un `%ocman local`( to work without the server| in a notebook)?",
        lambda found: ("Leave" if found[1] == "R" else "leave") + " --server out",
        hint,
    )
    return hint.replace("%ocman", PROG)


def _note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _colour(word: str, text: str, stream: Any) -> str:
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not stream.isatty():
        return text
    return f"\x1b[{COLOURS[word]}m{text}\x1b[0m"


def _coloured(verb: str, text: str) -> str:
    """Statuses of ``doctor``'s table in colour, on a terminal."""
    if verb != "doctor":
        return text
    lines = []
    for line in text.splitlines():
        cells = line.split("  ")
        word = next((cell.strip() for cell in cells[1:] if cell.strip()), "")
        lines.append(line.replace(word, _colour(word, word, sys.stdout), 1) if word in COLOURS else line)
    return "\n".join(lines)
