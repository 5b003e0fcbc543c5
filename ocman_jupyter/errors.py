"""Every error that a user can meet: one class each, with its code, HTTP status and hint.

Errors travel as ``{"code", "message", "hint", "details"}`` over REST, between hosts and into the
notebook.  Code tells them apart by class or ``code``, never by the text.
"""

from __future__ import annotations

from typing import Any, ClassVar


class OcmanError(Exception):
    """Base of all errors of this package.

    Parameters
    ----------
    message:
        One sentence for a person.  Without it the class's own sentence is used.
    hint:
        What the person can do next, or ``None``; without it the class's own hint is used.
    details:
        JSON-ready facts (paths, codes, output).  Never secrets.
    """

    code: ClassVar[str] = "internal"
    status: ClassVar[int] = 500
    default_message: ClassVar[str] = "Something went wrong inside ocman."
    default_hint: ClassVar[str | None] = None

    def __init__(
        self,
        message: str | None = None,
        *,
        hint: str | None = None,
        details: dict[str, Any] | None = None,
    ) -> None:
        self.message = message or self.default_message
        self.hint = hint if hint is not None else self.default_hint
        self.details: dict[str, Any] = dict(details or {})
        self.lines: list[str] = []
        """What a notebook shows below it; not in the contract's object."""
        super().__init__(self.message)

    def to_json(self) -> dict[str, Any]:
        """The error object of the REST contract."""
        return {
            "code": self.code,
            "message": self.message,
            "hint": self.hint,
            "details": self.details,
        }

    @staticmethod
    def from_json(body: dict[str, Any]) -> OcmanError:
        """The typed error that :meth:`to_json` described; unknown codes give the base class."""
        code = str(body.get("code", ""))
        details = body.get("details")
        error = BY_CODE.get(code, OcmanError)(
            str(body.get("message") or "") or None,
            hint=body.get("hint"),
            details=details if isinstance(details, dict) else None,
        )
        if code and error.code != code:
            error.code = code  # type: ignore[misc]  # a newer server's code is kept as it came
        return error

    def _render_traceback_(self) -> list[str]:
        """IPython shows these lines in place of a traceback."""
        lines = [f"{type(self).__name__} [{self.code}]: {self.message}"]
        if self.hint:
            lines.append(f"  → {self.hint}")
        return lines + self.lines


def _error(
    name: str, code: str, status: int, message: str, hint: str | None = None
) -> type[OcmanError]:
    return type(
        name,
        (OcmanError,),
        {
            "__doc__": message,
            "__module__": __name__,
            "code": code,
            "status": status,
            "default_message": message,
            "default_hint": hint,
        },
    )


# 400
InvalidRequest = _error("InvalidRequest", "invalid_request", 400, "The request is not valid.")
# 401, 403
Unauthorized = _error(
    "Unauthorized",
    "unauthorized",
    401,
    "The Jupyter server refused the credentials.",
    "Log in again, or run `%ocman local` to work without the server.",
)
ForbiddenPath = _error("ForbiddenPath", "forbidden_path", 403, "This path may not be opened.")
# 404
NotARepository = _error(
    "NotARepository",
    "not_a_repository",
    404,
    "This directory is not inside a git repository.",
    "Run `git init` and make a first commit, or choose another directory.",
)
NoSuchDirectory = _error(
    "NoSuchDirectory", "no_such_directory", 404, "There is no such directory."
)
NoSuchBranch = _error("NoSuchBranch", "no_such_branch", 404, "There is no such branch.")
NoSuchWorktree = _error("NoSuchWorktree", "no_such_worktree", 404, "There is no such worktree.")
NoSuchSession = _error("NoSuchSession", "no_such_session", 404, "There is no such session.")
NoSuchProject = _error("NoSuchProject", "no_such_project", 404, "There is no such project.")
NoSuchHost = _error(
    "NoSuchHost",
    "no_such_host",
    404,
    "There is no such host.",
    "Leave `host` out, or use \"local\".",
)
NotFound = _error("NotFound", "not_found", 404, "There is nothing here by that name.")
# 409
BranchCheckedOut = _error(
    "BranchCheckedOut",
    "branch_checked_out",
    409,
    "The branch is checked out in the main checkout.",
    "Choose another branch name, or check out something else in the main checkout first.",
)
BranchNameConflict = _error(
    "BranchNameConflict",
    "branch_name_conflict",
    409,
    "The branch name is in conflict with an existing branch.",
    "git cannot hold both `a` and `a/b`; choose another name.",
)
BranchExists = _error(
    "BranchExists",
    "branch_exists",
    409,
    "The branch exists already.",
    "Leave `new_branch` out to use the existing branch.",
)
PathConflict = _error(
    "PathConflict",
    "path_conflict",
    409,
    "Something else is at the path of the worktree.",
    "Move it away, or choose another branch name.",
)
WorktreeLocked = _error(
    "WorktreeLocked",
    "worktree_locked",
    409,
    "The worktree is locked.",
    "Run `git worktree unlock` on it when you are sure.",
)
MainWorktree = _error(
    "MainWorktree", "main_worktree", 409, "This is the main checkout; it is never removed."
)
WouldLoseWork = _error(
    "WouldLoseWork",
    "would_lose_work",
    409,
    "Removing the worktree would lose work.",
    "Look at the reasons; accept each by name, or rescue the files first.",
)
SessionBusy = _error(
    "SessionBusy",
    "session_busy",
    409,
    "The session is busy.",
    "Wait until it is idle, or abort it.",
)
DirectoryMissing = _error(
    "DirectoryMissing",
    "directory_missing",
    409,
    "The folder of this session is gone.",
    "Make the worktree again, or start a session in another one.",
)
NotOurs = _error(
    "NotOurs",
    "not_ours",
    409,
    "This OpenCode was not launched by ocman.",
    "Stop it where you started it.",
)
OpenCodeNeedsPassword = _error(
    "OpenCodeNeedsPassword",
    "opencode_needs_password",
    409,
    "An OpenCode already serves this repository and wants a password.",
    "Set OPENCODE_SERVER_PASSWORD (and OPENCODE_SERVER_USERNAME) where Jupyter is started, "
    "or stop that OpenCode.",
)
# 413 is Jupyter's and tornado's own
# 422
InvalidBranch = _error(
    "InvalidBranch",
    "invalid_branch",
    422,
    "This is not a valid branch name.",
    "Use letters, digits, `-`, `_`, `.` and `/`; see `git check-ref-format`.",
)
NoCommits = _error(
    "NoCommits",
    "no_commits",
    422,
    "The repository has no commits yet.",
    "Make a first commit: `git add -A && git commit -m 'first'`.",
)
NoBase = _error(
    "NoBase",
    "no_base",
    422,
    "The base of the new branch does not name a commit.",
    "Give an existing branch, tag or commit as the base.",
)
InvalidFolder = _error("InvalidFolder", "invalid_folder", 422, "This folder cannot be used.")
# 423
IndexLocked = _error(
    "IndexLocked",
    "index_locked",
    423,
    "Another git process holds the index lock.",
    "Wait for it. When no git runs any more, delete the lock file yourself.",
)
# 502
OpenCodeError = _error("OpenCodeError", "opencode_error", 502, "OpenCode answered with an error.")
SessionDirectoryMismatch = _error(
    "SessionDirectoryMismatch",
    "session_directory_mismatch",
    502,
    "OpenCode opened the session in another directory than asked; it was deleted again.",
)
GitFailed = _error("GitFailed", "git_failed", 502, "git ended with an error.")
# 503
GitMissing = _error(
    "GitMissing",
    "git_missing",
    503,
    "git is not installed.",
    "Install git with your system's package manager, e.g. `apt-get install git`.",
)
OpenCodeMissing = _error(
    "OpenCodeMissing",
    "opencode_missing",
    503,
    "OpenCode is not installed.",
    "Run `ocman-jupyter setup`, or `npm install -g opencode-ai`.",
)
LaunchFailed = _error(
    "LaunchFailed",
    "launch_failed",
    503,
    "OpenCode ended while it was starting.",
    "Its last output is in the details.",
)
OpenCodeUnreachable = _error(
    "OpenCodeUnreachable",
    "opencode_unreachable",
    503,
    "OpenCode did not answer; it was left alone.",
    "Try again. If it stays like this, restart it with `ocman-jupyter ensure --restart`.",
)
HostUnreachable = _error("HostUnreachable", "host_unreachable", 503, "The host does not answer.")
ServerUnreachable = _error(
    "ServerUnreachable",
    "server_unreachable",
    503,
    "The Jupyter server does not answer, or does not run this extension.",
    "Run `%ocman local` to work without the server.",
)
StateUnusable = _error(
    "StateUnusable",
    "state_unusable",
    503,
    "ocman's own state cannot be used.",
    "See the reason, then try again.",
)
# 504
LaunchTimeout = _error(
    "LaunchTimeout",
    "launch_timeout",
    504,
    "OpenCode did not answer in time and was stopped.",
    "Its last output is in the details.",
)

BY_CODE: dict[str, type[OcmanError]] = {
    cls.code: cls for cls in list(globals().values())
    if isinstance(cls, type) and issubclass(cls, OcmanError) and cls is not OcmanError
}
"""Every typed error by its code."""
