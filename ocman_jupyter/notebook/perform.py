"""From parsed words to the verb: the one table of what each verb's options mean."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .verbs import Verbs

if TYPE_CHECKING:
    from ..hosts.host import Progress

CHANGING = {"wt", "session", "rm", "ensure", "stop", "abort", "reply"}
"""Verbs whose work goes on when the caller stops waiting."""


async def perform(
    verb: str,
    given: argparse.Namespace,
    verbs: Verbs,
    *,
    directory: str | None = None,
    progress: Progress | None = None,
    say: Callable[[str], None] | None = None,
) -> Any:
    """Do ``verb``; returns its view.

    ``directory`` is where the command was given when the words name none.  ``say`` gets live output.
    """
    if verb == "wt":
        return await verbs.worktree(
            given.branch,
            given.prompt,
            directory=directory,
            base=given.base,
            new_branch=True if given.new else False if given.existing else None,
            title=given.title,
            agent=given.agent,
            model=given.model,
            session="none" if given.no_session else "auto",
            again=given.again,
            dry_run=given.dry_run,
            host=given.host,
            progress=progress,
        )
    if verb == "worktrees":
        return await verbs.worktrees(given.directory or directory)
    if verb == "sessions":
        return await verbs.sessions(given.directory or directory)
    if verb == "ensure":
        return await verbs.ensure(
            given.directory or directory, restart=given.restart, force=given.force, progress=progress
        )
    if verb == "stop":
        return await verbs.stop(given.directory or directory, force=given.force)
    if verb == "session":
        return await verbs.session(
            given.directory or directory,
            given.prompt,
            title=given.title,
            agent=given.agent,
            model=given.model,
            progress=progress,
        )
    if verb == "prompt":
        return await verbs.prompt(
            given.session,
            given.prompt,
            wait=given.wait,
            agent=given.agent,
            model=given.model,
            directory=directory,
            say=say,
        )
    if verb == "watch":
        return await verbs.watch(given.session, directory=directory, say=say)
    if verb == "abort":
        return await verbs.abort(given.session, directory=directory)
    if verb == "asks":
        return await verbs.asks(directory)
    if verb == "reply":
        return await verbs.reply(
            given.ask, given.reply, given.message, answers=given.answer, directory=directory
        )
    if verb == "rm":
        return await verbs.remove(
            given.branch,
            directory=directory,
            accept=given.accept,
            rescue=given.rescue,
            delete_branch=given.delete_branch,
            dry_run=given.dry_run,
        )
    if verb == "diff":
        return await verbs.diff(given.branch, directory=directory, against=given.against)
    if verb == "doctor":
        return await verbs.doctor()
    raise AssertionError(verb)
