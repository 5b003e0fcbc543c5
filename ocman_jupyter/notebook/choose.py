"""Which session or worktree a user means: an id, a title, a branch, a path, or the beginning of one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ..errors import InvalidRequest, NoSuchSession, NoSuchWorktree, NotFound
from .text import one_line
from .transcript import describe_ask

Json = dict[str, Any]


def all_sessions(listing: Json) -> list[Json]:
    """Every session of a ``GET worktrees`` answer, each with the ``branch`` of its worktree."""
    found: dict[str, Json] = {}
    for worktree in listing.get("worktrees") or []:
        for session in worktree.get("sessions") or []:
            found[session["id"]] = {
                **session,
                "branch": worktree.get("branch"),
                "worktree": worktree.get("path"),
            }
    for session in listing.get("sessions_elsewhere") or []:
        found.setdefault(session["id"], {**session, "branch": None, "worktree": None})
    return list(found.values())


def newest(sessions: list[Json]) -> Json | None:
    """The session that was made last."""
    return max(sessions, key=lambda session: str(session.get("created") or ""), default=None)


def session(listing: Json, text: str, prefer: str | None = None) -> Json:
    """The session that ``text`` means.

    ``prefer`` is the id of the session that was made last here; it decides when one worktree holds several.
    Raises ``NoSuchSession``, or ``InvalidRequest`` with the candidates.
    """
    sessions = all_sessions(listing)
    path = _path(text)
    ways = (
        lambda s: s["id"] == text,
        lambda s: s.get("title") == text,
        lambda s: text in (s.get("branch"), os.path.basename(s.get("worktree") or "")),
        lambda s: path is not None and path in (_real(s.get("directory")), _real(s.get("worktree"))),
        lambda s: s["id"].startswith(text),
        lambda s: str(s.get("title") or "").casefold().startswith(text.casefold()),
        lambda s: str(s.get("branch") or "").casefold().startswith(text.casefold()),
    )
    for way in ways:
        found = [candidate for candidate in sessions if way(candidate)]
        if len(found) > 1 and prefer in {candidate["id"] for candidate in found}:
            found = [candidate for candidate in found if candidate["id"] == prefer]
        if len(found) == 1:
            return found[0]
        if found:
            raise _ambiguous(
                "session", text, [f"{one_line(s['id'], 40)} ({one_line(s.get('title'), 40)})" for s in found]
            )
    raise NoSuchSession(
        f'There is no session "{one_line(text, 60)}" in this repository.',
        hint="`%ocman sessions` lists them.",
    )


def worktree(listing: Json, text: str) -> Json:
    """The worktree that ``text`` means: by branch, folder name, path, or a session in it.

    Raises ``NoSuchWorktree``, or ``InvalidRequest`` with the candidates.
    """
    worktrees = listing.get("worktrees") or []
    path = _path(text)

    def with_session(test: Any) -> Any:
        return lambda w: any(test(s) for s in w.get("sessions") or [])

    ways = (
        lambda w: w.get("branch") == text,
        lambda w: w.get("name") == text,
        lambda w: path is not None and path == _real(w.get("path")),
        with_session(lambda s: text in (s["id"], s.get("title"))),
        lambda w: (
            text.casefold()
            in (
                str(w.get("branch") or "").casefold()[: len(text)],
                str(w.get("name") or "").casefold()[: len(text)],
            )
        ),
        with_session(lambda s: s["id"].startswith(text)),
    )
    for way in ways:
        found = [candidate for candidate in worktrees if way(candidate)]
        if len(found) == 1:
            return found[0]
        if found:
            raise _ambiguous("worktree", text, [one_line(w.get("branch") or w.get("path")) for w in found])
    raise NoSuchWorktree(
        f'There is no worktree "{one_line(text, 60)}" in this repository.',
        hint="`%ocman worktrees` lists them.",
    )


def around(listing: Json, directory: str) -> Json:
    """The worktree, or main checkout, that ``directory`` is in.  Raises ``NoSuchWorktree``."""
    worktrees = {_real(worktree.get("path")): worktree for worktree in listing.get("worktrees") or []}
    path = _real(directory)
    while path not in worktrees:
        above = os.path.dirname(path)
        if above == path:
            raise NoSuchWorktree(hint="`%ocman worktrees` lists those of the repository.")
        path = above
    return worktrees[path]


def ask(asks: list[Json], text: str) -> Json:
    """The ask that ``text`` means by (the beginning of) its id or its session's.

    Raises ``NotFound`` or ``InvalidRequest`` with the candidates.
    """
    found = [a for a in asks if a["id"] == text] or [
        a for a in asks if a["id"].startswith(text) or a["session_id"].startswith(text) or a["title"] == text
    ]
    if not found:
        raise NotFound(
            "Nothing is asked by that name; it may have been answered elsewhere.",
            hint="`%ocman asks` lists what needs you.",
        )
    return _the_one(found, text)


def ask_here(asks: list[Json], here: str | None, roots: Mapping[str, str]) -> Json:
    """The only ask of the repository ``here``; one of another repository (``roots``) is answered by name only.

    Raises ``NotFound``, with what is asked elsewhere, or ``InvalidRequest`` with the candidates.
    """
    found = [one for one in asks if here is not None and roots.get(one["id"]) == here]
    if found:
        return _the_one(found, "")
    if not asks:
        raise NotFound("Nothing needs you.", hint="It may have been answered elsewhere.")
    one = asks[0]
    place = f"in {roots[one['id']]}" if one["id"] in roots else "in another repository"
    answer = "--answer LABEL" if one["kind"] == "question" else "once|always|reject"
    more = f"; {len(asks) - 1} more: `%ocman asks`" if len(asks) > 1 else ""
    raise NotFound(
        f'Nothing is asked in this repository. {place[0].upper()}{place[1:]} "{one_line(one["title"], 40)}" waits: '
        f"{describe_ask(one)}.",
        hint=f"Answer it: `%ocman reply {one['id']} {answer}`{more}.",
        details={"asks": [one["id"] for one in asks]},
    )


def _the_one(found: list[Json], text: str) -> Json:
    if len(found) == 1:
        return found[0]
    raise _ambiguous("ask", text, [f"{one_line(a['id'], 40)} ({one_line(a['title'], 40)})" for a in found])


def _ambiguous(kind: str, text: str, candidates: list[str]) -> InvalidRequest:
    shown = ", ".join(candidates[:8]) + (" …" if len(candidates) > 8 else "")
    which = f'"{one_line(text, 60)}" names' if text else "There are"
    return InvalidRequest(
        f"{which} {len(candidates)} {kind}s: {shown}.",
        hint="Write more of the one you mean, or its id.",
        details={"candidates": candidates},
    )


def _path(text: str) -> str | None:
    """``text`` as a real path when it is an absolute one, else ``None``."""
    return _real(text) if os.path.isabs(text) else None


def _real(path: str | None) -> str:
    return os.path.realpath(path) if path else ""
