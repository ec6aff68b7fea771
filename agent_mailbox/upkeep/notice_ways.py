"""The ways to reach the person: a command of theirs, ntfy, a Slack-compatible webhook, the desktop.

Belongs here: one function for each, and the limits of all. Each is named in the person's own configuration alone. No
way runs a shell, follows a redirect or waits longer than ``LIMIT``. Names in a notice are other people's words, so each
way escapes what its reader would take for markup.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from ..core import codec
from ..core.text import filled
from ..store.files import programs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..core.attention import Notice

LIMIT = 15.0
"""Seconds for one way."""
_SOCKET, _PROGRAM = 10.0, 14.0


def send_notice(settings: Mapping[str, Any], notice: Notice) -> dict[str, str]:
    """Tell the notice by every way that is set; return an error for each way, empty where it was told."""
    ways: dict[str, Callable[[], None]] = {}
    if command := settings.get("command"):
        values = {"title": notice.title, "text": notice.text, "count": str(notice.count), "link": notice.link}
        ways["command"] = lambda: _run_program(filled(command, values))
    if settings.get("desktop"):
        words = ["notify-send", "--app-name=agent-mailbox", "--", notice.title, _strip_markup(notice.text)]
        ways["desktop"] = lambda: _run_program(words)
    if ntfy := settings.get("ntfy"):
        click = {"Click": notice.link} if notice.link else {}
        headers = {"Title": notice.title.encode("ascii", "replace").decode(), "Tags": "mailbox", **click}
        ways["ntfy"] = lambda: _post_body(ntfy, notice.text.encode(), headers)
    if webhook := settings.get("webhook"):
        lines = filter(None, (notice.title, notice.text, notice.link))
        body = codec.dumps({"text": _strip_markup("\n".join(lines))}).encode()
        ways["webhook"] = lambda: _post_body(webhook, body, {"Content-Type": "application/json"})
    results: dict[str, str] = {}
    threads = [threading.Thread(target=_try_way, args=(name, way, results), daemon=True) for name, way in ways.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
    return {name: results.get(name, f"no answer within {LIMIT:g} s") for name in ways}


def _try_way(name: str, way: Callable[[], None], results: dict[str, str]) -> None:
    try:
        way()
        results[name] = ""
    except Exception as error:  # whatever a server or a program does, the others are told
        results[name] = f"{type(error).__name__}: {error}"[:200]


def _run_program(words: list[str]) -> None:
    if why := programs.why_failed(words, _PROGRAM):
        raise OSError(f"{words[0]}: {why}")


def _post_body(url: str, body: bytes, headers: dict[str, str]) -> None:
    class Stay(HTTPRedirectHandler):
        """Follows no redirect: the person named this place and no other."""

        def redirect_request(self, *_: Any) -> None:
            return None

    opener = build_opener(ProxyHandler({}), Stay())
    with opener.open(Request(url, body, {"User-Agent": "agent-mailbox", **headers}, method="POST"), timeout=_SOCKET):
        pass  # the answer is not read: its status is all that counts


def _strip_markup(text: str) -> str:
    """Return a text without markup, for the desktop (Pango) and Slack: both escape these three."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
