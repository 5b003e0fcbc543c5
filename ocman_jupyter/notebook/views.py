"""What the verbs return: the REST answer with a readable ``repr``, a static page view, and the next things
to do.

Each object is one answer (``.data``, also field by field as attributes).  All foreign text is cleaned in
``repr`` and escaped in HTML, which needs no style sheet and no script, so it reads the same in a saved
notebook.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .answer import Answer, Rows
from .states import changes, distance, status, worst
from .text import age, clean, duration, escape, one_line, size
from .transcript import describe_ask

if TYPE_CHECKING:
    from .panels import SessionPanel
    from .removing import Removed
    from .verbs import Verbs

Json = dict[str, Any]

_MOST_CARRIED = 5
PATCH_CHARACTERS = 50_000
"""How much of a diff's patches is put into the page."""


class HasSession(Answer):
    """An answer that stands for one session: work can be sent to it and watched."""

    def _session(self) -> str:
        from ..errors import NoSuchSession

        session_id = self.data.get("session_id") or self.data.get("id")
        if not session_id:
            raise NoSuchSession("There is no session here.", hint=f"Make one: `{self._how} wt BRANCH`.")
        return str(session_id)

    def prompt(self, text: str, wait: bool = False) -> Any:
        """Send work to the session; with ``wait`` wait for the answer and return it."""
        from . import api

        return api.prompt(self._session(), text, wait=wait, _verbs=self._verbs)

    def watch(self) -> Turned:
        """Print what happens in the session until it rests."""
        from . import api

        return api.watch(self._session(), _verbs=self._verbs)

    def wait(self) -> Turned:
        """Wait until the session rests, without a word, and return its answer."""
        from . import api

        return api.watch(self._session(), quiet=True, _verbs=self._verbs)

    def abort(self) -> Session:
        """Stop what the session does."""
        from . import api

        return api.abort(self._session(), _verbs=self._verbs)

    def panel(self) -> SessionPanel:
        """The session, live in a cell."""
        from .panels import SessionPanel

        return SessionPanel(self._session(), _verbs=self._verbs)

    def refresh(self) -> Session:
        """The session as it is now."""
        from . import api

        return api.get_session(self._session(), _verbs=self._verbs)


class Session(HasSession):
    """An OpenCode session."""

    def lines(self) -> list[str]:
        d = self.data
        lines = [
            f"Session {d['id']}: {d.get('title') or 'untitled'} — {status(d['status'])}",
            f"  in {d['directory']}",
        ]
        if d.get("model") or d.get("agent"):
            lines.append(f"  {' · '.join(filter(None, (d.get('agent'), d.get('model'))))}")
        lines += [f"  ! {describe_ask(ask)}  (reply {ask['id']})" for ask in d.get("pending") or []]
        return lines


class WorktreeResult(HasSession):
    """A worktree that was made or reused, with its session."""

    prompted = False
    """A prompt was given."""
    _panel: SessionPanel | None = None

    @property
    def session(self) -> Session | None:
        data = self.data.get("session")
        return Session(data, self._verbs) if data else None

    def diff(self, against: str = "base") -> Diff:
        """What the worktree has changed; see ``ocman.diff``."""
        from . import api

        return api.diff(self.data["worktree_path"], against=against, _verbs=self._verbs)

    def remove(self, **options: Any) -> Removed:
        """Remove the worktree; see ``ocman.remove``."""
        from . import api

        return api.remove(self.data["worktree_path"], _verbs=self._verbs, **options)

    def happened(self) -> str:
        """One sentence on the session and the prompt."""
        d = self.data
        if not d.get("session_id"):
            return "No session was asked for."
        if d.get("prompt_sent"):
            return "The prompt was sent to a new session."
        if d.get("session_reused"):
            if self.prompted:
                return (
                    "This prompt already began that session: nothing was sent. Use --again to send it again."
                )
            return "The session that was there is used."
        if self.prompted:
            return "The prompt was not sent."
        return "A new session waits for a prompt."

    def lines(self) -> list[str]:
        d = self.data
        how = "reused" if d["reused"] else "made"
        base = d.get("base")
        since = f" from {base['ref']} ({base['sha'][:8]})" if base and not d["branch_existed"] else ""
        lines = [f"Worktree {d['branch']} {how}{since}", f"  at {d['worktree_path']}"]
        lines += carried("carried", d.get("carried"))
        if d.get("session_id"):
            session = d.get("session") or {}
            state = f" — {status(session['status'])}" if session.get("status") else ""
            lines.append(f"  session {d['session_id']}{state}")
        lines.append(f"  {self.happened()}")
        lines += [f"  ! {warning['message']}" for warning in d.get("warnings") or []]
        return lines

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Json | None:
        """In a notebook that has a page, the session's panel; this view stays beside it."""
        from .stage import in_notebook

        if self._verbs is None or not self.data.get("session_id") or not in_notebook():
            return None
        if self._panel is None or self._panel.closed:
            from .panels import SessionPanel

            self._panel = SessionPanel.made(self.data, self._verbs)
        return self._panel.show(self._repr_html_(), repr(self))


def carried(verb: str, files: list[Json] | None) -> list[str]:
    """Lines about ignored files that come along."""
    files = files or []
    how = {"copy": "copied", "link": "linked"}
    lines = [f"  {verb} {one['path']} ({size(one['bytes'])}, {how[one['how']]})" for one in files[:_MOST_CARRIED]]
    rest = files[_MOST_CARRIED:]
    if rest:
        lines.append(f"  {verb} {len(rest)} more ({size(sum(one['bytes'] for one in rest))})")
    return lines


class Plan(Answer):
    """What a create would do (``--dry-run``)."""

    def lines(self) -> list[str]:
        p = self.data["plan"]
        base = p.get("base")
        known = bool(base) and base.get("age_seconds") is not None
        old = f", {duration(base['age_seconds'])} old".replace("now old", "just made") if known else ""
        what = "Would reuse the worktree" if p["reused"] else "Would make a worktree"
        lines = [
            f"{what} of {'the existing' if p['branch_existed'] else 'a new'} branch {p['branch']}",
            f"  at {p['worktree_path']}",
        ]
        if base:
            lines.append(f"  from {base['ref']} ({base['sha'][:8]}{old})")
        lines += carried("carry", p.get("carry"))
        lines += [f"  then run {command}" for command in p.get("setup") or []]
        lines += [f"  ! {warning['message']}" for warning in p.get("warnings") or []]
        return lines


class Worktree(HasSession):
    """One worktree of the list; as a session it is the newest of its own."""

    def _session(self) -> str:
        from .choose import newest

        session = newest(self.data.get("sessions") or [])
        return Session(session)._session() if session else super()._session()

    @property
    def sessions(self) -> SessionList:
        return SessionList({"sessions": self.data.get("sessions") or [], "hidden": 0}, self._verbs)

    def diff(self, against: str = "base") -> Diff:
        """What the worktree has changed; see ``ocman.diff``."""
        from . import api

        return api.diff(self.data["path"], against=against, _verbs=self._verbs)

    def remove(self, **options: Any) -> Removed:
        """Remove the worktree; see ``ocman.remove``."""
        from . import api

        return api.remove(self.data["path"], _verbs=self._verbs, **options)

    def lines(self) -> list[str]:
        d = self.data
        return [
            f"Worktree {d.get('branch') or d['name']}: {', '.join(filter(None, (changes(d), distance(d))))}",
            f"  at {d['path']}",
            *(
                f"  session {s['id']}: {s.get('title')} — {status(s['status'])}"
                for s in d.get("sessions") or []
            ),
        ]


class WorktreeList(Rows):
    """The worktrees of a repository with their sessions."""

    key = "worktrees"
    head = ("worktree", "changes", "base", "session", "status", "active")
    empty = 'No worktrees yet. Make one: %ocman wt BRANCH "what to do"'

    def item(self, data: Json) -> Worktree:
        return Worktree(data, self._verbs)

    def row(self, data: Json) -> tuple[object, ...]:
        sessions = sorted(data.get("sessions") or [], key=lambda s: str(s.get("updated") or ""), reverse=True)
        latest = sessions[0] if sessions else {}
        state = worst(sessions)
        more = f" (+{len(sessions) - 1})" if len(sessions) > 1 else ""
        name = (data.get("branch") or data["name"]) + (" (main)" if data["is_main"] else "")
        return (
            name,
            changes(data),
            distance(data),
            one_line(latest.get("title") or "", 36) + more,
            status(state) if state else "",
            age(latest.get("updated") or data.get("last_activity")),
        )

    def notes(self) -> list[str]:
        elsewhere = len(self.data.get("sessions_elsewhere") or [])
        return [f"{elsewhere} more session{'s' if elsewhere > 1 else ''} elsewhere."] if elsewhere else []


class SessionList(Rows):
    """Sessions of a repository."""

    key = "sessions"
    head = ("session", "title", "status", "directory", "updated")
    empty = 'No sessions yet. Make one: %ocman wt BRANCH "what to do"'

    def item(self, data: Json) -> Session:
        return Session(data, self._verbs)

    def row(self, data: Json) -> tuple[object, ...]:
        directory = data["directory"]
        root = data.get("repo_root") or ""
        short = directory.rsplit("/", 1)[-1] + (" (main)" if directory == root else "")
        return (
            data["id"],
            one_line(data.get("title") or "", 40),
            status(data["status"]),
            short,
            age(data["updated"]),
        )

    def notes(self) -> list[str]:
        hidden = self.data.get("hidden") or 0
        return [f"{hidden} not shown (subagents' sessions, other clones)."] if hidden else []


class Ask(Answer):
    """A session waits for a permission or an answer."""

    def reply(
        self, reply: str | None = None, message: str | None = None, answers: list[str] | None = None
    ) -> Answer:
        """``once``, ``always`` or ``reject``; or the chosen labels of a question."""
        from . import api

        return api.reply(self.data["id"], reply, message, answers=answers, _verbs=self._verbs)

    def lines(self) -> list[str]:
        return [
            f"! {self.data['title']}: {describe_ask(self.data)}",
            f"  reply {self.data['id']} once|always|reject",
        ]


class AskList(Rows):
    """All that needs the user; ``elsewhere`` tells, by its id, the repository of an ask of another than this one."""

    key = "asks"
    head = ("ask", "session", "repository", "wants", "since")
    empty = "Nothing needs you."

    def __init__(self, data: Json, elsewhere: Mapping[str, str] | None = None, verbs: Verbs | None = None) -> None:
        super().__init__(data, verbs)
        self.elsewhere = elsewhere or {}

    def item(self, data: Json) -> Ask:
        return Ask(data, self._verbs)

    def row(self, data: Json) -> tuple[object, ...]:
        where = self.elsewhere.get(data["id"], "")
        return (data["id"], data["title"], where, describe_ask(data), age(data["created"]))

    def __repr__(self) -> str:
        if not len(self):
            return self.empty
        return "\n".join(
            f"! {one_line(title, 40)}  {wants}\n    {ask}  {since}".rstrip() + (f"  in {clean(where)}" if where else "")
            for ask, title, where, wants, since in map(self.row, self.data[self.key])
        )


class Instance(Answer):
    """The one OpenCode of a repository."""

    def lines(self) -> list[str]:
        d = self.data
        what = "launched" if d["launched"] else "found running"
        owner = "" if d["owner"] == "ocman" else " (yours: ocman will not stop it)"
        lines = [
            f"OpenCode {d.get('opencode_version') or ''} {what} at {d['url']}{owner}",
            f"  for {d['repo_root']}",
        ]
        if d.get("tmux_session"):
            lines.append(f"  in tmux session {d['tmux_session']}")
        if not d["permission_seeded"]:
            lines.append("  ! It runs without ocman's permission seed; each session gets the rules itself.")
        return lines


class Stopped(Answer):
    """An instance was stopped."""

    def lines(self) -> list[str]:
        return ["Stopped."]


class Sent(HasSession):
    """A prompt was sent."""

    def __init__(self, data: Json, session_id: str, verbs: Verbs | None = None) -> None:
        super().__init__(data, verbs)
        self.session_id = session_id

    def _session(self) -> str:
        return self.session_id

    def lines(self) -> list[str]:
        queued = "queued behind the running turn" if self.data.get("queued") else "sent"
        return [f"Prompt {queued} ({self.session_id})."]


class Turned(HasSession):
    """How a session's turn ended: ``answer`` is what the agent said."""

    said = False
    """It was printed while it came."""

    def lines(self) -> list[str]:
        d = self.data
        if self.said:
            return [f"{d['session_id']}: {status(d['status'])}"]
        return [d["answer"] or f"{d['session_id']}: {status(d['status'])}, no answer"]

    def __str__(self) -> str:
        return clean(self.data["answer"])


class Replied(Answer):
    """An ask was answered: ``outcome`` says how."""

    def __init__(self, data: Json, outcome: str, verbs: Verbs | None = None) -> None:
        super().__init__(data, verbs)
        self.outcome = outcome

    def lines(self) -> list[str]:
        return [f"{self.outcome}."]


class Diff(Rows):
    """What a worktree has changed: its files; ``patch`` is all of it as git writes it."""

    key = "files"
    head = ("file", "change", "lines")
    empty = "Nothing differs."

    @property
    def patch(self) -> str:
        """The patches of all files that have one, uncleaned."""
        return "".join(file["patch"] for file in self.data["files"] if file.get("patch"))

    def row(self, data: Json) -> tuple[object, ...]:
        name = f"{data['old_path']} → {data['path']}" if data.get("old_path") else data["path"]
        counted = data.get("additions") is not None and not data.get("binary")
        lines = f"+{data['additions']} -{data['deletions']}" if counted else "binary" if data.get("binary") else ""
        cells = data.get("notebook_diff")
        return name, data["status"], lines if cells is None else f"{len(cells)} cell{'s' if len(cells) != 1 else ''}"

    def _repr_html_(self) -> str:
        text = self.patch
        if not text:
            return super()._repr_html_()
        left = len(text) - PATCH_CHARACTERS
        more = f"<div>… {left} more characters are not shown.</div>" if left > 0 else ""
        shown = f"<pre>{escape(text[:PATCH_CHARACTERS])}</pre>{more}"
        return f"{super()._repr_html_()}<details><summary>The changes</summary>{shown}</details>"

    def notes(self) -> list[str]:
        against = self.data["against"]
        more = ["There is more that differs: not all of it is told."] if self.data["truncated"] else []
        return [f"Compared with {against['ref']} ({against['sha'][:8]}).", *more]


class Report(Rows):
    """What ``doctor`` found."""

    key = "checks"
    head = ("check", "status", "finding")
    empty = "Nothing was checked."

    @property
    def healthy(self) -> bool:
        """No check is an error."""
        return all(check["status"] != "error" for check in self.data["checks"])

    def row(self, data: Json) -> tuple[object, ...]:
        return (data["name"], data["status"], data["message"])

    def notes(self) -> list[str]:
        return [
            f"{c['name']}: {c['hint']}" for c in self.data["checks"] if c.get("hint") and c["status"] != "ok"
        ]
