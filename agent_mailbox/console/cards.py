"""Requests as cards, with everything they ask; and in a few words, for lists: what is done, and to what.

Belongs here: the fields of each kind of request, their labels, and the words. The card cuts nothing, because the person
decides by it; ``calls`` has the whole call. All of it is other people's text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from markupsafe import Markup

from ..core.control import authority, lasting, transitions
from ..core.control import messages as m
from ..core.control.control_requests import ControlRequest
from ..core.control.summary import QUESTIONS
from ..core.records import USER, Record
from ..core.roster import Roster
from ..core.text import clipped
from . import calls, markup, presenters
from .desk import Looking

SHORT = 70
"""Characters of what a call is about."""
VERBS = {
    "Edit": "edits",
    "MultiEdit": "edits",
    "NotebookEdit": "edits",
    "Write": "writes",
    "Read": "reads",
    "Bash": "runs",
    "shell": "runs",
    "exec_command": "runs",
    "WebFetch": "fetches",
    "WebSearch": "searches the web for",
    "Glob": "looks for",
    "Grep": "searches for",
    QUESTIONS: "asks",
}
"""Verbs by the names of tools; any other tool *is used*."""
PATHS = ("file_path", "notebook_path", "path")
FIELDS = ("command", "url", "query", "pattern", "question")


def make_card(now: Looking, request: ControlRequest) -> dict[str, Any]:
    """Return an open request as a card.

    ``mine``: the person may decide it. ``given``: the tool's input as JSON; ``call``: the same as one reviews it.
    ``expires``: the instant (ms) after which no answer counts, or None. ``always``: the rules that an approval may add.
    ``hosts``: it asks for some, which an approval may add. ``proven``: its writer is; else it can only be denied."""
    payload, roster, clock = request.payload, now.roster, now.mailbox.now()
    expires = payload.expires if isinstance(payload, m.Ask) else None
    given = getattr(payload, "input", None)
    return {
        "id": request.id,
        "flow": request.flow,
        "asker": presenters.party_name(request.asker, roster) + ("" if request.proven else " (unverified)"),
        "asker_id": request.asker,
        "deciders": ", ".join(presenters.party_name(who, roster) for who in request.list_deciders(roster)),
        "mine": may_decide(request, clock, roster),
        "asked": request.asked,
        "waits": presenters.elapsed_time(request.asked, clock),
        "until": "" if expires is None else presenters.local_moment(expires, clock),
        "expires": expires,
        "saying": describe_request(request, roster),
        "given": "" if given is None else calls.pretty_json(given),
        "call": calls.parts_of_call(getattr(payload, "tool", ""), given) if isinstance(given, dict) else (),
        "parts": [(name, what) for name, what in _payload_fields(payload).items() if what],
        "reason": presenters.one_line(getattr(payload, "reason", "")),
        "hosts": getattr(payload, "hosts", ()),
        "always": [*map(presenters.one_line, lasting.offered(payload))],
        "proven": request.proven,
    }


def may_decide(request: ControlRequest, now: int, roster: Roster) -> bool:
    """Return whether the person may decide a request; a shutdown is its worker's alone."""
    decides = request.flow in (transitions.PLAN, transitions.PERMISSION, transitions.SANDBOX)
    return decides and authority.commands(USER, request.asker, now, roster)


def describe_request(request: ControlRequest, roster: Roster) -> CardWords:
    """Return what a request asks in a few words, as the end of a sentence about its asker."""
    answerer = presenters.party_name(request.answerer, roster) if request.answerer else ""
    return describe_payload(request.payload, answerer)


def tell_request(request: ControlRequest, roster: Roster) -> str:
    """Return who asks what, in a few words: ``Cleo edits limits.py +3 −3``."""
    return f"{presenters.party_name(request.asker, roster)} {describe_request(request, roster).text}"


def _payload_fields(payload: m.Payload) -> Mapping[str, Markup | str]:
    """Return a request's other fields by their labels, without the tool's input."""
    if isinstance(payload, m.PlanRequest):
        return {
            "Goal": markup.html_of(payload.goal),
            "Plan": markup.html_of(payload.content),
            "Steps": markup.html_of(
                "\n".join(f"{n}. {presenters.one_line(step)}" for n, step in enumerate(payload.steps, 1))
            ),
            "Risks": markup.html_of("\n".join(f"- {presenters.one_line(risk)}" for risk in payload.risks)),
            "Tools": presenters.one_line(", ".join(payload.tooling)),
            "File": presenters.one_line(payload.file),
        }
    if isinstance(payload, m.SandboxRequest):
        hosts = presenters.one_line(", ".join(payload.hosts))
        return {"Hosts": hosts} if hosts else {"If you approve": "You say so, no more: the sandbox stays as it is."}
    if isinstance(payload, m.PermissionRequest) and payload.input is None:
        return {"Call": presenters.one_line(payload.arguments)}
    return {}


class CardWords(Record):
    """A call, or another request, in a few words: ``verb``, what it is about, and how many lines it changes. ``path``:
    the whole path of its file."""

    verb: str
    what: str = ""
    change: str = ""
    path: str = ""

    @property
    def text(self) -> str:
        """Return it as the end of a sentence."""
        return " ".join(filter(None, (self.verb, self.what, self.change)))


def describe_call(tool: str, given: Any) -> CardWords:
    fields = given if isinstance(given, dict) else {}
    if tool == QUESTIONS and isinstance(asked := fields.get("questions"), list):
        fields = {"question": "\n".join(_text_of(one.get("question")) for one in asked if isinstance(one, dict))}
    verb, path = VERBS.get(tool, ""), path_of_call(fields)
    if verb and path:
        return CardWords(
            verb, _shorten(path.rpartition("/")[2] or path), _count_changes(tool, fields), _shorten(path, 300)
        )
    texts = [fields.get(name) for name in FIELDS] if verb else [*fields.values()]
    first = next((text for text in texts if isinstance(text, str) and text.strip()), "")
    lines = map(str.strip, first.splitlines())
    first = " ↵ ".join(filter(None, lines))  # two commands do not look like one
    return CardWords(verb or "uses", _shorten(first if verb and first else f"{tool} {first}"))


def describe_payload(payload: m.Payload, answerer: str) -> CardWords:
    """Return what a request asks; ``answerer``: the name of the agent that must answer it."""
    if isinstance(payload, m.PermissionRequest):
        given = payload.input if payload.input is not None else {"call": payload.arguments}
        return describe_call(payload.tool, given)
    if isinstance(payload, m.SandboxRequest):
        return CardWords(f"wants the {_shorten(payload.capability) or 'network'}", _shorten(", ".join(payload.hosts)))
    if isinstance(payload, m.ShutdownRequest):
        return CardWords(f"asks {answerer} to end its work")
    if isinstance(payload, m.PlanRequest):
        return CardWords(f"has a plan: {_shorten(payload.goal or payload.content)}")
    return CardWords("asks for approval")


def path_of_call(given: Mapping[str, Any]) -> str:
    """Return the path of the file that a call is about; empty if there is none."""
    return next((given[name] for name in PATHS if isinstance(given.get(name), str) and given[name].strip()), "")


def _shorten(text: str, most: int = SHORT) -> str:
    return presenters.one_line(clipped(" ".join(text.split()), most))  # all of it: spaces hide no second command


def _count_changes(tool: str, given: Mapping[str, Any]) -> str:
    """Return the numbers of lines that come and go, as ``+3 −1``; without their order, so that counting is cheap."""
    come, go = Counter[str](), Counter[str]()
    for old, new in _texts_of(tool, given):
        go.update(old.split("\n") if old else ())
        come.update(new.split("\n") if new else ())
    added, gone = (come - go).total(), (go - come).total()
    return " ".join(([f"+{added}"] if added else []) + ([f"−{gone}"] if gone else []))


def _texts_of(tool: str, given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    edits = given.get("edits") if tool == "MultiEdit" else [given]
    for edit in edits if isinstance(edits, list) else []:
        if isinstance(edit, dict):
            new = edit.get("new_string", edit.get("content", edit.get("new_source")))
            yield _text_of(edit.get("old_string")), _text_of(new)


def _text_of(value: Any) -> str:
    return value if isinstance(value, str) else ""
