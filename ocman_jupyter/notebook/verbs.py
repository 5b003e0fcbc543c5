"""Every verb once, asynchronous, over one client; what a user wrote becomes what the contract wants.

Relative directories become absolute here, because only this process knows its working directory.  The
session and worktree that were made last are remembered and are the default where a verb makes sense without
one.
"""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ..errors import InvalidRequest, NoSuchSession, OcmanError, OpenCodeError, WouldLoseWork
from . import choose, removing, views
from .asking import outcome
from .client import Client
from .feed import Feed
from .text import one_line
from .transcript import Transcript
from .turns import follow

if TYPE_CHECKING:
    from ..hosts.host import Progress

Json = dict[str, Any]


class Verbs:
    """The verbs over ``client``.

    Parameters
    ----------
    how:
        What a user types before a verb, for hints: ``%ocman`` or ``ocman-jupyter``.
    """

    def __init__(self, client: Client, how: str = "%ocman") -> None:
        self.client = client
        self.how = how
        self.last_session: str | None = None
        self.last_worktree: str | None = None
        self.feed = Feed(client)
        """What happens, for panels; it is connected while there are some."""

    # --- worktrees ---------------------------------------------------------------------------

    async def worktree(
        self,
        branch: str,
        prompt: str | None = None,
        *,
        directory: str | None = None,
        base: str | None = None,
        new_branch: bool | None = None,
        title: str | None = None,
        agent: str | None = None,
        model: str | None = None,
        session: str = "auto",
        again: bool = False,
        dry_run: bool = False,
        host: str | None = None,
        progress: Progress | None = None,
    ) -> views.WorktreeResult | views.Plan:
        """Make or reuse the worktree of ``branch`` and a session in it, and send ``prompt``.

        The same call twice starts the work once; ``again`` sends the prompt again in a new session.
        """
        _not_empty(prompt)
        body: Json = {
            "directory": absolute(directory),
            "branch": branch,
            "session": "new" if again else session,
            # One create, however often a connection fails on the way.
            "request_id": uuid.uuid4().hex,
        }
        given = {
            "base": base,
            "new_branch": new_branch,
            "title": title,
            "prompt": prompt,
            "agent": agent,
            "model": model,
            "host": host,
            "dry_run": dry_run or None,
        }
        body.update({key: value for key, value in given.items() if value is not None})
        answer = await self.client.create(body, progress)
        if dry_run:
            return views.Plan(answer, self)
        self.last_worktree = answer["worktree_path"]
        self.last_session = answer.get("session_id") or self.last_session
        result = views.WorktreeResult(answer, self)
        result.prompted = prompt is not None
        return result

    async def worktrees(self, directory: str | None = None, changes: bool = True) -> views.WorktreeList:
        """The worktrees of the repository with their sessions."""
        return views.WorktreeList(await self.client.worktrees(absolute(directory), changes), self)

    async def remove(
        self,
        branch: str,
        *,
        directory: str | None = None,
        accept: Sequence[str] = (),
        rescue: str | None = None,
        delete_branch: bool = False,
        dry_run: bool = False,
    ) -> removing.Removed | removing.Removal:
        """Remove a worktree.  ``WouldLoseWork`` names every reason that is not in ``accept``.

        ``rescue`` is a folder to which ignored, untracked and uncommitted files are copied first.
        """
        path = await self._worktree_path(branch, directory)
        if dry_run:
            return removing.Removal(await self.client.removal(path, delete_branch), self)
        body: Json = {"path": path, "accept": list(accept), "delete_branch": delete_branch}
        if rescue is not None:
            body |= {"rescue_to": absolute(rescue), "rescue": list(removing.RESCUABLE)}
        name = await self._branch_at(path, directory) if delete_branch else None
        try:
            answer = await self.client.remove(body)
        except WouldLoseWork as error:
            removing.explain(error, rescued=rescue is not None)
            raise
        if self.last_worktree == path:
            self.last_worktree = self.last_session = None
        return removing.Removed(answer, name, self)

    async def diff(
        self, branch: str | None = None, *, directory: str | None = None, against: str = "base"
    ) -> views.Diff:
        """What a worktree has changed: commits, uncommitted changes and new files, against its base.

        ``branch``: without it the worktree that was made last, else the one of the working directory.
        ``against``: ``base``, ``HEAD``, a revision, or the path of another worktree.
        """
        return views.Diff(await self.client.diff(await self._workplace(branch, directory), against), self)

    # --- the instance ------------------------------------------------------------------------

    async def ensure(
        self,
        directory: str | None = None,
        *,
        restart: bool = False,
        force: bool = False,
        progress: Progress | None = None,
    ) -> views.Instance:
        """The one OpenCode of the repository, found or launched; ``restart`` starts it anew."""
        where = absolute(directory)
        if restart:
            return views.Instance(await self.client.restart(where, force, progress), self)
        return views.Instance(await self.client.ensure(where, progress), self)

    async def stop(self, directory: str | None = None, *, force: bool = False) -> views.Stopped:
        """Stop the OpenCode of the repository, if ocman launched it."""
        return views.Stopped(await self.client.stop(absolute(directory), force), self)

    # --- sessions ----------------------------------------------------------------------------

    async def sessions(self, directory: str | None = None) -> views.SessionList:
        """All sessions of the repository."""
        return views.SessionList(await self.client.sessions(absolute(directory)), self)

    async def session(
        self,
        directory: str | None = None,
        prompt: str | None = None,
        *,
        title: str | None = None,
        agent: str | None = None,
        model: str | None = None,
        progress: Progress | None = None,
    ) -> views.Session:
        """A new session in a directory as it is, without a worktree of its own."""
        _not_empty(prompt)
        given = {"title": title, "prompt": prompt, "agent": agent, "model": model}
        body: Json = {"directory": absolute(directory), "request_id": uuid.uuid4().hex}
        body.update({key: value for key, value in given.items() if value is not None})
        answer = await self.client.create_session(body, progress)
        self.last_session = answer["id"]
        return views.Session(answer, self)

    async def get_session(self, session: str | None = None, *, directory: str | None = None) -> views.Session:
        """One session as it is now."""
        return views.Session(await self.client.session(await self._session_id(session, directory)), self)

    async def prompt(
        self,
        session: str | None,
        text: str,
        *,
        wait: bool = False,
        agent: str | None = None,
        model: str | None = None,
        directory: str | None = None,
        say: Callable[[str], None] | None = None,
    ) -> views.Sent | views.Turned:
        """Send work to a session; with ``wait`` wait for the answer and return it.

        Raises ``OpenCodeError`` when the turn that was waited for failed.
        """
        _not_empty(text)
        session_id = await self._session_id(session, directory)
        body: Json = {"text": text}
        body.update(
            {key: value for key, value in {"agent": agent, "model": model}.items() if value is not None}
        )
        if not wait:
            answer = await self.client.prompt(session_id, body)
            return views.Sent(answer, session_id, self)
        turned = await self._follow(session_id, say, lambda: self.client.prompt(session_id, body))
        if turned.data["error"]:
            raise OpenCodeError(f"The turn failed: {turned.data['error']}", details=turned.data)
        return turned

    async def watch(
        self,
        session: str | None = None,
        *,
        directory: str | None = None,
        say: Callable[[str], None] | None = None,
        printed: bool = True,
    ) -> views.Turned:
        """Give what happens in a session to ``say`` until it rests, and return its answer.

        ``printed``: ``say`` shows everything, so the result need not say it again.
        """
        turned = await self._follow(await self._session_id(session, directory), say, None)
        turned.said = printed and say is not None
        return turned

    async def abort(self, session: str | None = None, *, directory: str | None = None) -> views.Session:
        """Stop what a session does."""
        session_id = await self._session_id(session, directory)
        await self.client.abort(session_id)
        return views.Session(await self.client.session(session_id), self)

    # --- asks --------------------------------------------------------------------------------

    async def asks(self, directory: str | None = None) -> views.AskList:
        """All that needs the user, in all repositories; of others than that of ``directory`` it is said in which."""
        answer = await self.client.asks()
        here, roots = await self._whose(answer["asks"], directory)
        return views.AskList(answer, {key: root for key, root in roots.items() if root != here}, self)

    async def reply(
        self,
        ask: str | None,
        reply: str | None = None,
        message: str | None = None,
        *,
        answers: Sequence[str] | None = None,
        directory: str | None = None,
    ) -> views.Replied:
        """Answer an ask: ``once``, ``always`` or ``reject``; for a question the chosen ``answers``.

        ``ask``: ``None`` = the only one of the repository of ``directory``.
        """
        asks = (await self.client.asks())["asks"]
        wanted = choose.ask(asks, ask) if ask else choose.ask_here(asks, *await self._whose(asks, directory))
        if wanted["kind"] == "question" and answers:
            body: Json = {"answers": _labels(wanted["questions"], answers)}
        elif wanted["kind"] == "question" and reply != "reject":
            labels = [option.get("label") for q in wanted["questions"] for option in q.get("options") or []]
            raise InvalidRequest(
                "This is a question: choose an answer.",
                hint=f"--answer LABEL, one of: {', '.join(map(str, labels))}",
            )
        elif reply not in ("once", "always", "reject"):
            raise InvalidRequest("The reply must be once, always or reject.")
        else:
            body = {"reply": reply}
            if message is not None:
                body["message"] = message
        answer = await self.client.reply(wanted["id"], body)
        return views.Replied(answer, outcome(wanted, body), self)

    # --- the machine -------------------------------------------------------------------------

    async def doctor(self) -> views.Report:
        """What is there, what is missing, and the way to get it."""
        return views.Report(await self.client.doctor(), self)

    # --- what a user means -------------------------------------------------------------------

    async def _session_id(self, text: str | None, directory: str | None) -> str:
        if text and text.startswith("ses_") and len(text) >= 30:
            return text  # a whole id names a session of any repository
        if text is None and self.last_session:
            return self.last_session
        listing = await self.client.worktrees(absolute(directory), False)
        if text is not None:
            return str(choose.session(listing, _from(directory, text), self.last_session)["id"])
        session = choose.newest(choose.all_sessions(listing))
        if session is None:
            raise NoSuchSession(
                "There is no session in this repository yet.", hint=f"Make one: `{self.how} wt BRANCH`."
            )
        return str(session["id"])

    async def _worktree_path(self, text: str, directory: str | None) -> str:
        text = _from(directory, text)
        if os.path.isabs(text):
            return text
        return str(choose.worktree(await self.client.worktrees(absolute(directory), False), text)["path"])

    async def _workplace(self, text: str | None, directory: str | None) -> str:
        """The path of the worktree that is named, was made last, or holds the directory."""
        if text is not None:
            return await self._worktree_path(text, directory)
        if self.last_worktree is not None:
            return self.last_worktree
        where = absolute(directory)
        return str(choose.around(await self.client.worktrees(where, False), where)["path"])

    async def _branch_at(self, path: str, directory: str | None) -> str | None:
        """The branch of the worktree at ``path``, where that can be told."""
        for where in (path, absolute(directory)):  # its own folder may be gone
            with suppress(OcmanError):
                listing = await self.client.worktrees(where, False)
                return next((tree.get("branch") for tree in listing["worktrees"] if tree["path"] == path), None)
        return None

    async def _whose(self, asks: list[Json], directory: str | None) -> tuple[str | None, dict[str, str]]:
        """The root of the repository of ``directory``, and by its id that of each ask, where they can be told."""
        if not asks:
            return None, {}

        async def root(answer: Awaitable[Json]) -> str | None:
            try:
                return (await answer).get("repo_root")
            except OcmanError:  # no repository, or a session that has gone meanwhile
                return None

        sessions = list({ask["session_id"] for ask in asks})
        here, *roots = await asyncio.gather(
            root(self.client.worktrees(absolute(directory), False)), *(root(self.client.session(s)) for s in sessions)
        )
        of = dict(zip(sessions, roots, strict=True))
        return here, {ask["id"]: found for ask in asks if (found := of[ask["session_id"]])}

    async def _follow(
        self, session_id: str, say: Callable[[str], None] | None, send: Callable[[], Any] | None
    ) -> views.Turned:
        transcript = Transcript(say or (lambda text: None), self.how)
        turn = await follow(self.client, session_id, transcript, send)
        return views.Turned(
            {"session_id": session_id, "status": turn.status, "answer": turn.answer, "error": turn.error},
            self,
        )


def absolute(directory: str | os.PathLike[str] | None) -> str:
    """``directory`` (or the working directory) as an absolute path; links stay, the host resolves them.

    Raises ``InvalidRequest`` when the working directory itself is gone, and for a path that is not UTF-8.
    """
    try:
        path = os.path.abspath(os.path.expanduser(os.fspath(directory or os.curdir)))
    except FileNotFoundError:
        raise InvalidRequest(
            "The working directory of this process is gone.",
            hint="Change to another one, or name a directory.",
        ) from None
    check_utf8(path)
    return path


def check_utf8(text: str) -> None:
    """Refuse what cannot be said in JSON: git and OpenCode are told of everything in UTF-8.

    Raises ``InvalidRequest``.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        # A byte that is not UTF-8 comes as a surrogate; it is shown as that byte.
        shown = "".join(f"\\x{ord(c) & 0xFF:02x}" if "\ud800" <= c <= "\udfff" else c for c in text)
        raise InvalidRequest(f'"{one_line(shown)}" is not valid UTF-8.') from None


def _not_empty(prompt: str | None) -> None:
    if prompt is not None and not prompt.strip():
        raise InvalidRequest("The prompt is empty.")


def _from(directory: str | None, text: str) -> str:
    """A word that is surely a path, absolute as seen from ``directory``; other words as they are."""
    if text in (".", "..") or os.path.isabs(text) or text.startswith(("~/", "./", "../")):
        return os.path.normpath(os.path.join(absolute(directory), os.path.expanduser(text)))
    return text


def _labels(questions: list[Json], answers: Sequence[str]) -> list[list[str]]:
    """One list of labels per question; an answer may be the beginning of a label."""
    if len(questions) == 1:
        groups = [list(answers)]
    elif len(questions) == len(answers):
        groups = [[answer] for answer in answers]
    else:
        raise InvalidRequest(
            f"There are {len(questions)} questions; give one answer to each, in their order."
        )
    return [
        [_label(question, answer) for answer in group]
        for question, group in zip(questions, groups, strict=True)
    ]


def _label(question: Json, answer: str) -> str:
    labels = [str(option.get("label")) for option in question.get("options") or []]
    if answer in labels or not labels:
        return answer
    near = [label for label in labels if label.casefold().startswith(answer.casefold())]
    if len(near) == 1:
        return near[0]
    if question.get("custom", True) and not near:
        return answer  # a question takes words of one's own too
    raise InvalidRequest(f'"{answer}" is not one of the answers.', hint=f"One of: {', '.join(labels)}")
