"""Permission rules that let agents work below a worktrees root: the seed of a launch, session rules."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .foreign import objects, parse

EXTERNAL = "external_directory"
ACTIONS = frozenset({"allow", "ask", "deny"})
VARIABLE = "OPENCODE_PERMISSION"

Warnings = list[tuple[str, str]]
"""Pairs of a code and a sentence."""


def unusable(worktrees_root: str) -> str | None:
    """Why no rule can be written for this root, or ``None``.  A rule's pattern cannot escape a wildcard."""
    if "*" in worktrees_root or "?" in worktrees_root:
        return "OpenCode reads `*` and `?` in a path as wildcards: worktrees there cannot be allowed ahead."
    try:
        worktrees_root.encode()
    except UnicodeEncodeError:
        return "The path is not UTF-8, so its worktrees cannot be allowed beforehand."
    return None


def pattern(worktrees_root: str) -> str:
    """What a rule names for everything below the root (a real path: OpenCode does not resolve rules)."""
    return worktrees_root.rstrip("/") + "/**"


def seed(
    worktrees_root: str, user_value: str | None, inherited: Sequence[Mapping[str, str]] = ()
) -> tuple[str | None, Warnings]:
    """The ``OPENCODE_PERMISSION`` of a launch, and what the user should know about it.

    The user's own value (an object, or one action for everything) comes first, then ``inherited`` session
    rules, then the permission to work below the root: in OpenCode the last rule that matches wins.  A value
    that is not understood is left out with a warning.  For a root that no rule can name, the user's value is
    given back untouched.
    """
    reason = unusable(worktrees_root)
    if reason:
        return user_value, [("permission_not_seeded", reason)]
    rules, warnings = _user_rules(user_value)
    for rule in inherited:
        rules = _with_last(rules, rule["permission"], {rule["pattern"]: rule["action"]})
    ours = pattern(worktrees_root)
    inside = worktrees_root.rstrip("/") + "/"
    theirs = _said_about(rules, EXTERNAL)
    overridden = [name for name, action in theirs.items() if name.startswith(inside) and action != "allow"]
    if overridden:
        warnings.append((
            "permission_overridden",
            f"{VARIABLE} restricts {', '.join(overridden)}; ocman allows all of its own {worktrees_root}.",
        ))
    rules = _with_last(rules, EXTERNAL, {ours: "allow"})
    return json.dumps(rules), warnings


def session_rules(worktrees_root: str) -> list[dict[str, str]]:
    """The seed's scope as rules of one session; empty for a root that no rule can name.

    They hold on an instance that was not seeded, too.  A fork does not copy them.
    """
    if unusable(worktrees_root):
        return []
    return [{"permission": EXTERNAL, "pattern": pattern(worktrees_root), "action": "allow"}]


def is_seeded(config: Mapping[str, Any], worktrees_root: str) -> bool:
    """Whether an instance's configuration (``GET /config``) allows work below the root without an ask."""
    permission = config.get("permission")
    rules = _as_rules(permission.get(EXTERNAL)) if isinstance(permission, dict) else None
    return _decides(((EXTERNAL, name, action) for name, action in (rules or {}).items()), worktrees_root)


def order_matters(config: Mapping[str, Any]) -> bool:
    """Whether ``config`` has rules for several permissions at once: only an agent's tell which come last.

    ``GET /config`` lists ``external_directory`` first wherever it was written.
    """
    permission = config.get("permission")
    return isinstance(permission, dict) and any(
        name != EXTERNAL and matches(EXTERNAL, name) and value != "allow"
        for name, value in permission.items())


def agents_allow(agents: Iterable[Mapping[str, Any]], worktrees_root: str) -> bool:
    """Whether every primary agent (``GET /agent``) may work below the root without an ask."""
    modes = ("primary", "all")
    primary = [agent for agent in agents if agent.get("mode") in modes and not agent.get("hidden")]
    return bool(primary) and all(
        _decides(
            ((rule.get("permission"), rule.get("pattern"), rule.get("action"))
             for rule in objects(agent.get("permission"))),
            worktrees_root)
        for agent in primary)


def matches(text: str, wildcard: str) -> bool:
    """OpenCode's wildcards: ``*`` is anything, ``/`` too; ``?`` is one character."""
    expression = "".join({"*": ".*", "?": "."}.get(char) or re.escape(char) for char in wildcard)
    return re.fullmatch(expression, text, re.DOTALL) is not None


def _decides(rules: Iterable[tuple[Any, Any, Any]], worktrees_root: str) -> bool:
    asked = worktrees_root.rstrip("/") + "/some-worktree/*"
    verdict = "ask"
    for permission, name, action in rules:
        named = isinstance(permission, str) and isinstance(name, str)
        if named and matches(EXTERNAL, permission) and matches(asked, name):
            verdict = action
    return verdict == "allow"


def _user_rules(value: str | None) -> tuple[dict[str, Any], Warnings]:
    """The user's rules as an object.  OpenCode itself takes only that form and chokes on a bare string."""
    if value is None or not value.strip():
        return {}, []
    try:
        parsed = parse(value)
    except ValueError:
        return {}, [("permission_invalid", f"{VARIABLE} is not valid JSON; its rules were left out.")]
    if isinstance(parsed, str) and parsed in ACTIONS:
        return {"*": parsed}, []
    if not isinstance(parsed, dict):
        return {}, [("permission_invalid", f"{VARIABLE} is neither rules nor an action; it was left out.")]
    rules, broken = {}, []
    for name, said in parsed.items():
        if _as_rules(said) is None:
            broken.append(name)
        else:
            rules[name] = said
    if broken:
        names = ", ".join(broken)
        return rules, [("permission_invalid", f"{VARIABLE} says nothing valid for {names}; left out.")]
    return rules, []


def _as_rules(said: Any) -> dict[str, Any] | None:
    """``{pattern: action}`` of what stands beside a permission's name: one action, or an object of them."""
    if isinstance(said, str):
        return {"*": said}
    if isinstance(said, dict) and all(isinstance(action, str) for action in said.values()):
        return said
    return None


def _said_about(rules: Mapping[str, Any], permission: str) -> dict[str, str]:
    """All that ``rules`` say of one permission from its own entry on, in the order that decides.

    Later entries with a wildcard in their name count; earlier ones keep their place and need no copy.
    """
    said: dict[str, str] = {}
    reached = False
    for name, value in rules.items():
        reached = reached or name == permission
        if reached and matches(permission, name):
            for one, action in (_as_rules(value) or {}).items():
                said.pop(one, None)
                said[one] = action
    return said


def _with_last(rules: Mapping[str, Any], permission: str, more: Mapping[str, str]) -> dict[str, Any]:
    """``rules`` with ``more`` said last of ``permission``; nothing else changes its meaning.

    The entry goes to the end.  What wildcard entries after its old place said of it goes along, else a rule
    that they had overruled would hold again.
    """
    said = _said_about(rules, permission)
    for one, action in more.items():
        said.pop(one, None)
        said[one] = action
    rest = {name: value for name, value in rules.items() if name != permission}
    return {**rest, permission: said}
