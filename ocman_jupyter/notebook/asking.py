"""The words of an ask, the same as in JupyterLab: what would be done, to what, what "always" grants, and how it was
answered.

A test holds the tables equal to those of ``labextension/src/asks.ts``.
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

FILE = ("filepath", "filePath", "path")
"""Where an ask's facts name a file."""

DEEDS = {
    "external_directory": "outside the worktree:",
    "bash": "run",
    "edit": "edit",
    "write": "edit",
    "read": "read",
    "webfetch": "fetch",
    "websearch": "search the web for",
    "glob": "search for",
    "grep": "search for",
    "task": "start the subagent",
    "skill": "use the skill",
    "doom_loop": "go on repeating",
}
"""What each permission lets the agent do."""

OBJECTS = {
    "external_directory": (*FILE, "command"),
    "bash": ("command",),
    "edit": FILE,
    "write": FILE,
    "read": FILE,
    "webfetch": ("url",),
}
"""The facts that say to what, the telling ones first; else the patterns do."""

GRANTS = {
    "external_directory": "all work on what is at",
    "bash": "each command that matches",
    "edit": "editing each file that matches",
    "write": "editing each file that matches",
    "read": "reading each file that matches",
    "webfetch": "fetching each address that matches",
    "doom_loop": "repeating calls of",
}
"""What "always" allows, before its patterns."""

OUTCOMES = {"once": "Allowed once", "always": "Allowed always", "reject": "Rejected", "answered": "Answered"}


def deed(ask: Json) -> tuple[str, str]:
    """What a permission is asked for: the deed and its object, uncleaned."""
    permission = str(ask.get("permission") or "a permission")
    facts = ask.get("metadata") or {}
    named = (facts.get(name) for name in OBJECTS.get(permission, ()))
    found = next((value for value in named if isinstance(value, str) and value), None)
    return DEEDS.get(permission, permission), found or ", ".join(map(str, ask.get("patterns") or []))


def granted(ask: Json) -> str:
    """What "always" would allow, in words that its patterns follow; uncleaned."""
    permission = str(ask.get("permission") or "")
    if "*" in (ask.get("always") or []):
        return f"everything that needs the permission “{permission}”:"
    return GRANTS.get(permission, f"“{permission}” for all that matches")


def outcome(ask: Json, body: Json) -> str:
    """How ``ask`` was answered with ``body``, uncleaned."""
    if body.get("answers"):
        return f"{OUTCOMES['answered']}: {'; '.join(', '.join(labels) for labels in body['answers'])}"
    word = OUTCOMES[body["reply"]]
    if ask.get("kind") == "question":
        return word
    about = ", ".join(ask.get("always") or []) if body["reply"] == "always" else " ".join(deed(ask))
    return f"{word}: {about}"
