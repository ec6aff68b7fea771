"""The steward's line in the person's crontab: the hourly timer that most systems have.

Belongs here: that line, and putting it in or taking it out. Other people's lines stay as they are.
"""

from __future__ import annotations

import sys

from ..core.text import shell_quoted
from ..errors import Refused
from ..store.files import programs
from .extras import ROOT

TAG = " # agent-mailbox steward"
"""The end of our crontab lines. Cron mails or logs the errors that a line writes."""
_PATIENCE = 20.0
"""Seconds that crontab may take."""
_BY_HAND = "add the line yourself; `agent-mailbox steward crontab` prints it"


def crontab_line(directory: str) -> str:
    """Return the crontab(5) line that runs the steward hourly in cron's bare environment.

    Raises ``Refused`` for a path that a crontab cannot hold.
    """
    words = [sys.executable, "-m", "agent_mailbox", "--dir", directory, "steward", "run"]
    package_root = str(ROOT)
    if any(not word.isprintable() or "%" in word for word in (*words, package_root)):
        raise Refused(
            f"a crontab cannot hold a path with % or a character that does not print: {directory}",
            "move the mailbox or the installation",
        )
    quoted = " ".join(shell_quoted(word) for word in words)
    return f"17 * * * * cd {shell_quoted(package_root)} && {quoted} >/dev/null{TAG}"


def _started(line: str) -> str:
    """Return a crontab line's command, without what becomes of its output (earlier versions dropped errors, too)."""
    return line.rpartition(" >/dev/null")[0]


def install_crontab(line: str) -> bool:
    """Put the line into the user's crontab instead of an earlier one; return whether that changed anything.

    Raises ``Refused`` if the ``crontab`` program is missing or fails.
    """
    lines = _read_crontab()
    if lines is None:
        command = f"`{_started(line).split(' ', 5)[5]}`"
        raise Refused("the crontab program is missing", f"install cron, or let another timer run each hour: {command}")
    if line in lines:
        return False
    mailbox = _started(line).split(" --dir ")[1]
    _write_crontab([*(other for other in lines if not _is_of(other, mailbox)), line])
    return True


def remove_crontab(directory: str) -> bool:
    """Take a mailbox's line out of the user's crontab; return whether one was there.

    Raises ``Refused`` if the ``crontab`` program fails; where it is missing there is no line.
    """
    lines = _read_crontab() or []
    kept = [line for line in lines if not _is_of(line, f"{shell_quoted(directory)} steward run")]
    if kept != lines:
        _write_crontab(kept)
    return kept != lines


def _is_of(line: str, mailbox: str) -> bool:
    """Return whether a crontab's line is ours, for the mailbox with the command behind it."""
    return line.endswith(TAG) and _started(line).endswith(f" --dir {mailbox}")


def has_lines() -> bool:
    """Return whether a line of ours is in the user's crontab, as far as that tells."""
    try:
        return any(line.rstrip().endswith(TAG) for line in _read_crontab() or ())
    except Refused:
        return False


def _read_crontab() -> list[str] | None:
    """Return the lines of the user's crontab; None without the program."""
    try:
        present = programs.ask(["crontab", "-l"], _PATIENCE)
    except (FileNotFoundError, PermissionError):  # the second: it may not be started
        return None
    except OSError as error:
        raise Refused(f"cannot read your crontab: {error.strerror}", _BY_HAND) from None
    if present.code and b"no crontab" not in present.err:
        raise Refused(f"cannot read your crontab: {present.complaint()}", _BY_HAND)
    table = "" if present.code else present.out.decode("utf-8", "surrogateescape")
    return table.removesuffix("\n").split("\n") if table else []


def _write_crontab(lines: list[str]) -> None:
    text = "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
    if why := programs.why_failed(["crontab", "-"], _PATIENCE, given=text):
        raise Refused(f"crontab refused the line: {why}", _BY_HAND)
