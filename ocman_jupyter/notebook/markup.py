"""What panels show, as HTML and as plain text: every word that somebody else chose is escaped, and nothing runs.

The HTML reads well without its style sheet too: viewers of saved notebooks take that away.
"""

from __future__ import annotations

import html
import re
import unicodedata
from datetime import datetime, timezone
from typing import Any

from .asking import FILE, OUTCOMES, deed, granted
from .conversation import Conversation
from .states import GLYPHS, changes, distance, status
from .text import clean, escape, one_line
from .transcript import describe_ask, failure, outcome, subject

Json = dict[str, Any]

PART_CHARACTERS = 20_000
"""How much of one piece of text is shown: its beginning and its end."""
STILL_CHARACTERS = 4_000
"""The same in the view that is saved with the notebook."""
FACT_CHARACTERS = 10_000
"""How much of a fact of an ask is shown before it says that there is more."""

STYLE = """<style>
.ocman-nb{color:var(--jp-ui-font-color1,inherit);font-size:var(--jp-ui-font-size1,13px);line-height:1.5;
overflow-wrap:anywhere}
.ocman-nb p{margin:0 0 .5em;white-space:pre-wrap}
.ocman-nb pre,.ocman-nb code{font-family:var(--jp-code-font-family,monospace);font-size:.95em}
.ocman-nb pre{margin:.25em 0;padding:.4em .6em;white-space:pre-wrap;color:inherit;
background:var(--jp-layout-color2,rgba(127,127,127,.12));border-radius:3px}
.ocman-nb h4{margin:0;font-size:1.05em;color:inherit}
.ocman-nb ul{margin:.25em 0;padding-left:1.4em}
.ocman-nb table{border-collapse:collapse;color:inherit}
.ocman-nb-muted{color:var(--jp-ui-font-color2,inherit)}
.ocman-nb-you{margin:.6em 0 .3em;padding:.3em .6em;border-left:3px solid var(--jp-brand-color1,#1976d2)}
.ocman-nb-tool{font-family:var(--jp-code-font-family,monospace);font-size:.9em;
color:var(--jp-ui-font-color2,inherit)}
.ocman-nb-failed{padding-left:.6em;border-left:3px solid var(--jp-error-color1,#d32f2f)}
.ocman-nb-needs{padding-left:.6em;border-left:3px solid var(--jp-warn-color1,#b26a00)}
.ocman-nb-mark{display:inline-block;min-width:1.2em;font-weight:700}
.ocman-nb-mark-busy{color:var(--jp-brand-color1,inherit)}
.ocman-nb-mark-needs_you{color:var(--jp-warn-color0,inherit)}
.ocman-nb-mark-error,.ocman-nb-mark-directory_missing{color:var(--jp-error-color1,inherit)}
</style>"""

FACTS = {
    "patterns": "matches",
    "command": "command",
    "url": "address",
    "diff": "change",
    **dict.fromkeys(FILE, "file"),
}
"""What the facts of an ask are called."""
FOLDERS = {"parentDir", "directories"}
"""Facts that only repeat the folders of the patterns."""

_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[^\n]*\n(.*?)(?:^[ \t]*\1[`~]*[ \t]*$|\Z)", re.M | re.S)
_CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_BOLD = re.compile(r"\*\*(?=\S)(.+?)(?<=\S)\*\*")
_ITALIC = re.compile(r"(?<![\w*])\*(?=\S)([^*\n]+?)(?<=\S)\*(?![\w*])")
_HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.M)
_UNSEEN = {"\xad", "\u061c", "\u200b", "\u200c", "\u200d", "\u200e", "\u200f", "\ufeff", "\u2028", "\u2029"}


def wrap(body: str, kind: str = "") -> str:
    """``body`` (HTML) as a piece of a panel."""
    return f'<div class="ocman-nb {kind}">{body}</div>' if kind else f'<div class="ocman-nb">{body}</div>'


def foreign(text: object, width: int = 120) -> str:
    """A name that somebody chose, on one line and with a direction of its own."""
    return f"<bdi>{escape(one_line(text, width))}</bdi>"


def visible(text: object) -> str:
    """``text`` with each character that shows nothing, or turns others round, as its code: what is allowed must
    be what is read."""
    return "".join(
        f"\\u{ord(c):04x}" if c not in "\n\t" and (c in _UNSEEN or unicodedata.category(c) in ("Cc", "Cf", "Cs")) else c
        for c in str(text)
    )


def mark(state: str, word: str | None = None) -> str:
    """The sign of a state beside its word."""
    sign = escape(GLYPHS.get(state, "?"))
    return (
        f'<span class="ocman-nb-mark ocman-nb-mark-{escape(state)}" aria-hidden="true">{sign}</span> '
        f"<span>{escape(word or status(state))}</span>"
    )


def markdown(text: str, limit: int = PART_CHARACTERS) -> str:
    """Paragraphs, headings, fenced code, code words, bold and italic ones; all else stays the text that it is."""
    text = _shortened(clean(text), limit)
    pieces, at = [], 0
    for fence in _FENCE.finditer(text):
        pieces += [_paragraphs(text[at : fence.start()]), f"<pre>{html.escape(fence.group(2).rstrip())}</pre>"]
        at = fence.end()
    return "".join([*pieces, _paragraphs(text[at:])])


def _paragraphs(text: str) -> str:
    found = [one.strip("\n") for one in re.split(r"\n[ \t]*\n", text)]
    return "".join(f'<p dir="auto">{_line(one)}</p>' for one in found if one.strip())


def _line(text: str) -> str:
    pieces = _CODE.split(html.escape(text))  # every second one is code, which is taken as it stands
    for i in range(0, len(pieces), 2):
        plain = _BOLD.sub(r"<b>\1</b>", _HEADING.sub(r"<b>\1</b>", pieces[i]))
        pieces[i] = _ITALIC.sub(r"<i>\1</i>", plain)
    for i in range(1, len(pieces), 2):
        pieces[i] = f"<code>{pieces[i]}</code>"
    return "".join(pieces)


def _shortened(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    begin, end = limit * 3 // 4, limit // 4
    return f"{text[:begin]}\n\n… {len(text) - begin - end} characters are not shown …\n\n{text[-end:]}"


# --- parts of a session ----------------------------------------------------------------------


def place(session: Json, worktree: Json | None) -> str:
    """Where a session works: the folder's name."""
    return str((worktree or {}).get("name") or str(session.get("directory") or "").rstrip("/").rsplit("/", 1)[-1])


def header(seen: Conversation) -> str:
    """Worktree and title, state, branch, cost."""
    session, worktree = seen.session, seen.worktree
    facts = [mark("unknown", "deleted") if seen.removed else mark(seen.status)]
    if retry := session.get("retry"):
        again = f"{one_line(retry.get('message'), 160)}, retrying ({retry.get('attempt')})"
        facts.append(f'<span class="ocman-nb-failed">{escape(again)}</span>')
    if worktree is not None:
        facts.append(f"branch {foreign(worktree.get('branch') or 'detached')}")
        known = {"state": "ok", "locked": False, "merged": "no", "is_main": False, **worktree}
        facts += [escape(words) for words in (changes(known), distance(known)) if words]
    for word in (session.get("agent"), session.get("model")):
        if word:
            facts.append(foreign(word, 60))
    if session.get("cost"):
        facts.append(f"${float(session['cost']):.2f}")
    title = f"{foreign(place(session, worktree), 60)} / {foreign(session.get('title') or 'untitled')}"
    return wrap(
        # By the id the page knows that this session is looked at.
        f'<h4 data-ocman-session="{escape(seen.id)}">{title}</h4><div>{" · ".join(facts)}</div>'
        f'<div class="ocman-nb-muted">in {foreign(session.get("directory"), 300)}</div>'
    )


def message(found: Json, directory: str = "", limit: int = PART_CHARACTERS) -> str:
    """One message: what was said, one line a tool call; empty when it says nothing."""
    info = found.get("info") or {}
    mine = info.get("role") == "user"
    pieces = []
    for part in found.get("parts") or []:
        kind, text = part.get("type"), str(part.get("text") or "")
        if part.get("synthetic") or part.get("ignored"):
            continue
        if kind == "text" and text.strip():
            said = markdown(text, limit)
            pieces.append(f'<div class="ocman-nb-you"><b>you</b>{said}</div>' if mine else said)
        elif kind == "tool":
            pieces.append(_tool(part, directory))
    if error := failure(info):
        pieces.append(f'<div class="ocman-nb-failed">✗ failed: {escape(one_line(error, 400))}</div>')
    return wrap("".join(pieces)) if pieces else ""


def _tool(part: Json, directory: str) -> str:
    state = part.get("state") or {}
    ended = state.get("status") in ("completed", "error")
    how = outcome(state) if ended else "…"
    line = " ".join(
        filter(None, ("›", one_line(part.get("tool"), 30), one_line(subject(state, directory), 160), how))
    )
    body = f'<div class="ocman-nb-tool">{escape(line)}</div>'
    if state.get("status") == "error" and state.get("error"):
        body += f'<div class="ocman-nb-failed">{escape(one_line(state["error"], 300))}</div>'
    return body


def todos(found: list[Json]) -> str:
    """The todo list; empty when there is none."""
    if not found:
        return ""
    done = sum(todo.get("status") == "completed" for todo in found)
    signs = {"completed": "[x]", "in_progress": "[>]", "cancelled": "[-]"}
    items = [
        f"<li>{signs.get(str(todo.get('status')), '[ ]')} {escape(one_line(todo.get('content'), 200))}</li>"
        for todo in found[:50]
    ]
    return wrap(f"<details><summary>Todo {done}/{len(found)}</summary><ul>{''.join(items)}</ul></details>")


# --- asks ------------------------------------------------------------------------------------


def ask(found: Json, number: int = 1, count: int = 1, named: bool = False) -> str:
    """What is asked, with everything that is known of it, and exactly what "always" would allow."""
    of = f" ({number} of {count})" if count > 1 else ""
    who = f"{foreign(found.get('title') or 'untitled')} " if named else ""
    if found.get("kind") == "question":
        return wrap(f"<b>? {who}asks{of}</b>", "ocman-nb-needs")
    what, thing = deed(found)
    facts = {"patterns": ", ".join(map(str, found.get("patterns") or [])), **(found.get("metadata") or {})}
    if facts.get("diff"):  # the same changes in other shapes
        facts = {name: value for name, value in facts.items() if name not in ("filediff", "files")}
    rows = [
        f"<div>{html.escape(visible(FACTS.get(name, name)))}: {_fact(value)}</div>"
        for name, value in facts.items()
        if value not in (None, "", [], {}, thing) and name not in FOLDERS
    ]
    always = list(found.get("always") or [])
    if always:
        grant = f"{html.escape(visible(granted(found)))} {_patterns(always)}"
        rows.append(f"<div>Always would allow {grant} in this worktree, until OpenCode restarts.</div>")
    else:
        rows.append("<div>Always would allow nothing more than once does.</div>")
    first = f"<b>! {who}asks: {html.escape(visible(what))}{of}</b> {_fact(thing)}"
    return wrap(first + "".join(rows), "ocman-nb-needs")


def _patterns(patterns: list[str]) -> str:
    return " ".join(f"<code>{html.escape(visible(one))}</code>" for one in patterns)


def _fact(value: object) -> str:
    text = visible(value)
    more = f" … and {len(text) - FACT_CHARACTERS} more characters" if len(text) > FACT_CHARACTERS else ""
    tag = "pre" if "\n" in text else "code"
    return f"<{tag}>{html.escape(text[:FACT_CHARACTERS])}</{tag}>{more}"


def question(found: Json) -> str:
    """One question with the answers to choose from."""
    options = [
        f"<li>{escape(one_line(option.get('label'), 200))}"
        + (f" — {escape(one_line(option['description'], 400))}" if option.get("description") else "")
        + "</li>"
        for option in found.get("options") or []
    ]
    return wrap(markdown(str(found.get("question") or found.get("header") or "")) + f"<ul>{''.join(options)}</ul>")


def resolved(reply: str | None) -> str:
    """How an ask was answered elsewhere, in a few words."""
    return f"Answered elsewhere: {OUTCOMES[reply].lower()}" if reply in OUTCOMES else "It is no longer asked."


# --- what is saved with the notebook ---------------------------------------------------------


def when() -> str:
    """The time now, as a saved view tells it."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")


def still(seen: Conversation) -> str:
    """A session as it is now, for a page without a kernel."""
    directory = str(seen.session.get("directory") or "")
    said = [message(found, directory, STILL_CHARACTERS) for found in list(seen.messages.values())]
    asks = [wrap(f"! {escape(describe_ask(found))}", "ocman-nb-needs") for found in list(seen.asks.values())]
    error = seen.session.get("error")
    failed = wrap(f"✗ {escape(one_line(error, 400))}", "ocman-nb-failed") if error else ""
    return "".join([header(seen), todos(seen.todos), *said, failed, *asks, as_of()])


def as_of() -> str:
    """When a saved view was true."""
    return wrap(f'<span class="ocman-nb-muted">as of {when()}</span>')


def plain(seen: Conversation) -> str:
    """The same in a few lines of text."""
    session = seen.session
    branch = (seen.worktree or {}).get("branch")
    lines = [
        f"Session {session['id']}: {session.get('title') or 'untitled'} — {status(seen.status)}",
        f"  in {session.get('directory')}" + (f" on {branch}" if branch else ""),
        *(f"  ! {describe_ask(found)}" for found in list(seen.asks.values())),
        f"  as of {when()}",
    ]
    return clean("\n".join(lines))
