"""``%ocman`` and ``%%ocman``: the verbs as IPython magics."""

from __future__ import annotations

from contextlib import suppress
from types import SimpleNamespace
from typing import Any

from IPython.core.magic import Magics, line_cell_magic, magics_class, needs_local_scope, no_var_expand

from ..errors import InvalidRequest
from .text import clean, escape

PROG = "%ocman"
HELP_WORDS = {"-h", "--help"}


class Help:
    """Text that is shown as it is."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return clean(self._text)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self._text)}</pre>"


@magics_class
class OcmanMagics(Magics):
    """One coding agent per project, one worktree per idea."""

    last_error: str | None = None

    # The words are split first and expanded then, so that what a variable holds is never taken for words or
    # options.
    @no_var_expand
    @needs_local_scope
    @line_cell_magic
    def ocman(self, line: str, cell: str | None = None, local_ns: dict[str, Any] | None = None) -> Any:
        """One coding agent per project, one worktree per idea: ``%ocman help`` lists the verbs.

        ``%ocman wt BRANCH "what to do"`` makes a worktree with a session in it; the body of ``%%ocman wt
        BRANCH`` or ``%%ocman prompt SESSION`` is the prompt.
        """
        from . import options

        names = {**self.shell.user_ns, **(local_ns or {})}
        words = options.split(line)
        try:
            return self._run(
                [words[0], *(_expand(word, names) for word in words[1:])] if words else [], cell, names
            )
        except options.Usage as error:
            message = str(error)[:1].upper() + str(error)[1:]
            raise InvalidRequest(
                message if message.endswith("?") else f"{message}.", hint=error.usage
            ) from None

    def _run(self, words: list[str], cell: str | None, names: dict[str, Any]) -> Any:
        from . import api, options

        if not words or words[0] in HELP_WORDS or words == ["help"]:
            return Help(options.help_text(None, PROG))
        if words[0] == "help":
            return self._help(options.verb_of(words[1], PROG))
        if words[0] == "local":
            if words[1:] not in ([], ["on"], ["off"]):
                raise options.Usage("say on or off", f"{PROG} local [on|off]")
            return api.local(words[1:] != ["off"])
        verb = options.verb_of(words[0], PROG)
        if HELP_WORDS & set(words[1:]):
            return self._help(verb)
        parser = options.grammar(verb, PROG)
        prompting = verb in ("wt", "prompt", "session")
        if prompting:
            options.with_context(parser)
        given = parser.parse_intermixed_args(words[1:])
        if cell is not None and not prompting:
            raise options.Usage(f"the verb {verb} takes no cell body", f"{PROG} {verb} …")
        options.settle(verb, given, PROG, None if cell is None else _expand(cell.strip("\n"), names))
        if prompting:
            given.prompt = self._with_context(given, names)
        return self._perform(verb, given)

    def _help(self, verb: str) -> Help:
        from . import options

        parser = options.grammar(verb, PROG)
        if verb in ("wt", "prompt", "session"):
            options.with_context(parser)
        return Help(parser.format_help())

    def _with_context(self, given: Any, names: dict[str, Any]) -> str | None:
        from . import context, options

        if not (given.variables or given.with_error):
            if given.with_data:
                raise options.Usage("--with-data needs --with VAR", f"{PROG} … --with VAR --with-data")
            return given.prompt
        if given.prompt is None:
            raise options.Usage("--with needs a prompt", f"{PROG} … PROMPT --with VAR")
        described = [context.describe(name, names, given.with_data) for name in given.variables]
        return context.compose(
            given.prompt, described, context.last_error(self.last_error) if given.with_error else None
        )

    def _perform(self, verb: str, given: Any) -> Any:
        from . import api, live, perform

        verbs = api.DESK.verbs()
        if verb == "attach":
            return Help(_attach_command(given.directory))
        if verb == "watch":
            return live.call(
                lambda reports: perform.perform(verb, given, verbs, say=reports.put),
                say=live.say_to_stdout,
                interrupted=api.WATCH_ENDED,
            )
        waiting = verb == "prompt" and given.wait
        return live.call(
            lambda reports: perform.perform(
                verb, given, verbs, progress=reports.progress, say=api.last_line(reports) if waiting else None
            ),
            getattr(given, "branch", None) or getattr(given, "session", None) or verb,
            keep=verb in perform.CHANGING or (verb == "prompt" and not waiting),
            interrupted=api.WATCH_ENDED if waiting else None,
        )

    def remember_error(self, result: Any) -> None:
        """After each cell: keep the notebook's own last error for ``--with-error``."""
        error = getattr(result, "error_in_exec", None)
        if error is not None:
            from .context import format_error

            self.last_error = format_error(error) or self.last_error


def _expand(text: str, names: dict[str, Any]) -> str:
    if "$" not in text and "{" not in text:
        return text
    from .context import expand

    return expand(text, names)


def _attach_command(directory: str | None) -> str:
    import shlex

    from .verbs import absolute

    return f"Run this in a terminal:\n  ocman-jupyter attach {shlex.quote(absolute(directory))}"


def _complete(shell: Any, event: SimpleNamespace) -> list[str]:
    from .complete import complete

    line = getattr(event, "text_until_cursor", None) or event.line
    start = max(line.rfind("%ocman"), 0)
    return complete(line[start:], event.symbol, variables=list(shell.user_ns))


def register(shell: Any) -> None:
    """Give ``shell`` the magics and their completion."""
    unregister(shell)
    magics = OcmanMagics(shell)
    shell.register_magics(magics)
    shell.events.register("post_run_cell", magics.remember_error)
    for word in ("%ocman", "%%ocman"):
        shell.set_hook("complete_command", _complete, str_key=word)


def unregister(shell: Any) -> None:
    """Take them away again."""
    registry = shell.magics_manager.registry
    magics = registry.pop(OcmanMagics.__name__, None)
    if magics is None:
        return
    for kind in shell.magics_manager.magics.values():
        kind.pop("ocman", None)
    with suppress(ValueError):
        shell.events.unregister("post_run_cell", magics.remember_error)
