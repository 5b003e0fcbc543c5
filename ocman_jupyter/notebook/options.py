"""What each verb takes: one argparse grammar for the magics and the shell command."""

from __future__ import annotations

import argparse
import os
import shlex
from typing import Any, NoReturn

from ..errors import InvalidRequest
from .text import one_line

VERBS: dict[str, str] = {
    "wt": "make or reuse a worktree with a session in it, and send a prompt",
    "worktrees": "the worktrees of the repository with their sessions",
    "sessions": "all sessions of the repository",
    "session": "a new session in a directory as it is",
    "prompt": "send work to a session; --wait returns the answer",
    "watch": "live output of a session until it rests",
    "asks": "what needs you",
    "reply": "answer an ask",
    "abort": "stop what a session does",
    "diff": "what a worktree has changed",
    "rm": "remove a worktree, never losing work unasked",
    "ensure": "the one OpenCode of the repository, found or launched",
    "stop": "stop the OpenCode of the repository",
    "doctor": "what is there, what is missing, how to get it",
    "attach": "OpenCode's own terminal screen on the repository",
}
"""Every verb in the order of the help, with what it does."""

ALIASES = {"wts": "worktrees", "worktree": "wt", "remove": "rm"}


class Usage(Exception):
    """The words do not fit the grammar.  ``usage`` is the one line that does."""

    def __init__(self, message: str, usage: str) -> None:
        super().__init__(message)
        self.usage = usage


class Parser(argparse.ArgumentParser):
    """Raises :class:`Usage` where argparse would end the process."""

    _places: tuple[argparse.Action, ...] = ()

    def __init__(self, *args: Any, **options: Any) -> None:
        options.setdefault("add_help", False)
        options.setdefault("allow_abbrev", False)
        super().__init__(*args, **options)

    def short_usage(self) -> str:
        """The one line that says how it is written."""
        words = [
            f"[{action.metavar}]" if action.nargs == "?" else str(action.metavar) for action in self._places
        ]
        return " ".join([self.prog, *words, "[options]"])

    def add_argument(self, *names: Any, **options: Any) -> argparse.Action:
        action = super().add_argument(*names, **options)
        if not action.option_strings:
            self._places = (*self._places, action)
        return action

    def error(self, message: str) -> NoReturn:
        raise Usage(message, self.short_usage())


def _work(parser: argparse.ArgumentParser, prompt: bool = True) -> None:
    if prompt:
        parser.add_argument(
            "-p", "--prompt", dest="prompt_option", metavar="PROMPT", help="the prompt, as an option"
        )
    parser.add_argument("--agent", metavar="A", help="OpenCode's agent")
    parser.add_argument("--model", metavar="P/M", help="provider/model")


def grammar(verb: str, prog: str) -> Parser:
    """The parser of one verb; ``prog`` is what is typed before it."""
    parser = Parser(prog=f"{prog} {verb}", description=VERBS[verb])
    add = parser.add_argument
    if verb == "wt":
        add("branch", metavar="BRANCH", help="name of the branch, new or existing")
        add("prompt", metavar="PROMPT", nargs="?", help="what to do, in quotes")
        _work(parser)
        add("--base", metavar="REF", help="where a new branch begins")
        add("--title", metavar="T", help="title of the session")
        add("--no-session", action="store_true", help="only the worktree")
        add("--again", action="store_true", help="send the prompt again, in a new session")
        add("--new", action="store_true", help="the branch must not exist yet")
        add("--existing", action="store_true", help="the branch must exist")
        add("--dry-run", action="store_true", help="only say what would be done")
        add("--host", metavar="H", help="the host that does it")
    elif verb in ("worktrees", "sessions", "ensure", "stop", "attach"):
        add(
            "directory",
            metavar="DIR",
            nargs="?",
            help="any path in the repository; default: the working directory",
        )
    if verb == "ensure":
        add("--restart", action="store_true", help="stop it and start it anew")
    if verb in ("ensure", "stop"):
        add("--force", action="store_true", help="also while sessions are busy")
    elif verb == "session":
        add("directory", metavar="DIR", nargs="?", help="default: the working directory")
        add("prompt", metavar="PROMPT", nargs="?", help="what to do, in quotes")
        _work(parser)
        add("--title", metavar="T", help="title of the session")
    elif verb == "prompt":
        add(
            "session",
            metavar="SESSION",
            nargs="?",
            help="id, title, branch or path; default: the last one made",
        )
        add("prompt", metavar="PROMPT", nargs="?", help="what to do, in quotes")
        _work(parser)
        add("--wait", action="store_true", help="wait for the answer and return it")
    elif verb in ("watch", "abort"):
        add(
            "session",
            metavar="SESSION",
            nargs="?",
            help="id, title, branch or path; default: the last one made",
        )
    elif verb == "reply":
        add("ask", metavar="ASK", nargs="?", help="(the beginning of) its id; default: the only one of this repository")
        add("reply", metavar="once|always|reject", nargs="?")
        add("message", metavar="MESSAGE", nargs="?", help="said to the agent with a reject")
        add("--answer", metavar="LABEL", action="append", help="answer of a question; once for each question")
    elif verb == "diff":
        add(
            "branch",
            metavar="BRANCH",
            nargs="?",
            help="branch, folder name or path; default: the last one made, or the one of the working directory",
        )
        add("--against", metavar="REF", default="base", help="base (the default), HEAD, a revision, or a path")
    elif verb == "rm":
        add("branch", metavar="BRANCH", help="branch, folder name or path of the worktree")
        add(
            "--accept",
            metavar="REASON,…",
            action="append",
            default=[],
            help="lose this: a reason that was shown",
        )
        add("--rescue", metavar="DIR", help="copy ignored, untracked and uncommitted files to this folder first")
        add("--delete-branch", action="store_true", help="delete the branch too, if ocman made it")
        add("--dry-run", action="store_true", help="only say what would be lost")
    return parser


def with_context(parser: Parser) -> None:
    """What only a notebook has: a prompt in the cell, and what is put under it."""
    parser.epilog = (
        f"%{parser.prog} {parser.short_usage().removeprefix(parser.prog).split()[0].strip('[]')} takes the rest of "
        "its cell as the prompt, of as many lines as you like; in quotes \\n is no new line."
    )
    parser.add_argument(
        "--with",
        dest="variables",
        metavar="VAR",
        action="append",
        default=[],
        help="describe a variable: type, shape, columns; no data",
    )
    parser.add_argument(
        "--with-data", action="store_true", help="put (the beginning of) the data of --with there too"
    )
    parser.add_argument("--with-error", action="store_true", help="put the last traceback there")


def verb_of(word: str, prog: str) -> str:
    """The verb that ``word`` names.  Raises ``Usage``."""
    verb = ALIASES.get(word, word)
    if verb not in VERBS:
        import difflib

        near = difflib.get_close_matches(word, [*VERBS, *ALIASES], 1)
        guess = f"; did you mean {near[0]}?" if near else ""
        raise Usage(f"there is no verb {one_line(word, 40)!r}{guess}", f"{prog} {'|'.join(VERBS)} …")
    return verb


def split(line: str) -> list[str]:
    """The words of a magic's line, quoted as in a shell, up to a comment; nothing else of a shell happens."""
    try:
        return shlex.split(_without_comment(line))
    except ValueError:
        raise InvalidRequest(
            "A quote is not closed.", hint="Put the prompt in double quotes, or use %%ocman."
        ) from None


def _without_comment(line: str) -> str:
    """``line`` without `` # …``: Lab shows it as a comment, and people write it as one."""
    quote = ""
    for place, letter in enumerate(line):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter == "#" and (place == 0 or line[place - 1].isspace()):
            return line[:place]
    return line


def settle(verb: str, given: argparse.Namespace, prog: str, cell: str | None = None) -> argparse.Namespace:
    """Bring the ways to say one thing together: ``given.prompt`` from its place, its option or the cell's
    body.

    Raises :class:`Usage` where it is said twice, or not at all.
    """
    usage = grammar(verb, prog).short_usage()
    if verb in ("wt", "prompt", "session"):
        if verb == "session" and given.prompt is None:
            # One word: a directory, or (with a space in it) what to do in this one.
            words = given.directory or ""
            if " " in words.strip() and not os.path.isdir(os.path.expanduser(words)):
                given.directory, given.prompt = None, words
        said = [text for text in (given.prompt, given.prompt_option, cell) if text is not None]
        if len(said) > 1:
            raise Usage("the prompt is given twice", usage)
        given.prompt = said[0] if said else None
        if verb == "prompt" and given.prompt is None:
            raise Usage("the text of the prompt is missing", usage)
        if given.prompt is not None and not given.prompt.strip():
            raise Usage("the prompt is empty", usage)
    if verb == "wt":
        if given.again and given.no_session:
            raise Usage("--again and --no-session exclude each other", usage)
        if given.no_session and given.prompt:
            raise Usage("a prompt needs a session; leave --no-session out", usage)
        if given.new and given.existing:
            raise Usage("--new and --existing exclude each other", usage)
    if verb == "reply":
        words = [word for word in (given.ask, given.reply, given.message) if word is not None]
        if words and words[0] in ("once", "always", "reject"):  # the ask may be left out
            given.ask, given.reply, given.message = None, words[0], words[1] if len(words) > 1 else None
        if given.answer is None and given.reply not in ("once", "always", "reject"):
            raise Usage("the reply must be once, always or reject, or --answer for a question", usage)
    if verb == "rm":
        given.accept = [code.strip() for word in given.accept for code in word.split(",") if code.strip()]
    return given


def help_text(verb: str | None, prog: str) -> str:
    """The help of one verb, or of all."""
    if verb is not None:
        return grammar(verb, prog).format_help().removeprefix("usage: ")
    width = max(map(len, VERBS))
    return "\n".join(
        [
            f"{prog} VERB …",
            *(f"  {name.ljust(width)}  {text}" for name, text in VERBS.items()),
            f"{prog} help VERB explains one.",
        ]
    )
