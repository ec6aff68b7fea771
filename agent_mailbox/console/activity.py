"""An agent's activity: its last steps as its client wrote them down, and in a few words, its present one.

Belongs here: from steps to what a page shows. The steps are other people's text: templates escape them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from ..core.session_steps import CALL, PROMPT, SAID, TOLD, Step
from ..core.text import clipped, visible_text
from ..store.attachments import conversation_files
from ..store.user_state import processes
from . import calls, markup, presenters
from .desk import Looking, Params

GLANCE = 1 << 17
"""Bytes of a conversation's end that tell the present step."""
SHORT = 120
"""Characters of a call in a line."""
BY = {PROMPT: "Prompt", TOLD: "Shown by a hook", SAID: "Said", CALL: "Call"}


def present_step(now: Looking, session_id: str) -> dict[str, Any] | None:
    """Return an agent's present step and when it began; None if its client keeps no conversation that we can read."""
    steps = _latest_steps(now, session_id, GLANCE)
    own = [step for step in steps or () if not step.is_aside]
    if not own:
        return None if steps is None else {"said": ""}
    last = own[-1]
    said = "has spoken" if last.kind == SAID else f"runs {_summarize_call(last)}" if _goes_on(last) else "works"
    return {
        "said": said,
        "at": last.at,
        "since": presenters.elapsed_time(last.at, now.mailbox.now()),
    }


def view_activity(now: Looking, params: Params) -> dict[str, Any]:
    """Return an agent's last steps."""
    agent, clock = now.roster.find(params.get("id", "")), now.mailbox.now()
    steps = _latest_steps(now, agent.session_id, conversation_files.LATEST)
    name = presenters.party_name(agent.session_id, now.roster)
    return {
        "title": f"Transcript of {name}",
        "name": name,
        "agent": agent.session_id,
        "deeds": [*_list_deeds(steps or (), clock)],
        "is_kept": steps is not None,
    }


def _list_deeds(steps: Sequence[Step], clock: int) -> Iterator[dict[str, Any]]:
    """Yield the steps as a page shows them. ``line``: a call in a few words; ``goes_on``: it has not ended."""
    alike: Counter[int] = Counter()
    for step in steps:
        is_call = step.kind == CALL
        yield {
            "key": f"{step.at}-{alike[step.at]}",
            "kind": step.kind,
            "by": BY[step.kind],
            "at": step.at,
            "moment": presenters.local_moment(step.at, clock),
            "body": "" if is_call or step.kind == TOLD else markup.html_of(step.text or ""),
            "line": _summarize_call(step) if is_call else "",
            "parts": calls.parts_of_call(step.tool, step.given or {}) if is_call else (),
            "outcome": visible_text(step.text or "") if is_call or step.kind == TOLD else "",
            "goes_on": _goes_on(step),
            "has_failed": step.has_failed,
            "is_aside": step.is_aside,
        }
        alike[step.at] += 1


def _goes_on(step: Step) -> bool:
    return step.kind == CALL and step.text is None


def _summarize_call(step: Step) -> str:
    """Return a call in a few words: the tool, and the first text of its input."""
    first = next((value for value in (step.given or {}).values() if isinstance(value, str) and value.strip()), "")
    return presenters.one_line(clipped(f"{step.tool} {' '.join(first.split())}".strip(), SHORT))


def _latest_steps(now: Looking, session_id: str, most: int) -> list[Step] | None:
    where = processes.find_whereabouts(session_id, now.mailbox.logs.stamp_files.kept())
    return conversation_files.latest(where.conversation, session_id, most) if where is not None else None
