"""A tool call in a few words, for lists: what is done, and to what.

Belongs here: the words. ``calls`` has the whole call, by which a person decides. All of it is other people's text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from ..core.control import messages as m
from ..core.records import Record
from ..core.text import clipped
from . import presenters

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
}
"""Verbs by the names of tools; any other tool *is used*."""
PATHS = ("file_path", "notebook_path", "path")
FIELDS = ("command", "url", "query", "pattern")


class CallWords(Record):
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


def describe_call(tool: str, given: Any) -> CallWords:
    """Return a call in a few words."""
    fields = given if isinstance(given, dict) else {}
    verb, path = VERBS.get(tool, ""), path_of_call(fields)
    if verb and path:
        return CallWords(
            verb, _shorten(path.rpartition("/")[2] or path), _count_changes(tool, fields), _shorten(path, 300)
        )
    texts = [fields.get(name) for name in FIELDS] if verb else [*fields.values()]
    first = next((text for text in texts if isinstance(text, str) and text.strip()), "")
    lines = map(str.strip, first.splitlines())
    first = " ↵ ".join(filter(None, lines))  # two commands do not look like one
    return CallWords(verb or "uses", _shorten(first if verb and first else f"{tool} {first}"))


def describe_payload(payload: m.Payload, answerer: str) -> CallWords:
    """Return what a request asks; ``answerer``: the name of the agent that must answer it."""
    if isinstance(payload, m.PermissionRequest):
        given = payload.input if payload.input is not None else {"call": payload.arguments}
        return describe_call(payload.tool, given)
    if isinstance(payload, m.SandboxRequest):
        return CallWords(f"wants the {_shorten(payload.capability) or 'network'}", _shorten(", ".join(payload.hosts)))
    if isinstance(payload, m.ShutdownRequest):
        return CallWords(f"asks {answerer} to end its work")
    if isinstance(payload, m.PlanRequest):
        return CallWords(f"has a plan: {_shorten(payload.goal or payload.content)}")
    return CallWords("asks for approval")


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
