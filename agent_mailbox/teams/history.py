"""The mailbox's history of teams, for people and programs; it outlives the team.

Belongs here: the choice of a team's messages, and its history as Markdown and as JSON.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from ..core import frame, instant, naming, proofs
from ..core.address import is_remote
from ..core.control import summary
from ..core.text import neutral, neutral_lines
from ..mailbox.mail_stream import stream
from . import format as form
from .mirror import team_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..core.message_reads import Reads
    from ..core.records import Message
    from ..core.roster import Roster
    from ..mailbox.mailbox import Mailbox

    Told = tuple[Message, Reads]
    """A message, and its reads."""


def mirrored_teams(mailbox: Mailbox) -> list[str]:
    """Return the teams with mirrored mail, oldest first."""
    found = (team_of(message) for message, _ in stream(mailbox))
    return list(dict.fromkeys(str(about["team"]) for about in found if about))


def history_of(mailbox: Mailbox, name: str) -> list[Told]:
    """Return a team's messages, oldest first, with their reads: mirrored ones, and mail between members and others."""
    ending, tag = f"@{naming.word(name)}", naming.tag(name)

    def is_its(message: Message) -> bool:
        about = team_of(message)
        if about is not None:
            return about["team"] == name
        parties = (*(() if is_remote(message.sender) else (message.sender,)), *message.recipients)
        return any(party == tag or party.endswith(ending) for party in parties)

    return [(message, reads) for message, reads in stream(mailbox) if is_its(message)]


def history_document(name: str, mail: Sequence[Told], style: str, roster: Roster) -> str:
    """Return the history as a document (``markdown`` or ``json``), in the order of the writers' instants: unseen mail
    came in late."""
    mail = sorted(mail, key=lambda told: _writers_instant(told[0]))
    return (
        _history_json(name, mail)
        if style == "json"
        else _history_markdown(name, [message for message, _ in mail], roster)
    )


def _message_object(message: Message) -> dict[str, Any]:
    about = team_of(message) or {}
    return {
        "from": about.get("from") or message.sender,
        "to": [about["inbox"]] if "inbox" in about else list(message.recipients),
        "at": _writers_instant(message),
        "protocol": message.metadata.get("protocol") if about else None,
    }


def _writers_instant(message: Message) -> str:
    """Return the writer's instant, if it is one; else when the message came here."""
    about = team_of(message) or {}
    try:
        return instant.text(instant.parse(str(about["timestamp"])))
    except (KeyError, ValueError):
        return instant.text(message.timestamp)


def _history_json(name: str, mail: Iterable[Told]) -> str:
    told = [
        {
            "id": m.id,
            **_message_object(m),
            "proof": proofs.told(m),
            "lead_session": (team_of(m) or {}).get("lead"),
            "subject": m.subject,
            "text": m.content,
            "native": team_of(m) is not None,
            "read_by": [read.session_id for read in reads.of(m.id)],
        }
        for m, reads in mail
    ]
    return json.dumps({"team": name, "messages": told}, ensure_ascii=True, indent=1) + "\n"


def _history_markdown(name: str, messages: Iterable[Message], roster: Roster) -> str:
    """Return Markdown with texts quoted verbatim: none can pass for a heading of ours, or do anything."""
    lines, lead = [f"# Team {_escape_inline(name)}", ""], None
    for m in messages:
        now = (team_of(m) or {}).get("lead") or lead
        if lead is not None and now != lead:
            lines += [f"# Team {_escape_inline(name)}, another, led by {_escape_inline(str(now))}", ""]
        lead = now
        said = _message_object(m)
        to = ", ".join(_escape_inline(str(party)) for party in said["to"])
        doubt = " (unverified)" if frame.is_unverified(m, roster) else ""
        lines += [f"## {said['at'][:19].replace('T', ' ')}Z, {_escape_inline(said['from'])}{doubt} → {to}", ""]
        observed = form.parse_protocol(m.content) if said["protocol"] else None
        if observed is not None:
            lines += [f"- {_escape_inline(summary.line(observed))}", ""]
            continue
        lines += [f"**{_escape_inline(m.subject)}**", ""] if m.subject else []
        lines += [*(f"> {line}".rstrip() for line in _code_block(m.content)), ""]
    return "\n".join(lines)


def _code_block(text: str) -> list[str]:
    """Return a text as a code block that nothing in it can end (CommonMark 4.5).

    As prose its HTML could end the quotation, and a reader's browser would fetch its pictures.
    """
    lines = neutral_lines(text)
    longest = max((len(run) for line in lines for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return [fence, *lines, fence]


def _escape_inline(text: str) -> str:
    """Return a text escaped for a line of Markdown."""
    return "".join(f"\\{c}" if c in "\\`*_[]<>#|!" else c for c in neutral(text))
