"""GitHub Copilot CLI's file of a session as evidence: what a hook gave the model, and what the person took back (as
seen with 1.0.102)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agent_mailbox.clients import client_input
from agent_mailbox.clients.hooks import events_file
from agent_mailbox.clients.hooks.events_file import LATE
from agent_mailbox.clients.transcript import ERASED, OPEN, PASSED, SEEN, SHOWN
from agent_mailbox.core import instant
from agent_mailbox.mailbox.delivery import Offer
from tests.helpers import READS, Post, each

if TYPE_CHECKING:
    from pathlib import Path

SESSION = "754aac82-e5d0-40da-8335-874e3b07ed58"
BEFORE, AT, AFTER = (f"2026-11-27T01:54:3{second}.000Z" for second in (1, 2, 3))
OFFER = Offer("1a2b3c", instant.parse(AT), 0, ("m",))
TEXT = "Agent mail 1a2b3c\nf11ef1fc x → all\n| hello"


def event(kind: str, at: str = AFTER, **data: Any) -> dict[str, Any]:
    """An event of the session."""
    return {"type": kind, "data": data, "timestamp": at}


def prompt(text: str, hooks: str = "", at: str = AFTER) -> dict[str, Any]:
    """A prompt, with what hooks said beside it."""
    beside = f"\n\n<system_reminder>\n{hooks}\n</system_reminder>" if hooks else ""
    return event("user.message", at, content=text, transformedContent=f"<current_datetime/>\n\n{text}{beside}")


def begins(text: str, at: str = AFTER) -> dict[str, Any]:
    """The start of a prompt's hook."""
    return event("hook.start", at, hookType="userPromptSubmitted", input={"prompt": text})


def used(text: str) -> dict[str, Any]:
    """A tool's result."""
    return event("tool.execution_complete", result={"content": text, "detailedContent": text})


SPOKE, SHOWS = event("assistant.message", content="DONE"), prompt("go on", TEXT)
SUBAGENT = {"agentId": "adb3429e"}
BEHIND = f'hi\n\nTool "bash" succeeded. Additional guidance from postToolUse hooks:\n{TEXT}'
CASES = (
    ([], OPEN),
    ([event("assistant.message", BEFORE)], OPEN),
    ([SPOKE], PASSED),
    ([SPOKE | SUBAGENT], OPEN),
    ([SHOWS], SHOWN),
    ([SHOWS | SUBAGENT, SPOKE], PASSED),
    ([SHOWS, event("session.error", message="400")], SHOWN),
    ([SHOWS, SPOKE | SUBAGENT], SHOWN),
    ([SHOWS, SPOKE], SEEN),
    ([begins("go on", BEFORE), SHOWS, SPOKE], SEEN),
    ([begins("go on", BEFORE)], OPEN),
    ([begins("next")], ERASED),
    ([begins(TEXT)], OPEN),
    ([begins(TEXT), prompt(TEXT), SPOKE], SEEN),
    ([event("hook.start", hookType="agentStop", input={})], OPEN),
    ([SPOKE, begins("next")], ERASED),
    ([begins("next"), SHOWS, SPOKE], SEEN),
    ([SHOWS, begins("next")], SHOWN),
    ([prompt(f"see:\n{TEXT}"), SPOKE], PASSED),
    ([prompt("go on", TEXT.replace("1a2b3c", "1a2b3d")), SPOKE], PASSED),
    ([event("hook.end", output={"additionalContext": TEXT}), SPOKE], PASSED),
    ([event("assistant.message", content=TEXT), SPOKE], PASSED),
    ([used(BEHIND)], SHOWN),
    ([used(BEHIND), SPOKE], SEEN),
    ([used(f"{BEHIND}\nAdditional guidance from postToolUse hooks:\nother"), SPOKE], PASSED),
    ([used(TEXT), SPOKE], PASSED),
    ([used("you, mail 1a2b3c\n| hello\nend of mail 1a2b3c: 8 characters\n"), SPOKE], SEEN),
    ([{"type": "user.message"}, {"type": 5, "data": []}, event("hook.start"), event("user.message")], OPEN),
)


@each("case", CASES)
def test_what_was_shown_what_was_seen_and_what_the_person_took_back(tmp_path: Path, case: Any) -> None:
    """Seen is what the model answered to. A prompt that was taken back is missing when the next one begins. Quotes by
    others, and a subagent's words, show nothing. Until the client wrote that it called us, it may write more."""
    lines, state = case
    path = tmp_path / "events.jsonl"
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines) + '{"type":"user.mes')
    more, then = LATE if state in (OPEN, SHOWN) else state, instant.parse(AFTER) + 1

    def states(path: Path, called: int = 0, *, begins: bool = False) -> Any:
        found = events_file.offer_states(str(path), [OFFER], called, begins=begins)
        return found and found["1a2b3c"]

    assert (states(path), states(path, then)) == (state, more)
    assert (states(path, then, begins=True), states(path, OFFER.time, begins=True)) == (state, LATE)
    none = tmp_path / "none"
    assert (states(none, then), states(none, then, begins=True), states(none / "x")) == (LATE, OPEN, None)


class Copilot:
    """The client, as far as hooks see it."""

    def __init__(self, post: Post) -> None:
        self.post = post
        self.path = post.home / f".copilot/session-state/{SESSION}/events.jsonl"
        self.path.parent.mkdir(parents=True)

    def hook(self, name: str, **how: Any) -> str:
        """A hook's text for the model."""
        said = {"session_id": SESSION, "timestamp": instant.text(self.shown() + 500), **how}
        done = self.post.call("hook", name, stdin=json.dumps(said), env={"COPILOT_CLI": "1"})
        answer = json.loads(done.stdout or "{}")
        return str(answer.get("additionalContext", answer.get("reason", "")))

    def shown(self) -> int:
        """When it was last shown mail."""
        return max((instant.parse(r["timestamp"]) for r in self.post.objects(READS)), default=instant.parse(AT))

    def write(self, *lines: dict[str, Any]) -> None:
        """Lines of the file, after whatever was shown."""
        with open(self.path, "a") as file:
            later = [{**line, "timestamp": instant.text(self.shown() + 1000)} for line in lines]
            file.writelines(json.dumps(line, separators=(",", ":")) + "\n" for line in later)

    def events(self) -> list[str]:
        """What the reads log says, in order."""
        return [r["event"] for r in self.post.objects(READS)]


def test_mail_beside_a_prompt_that_the_person_takes_back_comes_with_the_next_one(post: Post) -> None:
    """Escape, twice, takes the prompt from the file. So the next prompt's hook offers the mail again, once. At the
    turn's end it is seen. Before that the whole turn may still be taken back."""
    copilot = Copilot(post)
    copilot.hook("SessionStart", source="new")
    copilot.write(event("session.start"))
    sent = post.send("x", SESSION, "MAIL")
    text = copilot.hook("UserPromptSubmit", prompt="go on")
    copilot.write(begins("next"))
    again = copilot.hook("UserPromptSubmit", prompt="next")
    assert sent[:8] in text
    assert sent[:8] in again
    copilot.write(prompt("next", again), SPOKE)
    assert copilot.hook("PostToolUse", tool_name="Bash", tool_input={"command": "ls"}) == ""
    assert copilot.events() == ["read", "release", "read"], "the turn may still be taken back"
    assert copilot.hook("Stop") == ""
    assert copilot.events() == ["read", "release", "read", "seen"]


def test_a_session_that_was_killed_is_shown_what_its_file_lacks(post: Post) -> None:
    """The client writes late: killed, it knows nothing of its last prompt, or has a directory alone. What its file
    holds is replayed, and not shown again."""
    copilot = Copilot(post)
    copilot.hook("SessionStart", source="new")
    post.send("x", SESSION, "FIRST")
    assert "FIRST" in copilot.hook("UserPromptSubmit", prompt="one")
    copilot.hook("SessionStart", source="resume")
    held = copilot.hook("UserPromptSubmit", prompt="two")
    assert "FIRST" in held
    copilot.write(prompt("two", held))
    post.send("x", SESSION, "SECOND")
    assert "SECOND" in copilot.hook("PostToolUse", tool_name="Bash", tool_input={"command": "ls"})
    copilot.hook("SessionStart", source="resume")
    again = copilot.hook("UserPromptSubmit", prompt="three")
    assert ("FIRST" in again, "SECOND" in again) == (False, True)


@each("home", ("", "/elsewhere", "relative"))
def test_the_file_is_the_session_s_own_below_the_client_s_home(home: str) -> None:
    """Most hooks are not told it. No id of a session leads out of that directory."""
    environ = {"COPILOT_CLI": "1", "HOME": "/h", **({"COPILOT_HOME": home} if home else {})}
    said = {"session_id": SESSION, "timestamp": AT, "transcript_path": "/etc/passwd"}
    found = client_input.parse_call("Stop", said, environ, "/").conversation
    places = {"": f"/h/.copilot/session-state/{SESSION}/events.jsonl", "relative": ""}
    assert found == places.get(home, f"/elsewhere/session-state/{SESSION}/events.jsonl")
    assert client_input.parse_call("Stop", {**said, "session_id": "../x"}, environ, "/").conversation == ""
