"""Receipts and reminders through the hooks, against transcripts as the client writes them."""

from __future__ import annotations

import errno
import json
import os
import re
import resource
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.clients import transcript
from agent_mailbox.clients.client_input import ClientInput
from agent_mailbox.clients.hooks import receipt_rules
from agent_mailbox.mailbox.delivery import Offer
from agent_mailbox.mailbox.receipts import Settlement
from agent_mailbox.store.log import events
from agent_mailbox.store.log.logs import Logs
from tests.claude.test_hooks import ME, Client
from tests.helpers import MESSAGES, READS, Post, record, stamp

if TYPE_CHECKING:
    from pathlib import Path

DAY = 86_400_000


class Talk(Client):
    """A client that keeps a transcript."""

    def __init__(self, post: Post) -> None:
        super().__init__(post)
        self.path = post.scratch / "projects" / f"{ME}.jsonl"
        self.path.parent.mkdir()
        self.answers = 0

    def hook(self, event: str, **how: Any) -> Any:
        return super().hook(event, **{"transcript_path": str(self.path), **how})

    def write(self, **line: Any) -> None:
        """One line of the transcript."""
        own = {"isSidechain": False, "sessionId": ME, "timestamp": stamp()}
        with open(self.path, "a") as file:
            file.write(json.dumps({**own, **line}, separators=(",", ":")) + "\n")

    def keep(self, event: str, text: str, kind: str = "hook_additional_context", **line: Any) -> None:
        """The client takes what a hook told it into the conversation."""
        self.write(attachment={"type": kind, "content": [text], "hookEvent": event}, type="attachment", **line)

    def speak(self, answer: str | None = None, **line: Any) -> None:
        """The model says something, in the answer of that id."""
        self.answers += 1
        message = {"id": answer or f"msg_{self.answers}", "role": "assistant", "content": [{"type": "text"}]}
        self.write(**{"message": message, "type": "assistant", **line})

    def told(self, event: str, **how: Any) -> str:
        """A hook's text, taken into the conversation."""
        text = self.context(event, **how)
        if text:
            self.keep(event, text)
        return text

    def events(self) -> list[str]:
        """What the reads log says, in order."""
        return [r["event"] for r in self.post.objects(READS)]


@pytest.fixture
def talk(post: Post) -> Talk:
    """A client with a transcript, its session begun."""
    client = Talk(post)
    client.hook("SessionStart", env={"AGENT_MAILBOX_NAME": "Mona"})
    return client


def test_a_delivery_that_the_model_spoke_after_is_seen(talk: Talk) -> None:
    """Once, with its nonce, which both records bear; in show and thread."""
    sent = talk.post.send("x", ME)
    text = talk.told("UserPromptSubmit")
    talk.speak()
    assert talk.context("Stop") == ""
    offered, seen = talk.post.objects(READS)
    assert (offered["event"], seen["event"]) == ("read", "seen")
    assert offered["nonce"] == seen["nonce"] == re.match(r"Agent mail ([0-9a-f]{6})\n", text)[1]  # type: ignore[index]
    for event in ("Stop", "PreCompact", "UserPromptSubmit", "SessionEnd"):
        assert talk.hook(event).raw == b""
    assert talk.events() == ["read", "seen"]
    assert [r["event"] for r in talk.post.ok("show", sent)["receipts"]] == ["read", "seen"]
    assert talk.post.ok("thread", sent)["receipts"] == {sent: {ME: "seen"}}
    assert "Receipts: seen by Mona" in talk.post.call("thread", sent).stdout


def test_what_nobody_knows_of_is_only_offered(talk: Talk) -> None:
    """Shown, and the model has not spoken yet."""
    sent = talk.post.send("x", ME)
    talk.told("UserPromptSubmit")
    assert talk.post.ok("thread", sent)["receipts"] == {sent: {ME: "offered"}}
    shown = talk.post.call("show", sent).stdout
    assert re.search(r"^.*  offered  Mona", shown, re.MULTILINE)
    assert re.search(r"^ +reaches  Mona", shown, re.MULTILINE)
    assert "offered to Mona" in talk.post.call("history", "--all").stdout


@pytest.mark.parametrize(
    "how",
    [
        lambda t, text: t.write(type="user", message={"role": "user", "content": text}),
        lambda t, text: t.write(type="user", message={"content": [{"type": "tool_result", "content": text}]}),
        lambda t, text: t.speak(message={"id": "a", "content": [{"type": "text", "text": text}]}),
        lambda t, text: t.keep("UserPromptSubmit", text, "hook_success"),
        lambda t, text: t.keep("UserPromptSubmit", "\n".join(f"| {line}" for line in text.splitlines())),
        lambda t, text: t.keep("UserPromptSubmit", text.replace(text[11:17], "ffffff")),
        lambda t, text: t.write(type="attachment", attachment=text),
        lambda t, text: t.write(
            type="attachment", attachment={"type": "hook_additional_context", "content": {"a": text}}
        ),
    ],
    ids=["prompt", "tool", "model", "output", "behind a bar", "other nonce", "wrong kind", "wrong content"],
)
def test_quoting_is_not_seeing(talk: Talk, how: Any) -> None:
    """Wherever else the delivery's text is, the model was not shown it: it comes again as the turn ends."""
    sent = talk.post.send("x", ME)
    how(talk, talk.context("UserPromptSubmit"))
    talk.speak()
    assert sent[:8] in talk.told("Stop")
    talk.speak()
    assert talk.context("Stop", stop_hook_active=True) == ""
    assert talk.events() == ["read", "release", "read", "seen"]


def test_the_answer_in_which_it_was_shown_is_not_one_to_it(talk: Talk) -> None:
    """A tool's hook ran while the model was still speaking: the rest of that answer was not written after it."""
    talk.speak("msg_a")
    talk.post.send("x", ME)
    talk.told("PostToolUse")
    talk.speak("msg_a")
    assert talk.context("PostToolUse") == ""
    assert talk.events() == ["read"]
    talk.speak("msg_b", isSidechain=True)  # a subagent's word
    assert talk.context("PostToolUse") == ""
    assert talk.events() == ["read"]
    talk.speak("msg_b")
    assert talk.context("PostToolUse") == ""
    assert talk.events() == ["read", "seen"]


@pytest.mark.parametrize("whose", ["another", "", None, 5])
def test_lines_of_another_session_tell_nothing(talk: Talk, whose: Any) -> None:
    """A client that forks or resumes may copy lines: neither the words nor a hook's text among them are this
    session's."""
    sent = talk.post.send("x", ME)
    talk.told("UserPromptSubmit")
    talk.speak(sessionId=whose)
    assert talk.context("Stop") == ""
    assert talk.events() == ["read"]
    talk.speak()
    assert talk.context("Stop") == ""
    assert talk.events() == ["read", "seen"]
    other = talk.post.send("x", ME, "another")
    text = talk.context("UserPromptSubmit")
    talk.write(attachment={"type": "hook_additional_context", "content": [text]}, type="attachment", sessionId=whose)
    talk.speak()
    assert other[:8] in talk.told("Stop"), "it was not shown in this session"
    assert sent[:8] not in text


@pytest.mark.parametrize("source", ["resume", "compact", "startup"])
@pytest.mark.parametrize("kept", [True, False])
def test_a_session_that_comes_back_is_offered_what_its_transcript_lacks_and_nothing_else(
    talk: Talk, source: str, kept: bool
) -> None:
    """A client replays what the transcript holds, so that is not offered again. What the transcript lacks is, but by a
    compaction's start: its hook comes before the lines. Both hold without the derived files. The model's next word
    makes it seen."""
    for cached in (True, False):
        talk.speak()
        sent = talk.post.send("x", ME)
        assert sent[:8] in (talk.told if kept else talk.context)("UserPromptSubmit")
        if not cached:
            talk.post.file(".cache", "offers", ME).unlink()
        again = sent[:8] in talk.told("SessionStart", source=source, env={"CLAUDE_PID": f"2{cached:d}"})
        assert again == (not kept and source != "compact")
        talk.speak()
        if not kept and not again:
            assert sent[:8] in talk.told("Stop")
            talk.speak()
        assert talk.context("SessionStart", source=source) == ""
        assert talk.events()[-1] == "seen"


KEPT = {
    "all": {"uuids": ["u1"], "allUuids": ["u1", "u2"]},
    "not its line": {"uuids": ["u1", "u3"], "allUuids": ["u1", "u3"]},
    "nothing": None,
    "nonsense": {"uuids": "u2", "allUuids": 5},
}
"""What a compaction's line says of the lines that stay in the conversation (2.1.329)."""


@pytest.mark.parametrize("kept", KEPT)
@pytest.mark.parametrize("event", ["UserPromptSubmit", "PostToolBatch", "Stop"])
def test_a_compaction_takes_along_only_the_mail_that_its_line_does_not_name(talk: Talk, kept: str, event: str) -> None:
    """The client keeps the end of a conversation, and mail there is not shown twice. Its line comes behind our hook of
    that start. Mail elsewhere is offered again with the next hook."""
    talk.speak(uuid="u1")
    sent = talk.post.send("x", ME)
    first = "UserPromptSubmit" if event == "UserPromptSubmit" else "PostToolBatch"
    if first == "UserPromptSubmit":
        talk.write(type="user", uuid="u0", parentUuid="u1", message={"role": "user", "content": "first"})
    talk.keep(first, talk.context(first), uuid="u2", parentUuid="u1")
    assert talk.context("PreCompact") == ""
    assert sent[:8] not in talk.told("SessionStart", source="compact")
    about = {"trigger": "auto", "preservedMessages": KEPT[kept]} if KEPT[kept] else {"trigger": "auto"}
    talk.write(type="system", subtype="compact_boundary", uuid="u4", parentUuid=None, compactMetadata=about)
    summary = {"role": "user", "content": "This session is being continued from a previous conversation"}
    talk.write(type="user", uuid="u5", parentUuid="u4", isCompactSummary=True, message=summary)
    assert (sent[:8] in talk.told(event)) is (kept != "all")
    talk.speak()
    assert talk.context("Stop", stop_hook_active=True) == ""
    assert talk.events() == (["read", "seen"] if kept == "all" else ["read", "release", "read", "seen"])


def test_mail_that_was_answered_before_a_compaction_is_seen(talk: Talk) -> None:
    """Its line kept nothing. It sums up what the model knew."""
    talk.post.send("x", ME)
    talk.keep("UserPromptSubmit", talk.context("UserPromptSubmit"), uuid="u2")
    talk.speak(uuid="u3")
    talk.write(type="system", subtype="compact_boundary", uuid="u4", parentUuid=None, compactMetadata={})
    assert talk.context("Stop") == ""
    assert talk.events() == ["read", "seen"]


PROMPT: dict[str, Any] = {"type": "user", "message": {"role": "user", "content": "again"}}
RESULT: dict[str, Any] = {"type": "user", "message": {"content": [{"type": "tool_result", "content": "x"}]}}
REWINDS = {
    "to before it": (PROMPT | {"parentUuid": "u1"}, True),
    "to the beginning": (PROMPT | {"parentUuid": None}, True),
    "to behind it": (PROMPT | {"parentUuid": "u3"}, False),
    "a tool's result": (RESULT | {"parentUuid": "u1"}, False),
    "what a command expands to": (PROMPT | {"parentUuid": "u1", "isMeta": True}, False),
    "a subagent's": (PROMPT | {"parentUuid": "u1", "isSidechain": True}, False),
    "another session's": (PROMPT | {"parentUuid": "u1", "sessionId": "other"}, False),
    "without a line before": (PROMPT, False),
}
"""What follows the mail in the transcript, and whether its turn was rewound."""


@pytest.mark.parametrize("how", REWINDS)
@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit", "PostToolBatch"])
def test_mail_of_a_turn_that_was_rewound_is_offered_again_and_not_seen(talk: Talk, how: str, event: str) -> None:
    """The turn was interrupted before an answer, and ``/rewind`` took it back. The model's next word is none about its
    mail, which comes as the new turn ends."""
    line, is_rewound = REWINDS[how]
    talk.speak(uuid="u1")
    sent = talk.post.send("x", ME)
    talk.keep(event, talk.context(event), uuid="u2", parentUuid="u1")
    interrupted = {"role": "user", "content": [{"type": "text", "text": "[Request interrupted by user]"}]}
    talk.write(type="user", uuid="u3", parentUuid="u2", message=interrupted)
    talk.write(uuid="u4", **line)
    talk.speak(uuid="u5", parentUuid="u4")
    assert (sent[:8] in talk.told("Stop")) is is_rewound
    talk.speak()
    assert talk.context("Stop", stop_hook_active=True) == ""
    assert talk.events() == (["read", "release", "read", "seen"] if is_rewound else ["read", "seen"])


def test_a_session_that_comes_back_takes_back_what_its_transcript_holds_and_nobody_else_took(talk: Talk) -> None:
    """Unanswered role mail goes to another holder as the session ends. What none took is the session's again, silently.
    What another took is not. What an agent gave back itself is shown again."""
    post = talk.post
    post.ok("roster", "update", "--session-id", ME, "--role", "architect")
    role, own, left = post.send("x", "role:architect"), post.send("x", ME), post.send("x", "role:architect", "second")
    told = talk.told("UserPromptSubmit")
    assert all(one[:8] in told for one in (role, own, left))
    post.register("other", "--role", "architect")
    talk.hook("SessionEnd")
    assert post.check("other", "--limit", "1") == [role]
    assert not any(one[:8] in talk.context("SessionStart", source="resume") for one in (role, own, left))
    talk.speak()
    assert talk.context("Stop") == ""
    stages = {one: post.ok("thread", one)["receipts"][one] for one in (role, own, left)}
    assert stages == {role: {"other": "read"}, own: {ME: "seen"}, left: {ME: "seen"}}
    post.ok("release", own, "--session", ME)
    talk.hook("SessionEnd")
    assert own[:8] in talk.context("SessionStart", source="resume")


def test_of_several_deliveries_the_last_is_taken_back(talk: Talk) -> None:
    """The transcript lacks the first one, so the mail was offered once more, and that one is in it.

    Who took role mail back is proven like who read it."""
    talk.post.ok("roster", "update", "--session-id", ME, "--role", "architect")
    talk.speak()
    sent = talk.post.send("x", "role:architect")
    assert sent[:8] in talk.context("UserPromptSubmit")
    talk.speak()
    assert sent[:8] in talk.told("Stop")
    talk.hook("SessionEnd")
    assert talk.events() == ["claim", "read", "release", "claim", "read", "release"]
    assert talk.context("SessionStart", source="resume") == ""
    assert all("seal" in record for record in talk.post.objects(READS)), "a reader of role mail is proven"


def test_two_hooks_of_one_start_show_mail_once(talk: Talk) -> None:
    """Plugin and settings both call: the transcript does not have the first one's text yet. A start of another client
    offers it again."""
    talk.speak()
    sent = talk.post.send("x", ME)
    assert sent[:8] in talk.context("SessionStart", source="resume")
    assert talk.context("SessionStart", source="resume") == ""
    assert sent[:8] in talk.context("SessionStart", source="resume", env={"CLAUDE_PID": "2"})


def test_an_error_of_the_api_is_no_word_of_the_model(talk: Talk) -> None:
    """The client writes it in the model's place: nobody has seen anything."""
    sent = talk.post.send("x", ME)
    talk.told("UserPromptSubmit")
    talk.speak(message={"id": "e", "model": "<synthetic>", "role": "assistant", "content": []}, isApiErrorMessage=True)
    assert talk.context("UserPromptSubmit") == ""
    assert talk.events() == ["read"]
    talk.write(type="user", message={"role": "user", "content": "again"})  # the conversation still holds it
    talk.speak()
    assert talk.context("Stop") == ""
    assert talk.events() == ["read", "seen"]
    talk.post.send("x", ME, "second")
    talk.told("UserPromptSubmit")
    talk.speak(message={"id": "f", "model": "<synthetic>", "role": "assistant", "content": []})
    talk.hook("SessionEnd")
    assert talk.events() == ["read", "seen", "read", "release"]
    assert sent[:8] not in talk.context("SessionStart", source="resume")


@pytest.mark.parametrize("interrupted", [True, False])
def test_a_prompt_that_was_taken_back_took_its_mail_along(talk: Talk, interrupted: bool) -> None:
    """Escape before a word of the answer: the prompt is never sent again, its mail comes with the turn's end. A prompt
    that stays in the conversation, interrupted, keeps its mail."""
    sent = talk.post.send("x", ME)
    talk.write(type="user", message={"role": "user", "content": "first"})
    talk.told("UserPromptSubmit")
    talk.write(type="user", isMeta=True, message={"role": "user", "content": "what a command expands to"})
    if interrupted:
        talk.write(type="user", message={"role": "user", "content": [{"text": "[Request interrupted by user]"}]})
    assert talk.context("UserPromptSubmit") == ""
    talk.write(type="user", message={"role": "user", "content": "second"})
    talk.speak()
    assert (sent[:8] in talk.told("Stop")) is not interrupted
    assert talk.events() == (["read", "seen"] if interrupted else ["read", "release", "read"])


@pytest.mark.parametrize("event", ["UserPromptSubmit", "Stop"])
def test_the_turn_of_another_terminal_does_not_prove_mail_seen(talk: Talk, event: str) -> None:
    """Two terminals resumed one session, and write one transcript. One is told its mail. The other's answers belong to
    a turn that began before, and lack it. Only the model's words behind that mail prove it."""
    talk.write(type="user", uuid="prompt", parentUuid=None, message={"role": "user", "content": "first"})
    talk.post.send("x", ME)
    talk.keep(event, talk.context(event), uuid="mail", parentUuid="prompt")
    talk.speak(uuid="beside", parentUuid="prompt")
    talk.speak(uuid="beside too", parentUuid="beside")
    assert talk.context("Stop") == ""
    assert talk.events() == ["read"]
    talk.write(type="system", uuid="between", parentUuid="mail")
    talk.speak(uuid="answer", parentUuid="between")
    assert talk.context("Stop") == ""
    assert talk.events() == ["read", "seen"]


def test_a_transcript_that_is_not_the_one_of_the_offer_is_read_from_its_beginning(talk: Talk) -> None:
    """A session that is resumed elsewhere has another, shorter file; a line may be longer than what is read at once."""
    talk.write(type="user", message="x" * 3_000_000)
    sent = talk.post.send("x", ME)
    text = talk.context("UserPromptSubmit")
    talk.path.unlink()
    talk.keep("UserPromptSubmit", text)
    talk.write(type="system", message="x" * 2_000_000)
    talk.speak()
    assert talk.context("SessionStart", source="resume") == ""
    assert talk.post.ok("thread", sent)["receipts"] == {sent: {ME: "seen"}}


def test_a_transcript_that_is_cut_anywhere_holds_what_its_client_can_read(talk: Talk) -> None:
    """A crash leaves any number of bytes. A line counts once its JSON is whole, with a line break or without: so does
    the client take it (2.1.329). What is cut off is offered again, and nothing else."""
    talk.write(type="user", message={"role": "user", "content": "first"})
    talk.post.send("x", ME, "line\nof text")
    talk.told("UserPromptSubmit")
    begins = talk.path.stat().st_size
    talk.speak()
    whole = talk.path.read_bytes()
    offer = Offer(talk.post.objects(READS)[0]["nonce"], 1, 0, ("m",))
    for at in range(whole.index(b"attachment") - 20, len(whole) + 1):
        talk.path.write_bytes(whole[:at])
        shown = transcript.SEEN if at >= len(whole) - 1 else transcript.SHOWN if at >= begins - 1 else transcript.OPEN
        assert transcript.offer_states(str(talk.path), ME, [offer]) == {offer.nonce: shown}, whole[:at][-80:]


@pytest.mark.parametrize("left", [0, 1, 2, 40])
def test_a_session_that_comes_back_to_a_cut_transcript_has_its_mail_once(talk: Talk, left: int) -> None:
    """Killed before an answer, its file lacks some bytes at the end. The client goes on behind what is left of the
    line, on a line of its own."""
    talk.speak()
    sent = talk.post.send("x", ME)
    talk.told("UserPromptSubmit")
    whole = talk.path.read_bytes()
    talk.path.write_bytes(whole[: len(whole) - left])
    told = talk.context("SessionStart", source="resume", env={"CLAUDE_PID": "2"})
    assert (sent[:8] in told) is (left > 1)
    if left:
        talk.path.write_bytes(talk.path.read_bytes() + b"\n")
    if told:
        talk.keep("SessionStart", told)
    talk.speak()
    assert talk.context("Stop") == ""
    assert talk.events() == (["read", "release", "read", "seen"] if left > 1 else ["read", "seen"])


def test_what_the_client_has_not_written_yet_is_looked_for_with_the_next_prompt(talk: Talk) -> None:
    """The turn ends before its last words are in the file: no stamp keeps the next hook from finding them."""
    talk.post.send("x", ME)
    talk.told("UserPromptSubmit")
    assert talk.context("Stop") == ""
    talk.speak()
    assert talk.context("UserPromptSubmit") == ""
    assert talk.events() == ["read", "seen"]


def test_an_id_of_any_text_is_offered_and_seen(talk: Talk) -> None:
    """A foreign program's ids are its own business."""
    odd = "tab\tline\nend"
    with open(talk.post.file(MESSAGES), "a") as log:
        log.write(json.dumps(record(id=odd, recipient=ME)) + "\n")
    assert "| foreign" in talk.told("UserPromptSubmit")
    talk.speak()
    assert talk.context("Stop") == ""
    assert talk.events() == ["read", "seen"]


def test_a_client_within_claude_code_is_not_taken_for_it(talk: Talk) -> None:
    """It has the outer one's variables, and another's session in them; what it calls a transcript is no such thing."""
    inner: dict[str, Any] = {"session_id": "inner", "env": {"CLAUDE_CODE_SESSION_ID": ME}}
    talk.hook("SessionStart", **inner)
    talk.post.send("x", "inner")
    assert talk.context("UserPromptSubmit", **inner).startswith("Agent mail\n")
    talk.post.send("x", "inner")
    assert json.loads(talk.hook("Stop", **inner).raw)["decision"] == "block"


def test_a_session_closed_before_a_word_was_said_gives_back_what_it_was_shown(talk: Talk) -> None:
    """Its role's mail goes to the other holder at once; its own waits for it."""
    talk.post.register("other", "--role", "architect")
    talk.post.ok("roster", "update", "--session-id", ME, "--role", "architect")
    role, own = talk.post.send("x", "role:architect"), talk.post.send("x", ME)
    assert role[:8] in talk.context("UserPromptSubmit")
    talk.hook("SessionEnd")
    assert talk.post.check("other") == [role]
    assert own[:8] in talk.context("SessionStart", source="resume")


def test_every_delivery_before_a_word_is_known_to_be_seen_after_it(talk: Talk) -> None:
    """The second does not make the first forgotten."""
    sent = []
    for event in ("UserPromptSubmit", "PostToolUse"):
        sent.append(talk.post.send("x", ME))
        assert sent[-1][:8] in talk.told(event)
    talk.speak()
    assert talk.context("Stop") == ""
    assert [(r["event"], r["message_id"]) for r in talk.post.objects(READS)[2:]] == [("seen", one) for one in sent]


def test_what_is_given_back_is_nothing_quiet_to_who_may_have_it_now(talk: Talk) -> None:
    """The other holder of a role had nothing to read, and its guard said so, until this session dropped the mail."""
    post = talk.post
    post.ok("roster", "update", "--session-id", ME, "--role", "builder")
    post.register("bob", "--role", "builder")
    sent = post.send("x", "role:builder")
    assert sent[:8] in talk.context("UserPromptSubmit")
    assert post.check("bob") == []
    quiet = post.file(".cache", "quiet", "bob")
    assert quiet.exists()
    talk.hook("SessionEnd")
    assert talk.events() == ["claim", "read", "release"]
    assert not quiet.exists()
    assert post.unread("bob") == [sent]


def test_a_client_without_transcripts_is_not_shown_anything_twice(talk: Talk) -> None:
    """Nothing can be told, so nothing is: no receipt, and no second offer."""
    talk.post.send("x", ME)
    assert talk.context("UserPromptSubmit") != ""
    assert talk.context("Stop") == ""
    assert talk.events() == ["read"]
    talk.hook("SessionEnd")
    assert talk.context("SessionStart", source="resume", transcript_path="/nowhere/at/all.jsonl") == ""
    talk.post.send("x", ME)
    assert talk.context("UserPromptSubmit", env={"CLAUDECODE": None}).startswith("Agent mail\n")
    assert "nonce" not in talk.post.objects(READS)[-1]


def test_what_was_acked_meanwhile_is_not_given_back(talk: Talk) -> None:
    """The client dropped it, and yet the model dealt with it: by the log, or a person's word."""
    sent = talk.post.send("x", ME, "hello", "--ack")
    talk.context("UserPromptSubmit")
    talk.post.ok("ack", sent, "--session", ME)
    talk.speak()
    assert talk.context("Stop") == ""
    assert talk.events() == ["read", "ack"]


def test_an_unconfirmed_delivery_keeps_the_guard_from_saying_nothing_and_a_confirmed_one_does_not(talk: Talk) -> None:
    """Python looks until the transcript has told; from then on the shell answers."""
    quiet = talk.post.file(".cache", "quiet", ME)
    talk.post.send("x", ME)
    talk.told("UserPromptSubmit")
    assert not quiet.exists()
    talk.context("PostToolUse")
    assert not quiet.exists()
    talk.speak()
    talk.context("PostToolUse")
    assert quiet.exists()


def test_a_check_leaves_the_guard_in_doubt_while_a_delivery_is(talk: Talk) -> None:
    """The client dropped the mail. The agent looks for more by a command, and the turn's end brings it again."""
    talk.post.send("x", ME, "dropped by the client")
    talk.context("UserPromptSubmit")
    assert talk.post.ok("check", "--session", ME)["count"] == 0
    assert not talk.post.file(".cache", "quiet", ME).exists()
    talk.speak()
    assert "dropped by the client" in talk.context("Stop")


def test_a_killed_hook_s_list_is_looked_up_in_the_log(talk: Talk) -> None:
    """It was written, and not sealed: mail that the client drops is told again at the turn's end."""
    talk.speak()
    sent = talk.post.send("x", ME)
    assert sent[:8] in talk.context("UserPromptSubmit")
    os.utime(talk.post.file(".cache", "offers", ME), (1, 1))
    assert talk.context("UserPromptSubmit") == ""
    talk.speak()
    assert sent[:8] in str(talk.hook("Stop"))


def test_a_start_that_finds_the_log_locked_leaves_what_it_recalled_to_the_next_hook(talk: Talk) -> None:
    """The list of offers was lost, and a steward holds the log: the mail that the client dropped comes all the same."""
    talk.post.send("x", ME, "MAIL_DROPPED")
    assert "MAIL_DROPPED" in talk.context("UserPromptSubmit")  # the client takes none of it into the conversation
    talk.post.file(".cache", "offers", ME).unlink()
    talk.speak()
    with Logs(str(talk.post.box)).reads.held():
        assert "MAIL_DROPPED" not in talk.context("SessionStart", source="resume")
    assert "MAIL_DROPPED" in str(talk.hook("Stop"))


@pytest.mark.parametrize(("number", "concludes"), [(errno.EMFILE, False), (errno.EACCES, True)])
def test_a_transcript_that_cannot_be_read_for_the_moment_tells_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, concludes: bool
) -> None:
    """A later event may read it. One that stays closed to us is like none."""

    def refuse(*_: object) -> int:
        raise OSError(number, "no")

    monkeypatch.setattr(transcript.system, "open", refuse)
    call = ClientInput(event="Stop", session_id=ME, cwd="/", conversation=str(tmp_path / "t.jsonl"))
    settlement = receipt_rules.make_judge(call, "")([Offer("abcdef", 1, 0, ("m",))])
    assert settlement == Settlement(unknown=frozenset(["abcdef"] if concludes else []))


def test_a_transcript_of_anything_breaks_nothing(talk: Talk, tmp_path: Path) -> None:
    """Torn, binary, deep, a directory, a device: the mail is delivered all the same."""
    for n, data in enumerate((b"\xff\xfe\n", b'{"type":"assistant"', b"[" * 100_000, b'{"type":"assistant"}\n[]\n')):
        sent = talk.post.send("x", ME, str(n))
        talk.path.write_bytes(data)
        assert sent[:8] in talk.context("UserPromptSubmit")
        talk.context("PostToolUse")
    for path in (tmp_path, "/dev/full", "/dev/null", "\0", ""):
        sent = talk.post.send("x", ME)
        assert sent[:8] in talk.context("UserPromptSubmit", transcript_path=str(path))
        talk.hook("PreCompact", transcript_path=str(path))


# -- what is owed -----------------------------------------------------------------------------------------------------


def test_obligations_come_back_with_a_word_on_their_staleness(talk: Talk) -> None:
    """Owed and asked, by id and title; a fresh session, and one that owes nothing, is told of none."""
    post = talk.post
    post.register("gone")
    post.register("ann", "--name", "Ann", "--role", "builder")
    mail = {
        "fresh": post.send("ann", ME, "a fresh one", "--ack", "--subject", 'say "yes"'),
        "gone": post.send("gone", ME, "from the dead\nline", "--ack"),
        "superseded": post.send("ann", ME, "an old one", "--ack"),
        "answered": post.send("ann", ME, "a third", "--ack"),
    }
    asked = post.send(ME, "ann", "my question", "--ack")
    talk.told("UserPromptSubmit")
    talk.speak()
    post.ok("reply", mail["answered"], "--from", ME, "--body", "done")
    post.ok("roster", "retire", "gone")
    post.send("ann", ME, "newer", "--thread", mail["superseded"])
    talk.told("UserPromptSubmit")
    talk.speak()
    for source in ("compact", "resume", "clear"):
        assert talk.context("SessionStart", source=source).splitlines() == [
            "agent-mailbox: this session is Mona",
            f"You owe an answer ({_program()} reply ID, or ack ID):",
            f"{mail['fresh'][:8]} from Ann (builder): \"say 'yes'\"",
            f'{mail["gone"][:8]} from gone: "from the dead line" (sender gone)',
            f'{mail["superseded"][:8]} from Ann (builder): "an old one" (superseded)',
            "You asked, and nobody answered yet:",
            f'{asked[:8]} to Ann: "my question"',
        ]
    who, tree = talk.context("SessionStart", session_id="another", source="startup").splitlines()
    assert who.startswith("agent-mailbox: you are ")
    assert tree.startswith("agent-mailbox: Mona also works in this tree")


def test_what_is_owed_is_found_however_foreign_programs_spell_it(talk: Talk) -> None:
    """Their ask is owed, and their reply and their ack settle what they were asked, spaces and escapes and all."""
    post = talk.post
    post.register("ann")
    asked = [post.send(ME, "ann", body, "--ack") for body in ("replied to", "acked", "open")]
    mine, odd = record("ann", ME, "foreign ask", ack=True), record("ann", ME, "odd ask", ack=True)
    with open(post.file(MESSAGES), "a") as log:
        log.write(json.dumps(mine) + "\n" + json.dumps(odd).replace('"ack"', '"\\u0061ck"') + "\n")
        log.write(json.dumps(record("ann", ME, "a reply", thread=asked[0])) + "\n")
    read = {"message_id": asked[1], "reader_session_id": "ann", "timestamp": stamp(), "event": "ack"}
    with open(post.file(READS), "a") as log:
        log.write(json.dumps(read).replace('"ack"', '"\\u0061ck"') + "\n")
    talk.told("UserPromptSubmit")
    talk.speak()
    lines = talk.context("SessionStart", source="compact").splitlines()
    named = [line[:8] for line in lines if " from " in line or " to " in line]
    assert named == [mine["id"][:8], odd["id"][:8], asked[2][:8]]


def _program() -> str:
    """How an agent starts ours, as these tests run."""
    from agent_mailbox.commands.hook_command import program_call

    return program_call("")


def test_many_obligations_are_counted_not_listed(talk: Talk) -> None:
    """The latest five, and where the rest is."""
    sent = [talk.post.send("x", ME, f"n{n}", "--ack") for n in range(8)]
    talk.told("UserPromptSubmit")
    talk.speak()
    lines = talk.context("SessionStart", source="compact").splitlines()
    assert [line[:8] for line in lines[2:7]] == [i[:8] for i in sent[3:]]
    assert re.fullmatch(r"3 more: .*agent-mailbox status", lines[7])
    assert len(lines) == 8


# -- by title ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def titles(talk: Talk) -> list[str]:
    """The ids of eight messages that ask for an ack; the model went on after a hook with room for some of the texts."""
    talk.post.register("ann")
    talk.post.file("config.toml").write_text("[hook]\ntokens = 500\n")
    body = "word " * 100
    batch = "\n".join(json.dumps({"recipient": ME, "content": f"{n} {body}", "ack": True}) for n in range(8))
    sent: list[str] = talk.post.ok("send", "--jsonl", "-", "--from", "ann", stdin=batch)["ids"]
    text = talk.told("UserPromptSubmit")
    assert [i[:8] in text for i in sent] == [True] * 8
    by_text = {i for n, i in enumerate(sent) if f"{n} {body.strip()}" in text}
    assert {r["message_id"] for r in talk.post.objects(READS) if "title" not in r} == by_text
    talk.speak()
    assert talk.context("Stop") == ""
    return sent


def test_receipts_tell_what_was_seen_from_what_was_seen_by_title(talk: Talk, titles: list[str]) -> None:
    """Every listing, as text and as JSON, tells whether an agent saw a message in full or by title."""
    stages = {i: talk.post.ok("thread", i)["receipts"][i][ME] for i in titles}
    by_title = [i for i in titles if stages[i] == "seen by title"]
    assert {*stages.values()} == {"seen", "seen by title"}
    assert len(by_title) > 4
    full, title = ("", "seen by", "seen by"), (" by title", "title seen by", "title seen by")
    for i, words in ((titles[0], full), (by_title[0], title)):
        receipts = talk.post.ok("show", i)["receipts"]
        assert [(r["event"], r["by_title"]) for r in receipts] == [(e, i in by_title) for e in ("read", "seen")]
        shown = talk.post.call("show", i).stdout
        for event in ("offered", "seen"):
            assert re.search(rf"^\S+ \S+  {event}{words[0]} +Mona", shown, re.MULTILINE), shown
        assert f"Receipts: {words[1]} Mona" in talk.post.call("thread", i).stdout
        line = next(line for line in talk.post.call("history", "--all").stdout.splitlines() if line.startswith(i[:8]))
        assert line.endswith(f"{words[2]} Mona")


@pytest.mark.parametrize("verb", ["show", "thread"])
def test_who_asks_for_the_text_of_a_title_has_seen_it(talk: Talk, titles: list[str], verb: str) -> None:
    """Its own session alone, and once; nobody else's look counts for it."""
    by_title = titles[-1]
    for env in ({}, {"CLAUDE_CODE_SESSION_ID": "ann"}):
        assert talk.post.call(verb, by_title, env=env).rc == 0
    before = talk.events()
    assert talk.post.ok("thread", by_title)["receipts"] == {by_title: {ME: "seen by title"}}
    for _ in range(2):
        assert talk.post.call(verb, by_title, env={"CLAUDE_CODE_SESSION_ID": ME}).rc == 0
    assert talk.events() == [*before, "read"]
    assert talk.post.ok("thread", by_title)["receipts"] == {by_title: {ME: "read"}}
    assert [m["id"] for m in talk.post.ok("status", "--session", ME)["obligations"]] == titles


def test_a_session_that_dies_gives_back_what_it_knew_by_title(talk: Talk, titles: list[str]) -> None:
    """The sender learns that nobody read it; the texts that it saw are none of that."""
    seen = [i for i in titles if talk.post.ok("thread", i)["receipts"][i][ME] == "seen"]
    talk.post.ok("roster", "retire", ME)
    letters = talk.post.ok("dead-letters", "--session", "ann")["messages"]
    assert [(m["id"], m["reason"]) for m in letters] == [(i, "recipient_dead") for i in titles if i not in seen]
    assert 0 < len(seen) < 4
    assert {r["message_id"] for r in talk.post.objects(READS) if r["event"] == "release"} == {*titles} - {*seen}


def test_a_look_that_cannot_be_recorded_is_a_look(talk: Talk, titles: list[str]) -> None:
    """The text is there, and one line says why its sender will not know."""
    reads = talk.post.file(READS)
    kept = reads.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(kept), limits[1]))  # the log may not grow
    try:
        done = talk.post.call("show", titles[-1], env={"CLAUDE_CODE_SESSION_ID": ME})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (done.rc, "word word" in done.stdout) == (0, True)
    assert done.stderr.startswith("warning: the receipt was not recorded: ")
    assert reads.read_bytes() == kept


# -- mute -------------------------------------------------------------------------------------------------------------


def test_a_muted_sender_is_not_shown_by_hooks_and_stays_unread(talk: Talk) -> None:
    """Under whatever name it goes on; control and the person are heard; a check shows it all; taken back, it comes."""
    post = talk.post
    post.register("noisy", "--name", "Noise")
    assert post.ok("mute", "Noise", "--session", ME)["agent"]["muted"] == ["noisy"]
    sent = post.send("noisy", ME)
    assert talk.context("UserPromptSubmit") == ""
    assert post.file(".cache", "quiet", ME).exists()
    assert post.doctor() == []
    post.ok("roster", "retire", "noisy")
    post.register("noisy-2", "--name", "Noise")
    again = post.send("noisy-2", ME)
    control = post.send("noisy-2", ME, '{"type": "idle_notification"}', "--type", "control")
    person, other = post.send("user", ME), post.send("x", ME)
    text = talk.context("UserPromptSubmit")
    assert [i[:8] in text for i in (sent, again, control, person, other)] == [False, False, True, True, True]
    assert post.unread(ME) == [sent, again]
    assert "muted" in post.call("roster", "show", ME).stdout
    assert "muted" not in post.ok("unmute", "noisy", "--session", ME)["agent"]
    assert sent[:8] in talk.context("UserPromptSubmit")


def test_a_mute_survives_a_clear_and_a_compaction_of_the_roster(talk: Talk) -> None:
    """It is part of who the agent is."""
    post = talk.post
    post.register("noisy")
    post.ok("mute", "noisy", "--session", ME)
    talk.hook("SessionEnd", reason="clear")
    talk.hook("SessionStart", session_id="next", source="clear")
    for n in range(60):
        post.ok("roster", "update", "--session-id", "noisy", "--add-tags", f"domain:d{n}")
    post.ok("steward", "run", "--max-live", "1")
    assert talk.agent("next")["muted"] == ["noisy"]


@pytest.mark.parametrize("whom", ["user", ME])
def test_neither_the_person_nor_oneself_can_be_muted(talk: Talk, whom: str) -> None:
    """Said plainly."""
    result = talk.post.call("mute", whom, "--session", ME)
    assert (result.rc, result.stderr.splitlines()[0]) == (1, "error: the person and oneself cannot be muted")


# -- cost -------------------------------------------------------------------------------------------------------------


def test_status_tells_what_hooks_spent(talk: Talk) -> None:
    """``status --cost`` tells the tokens that hooks spent, by sender and mode. It counts four characters as one
    token."""
    talk.post.send("ann", ME, "word " * 40)
    talk.post.send("bob", "all", "short")
    text = "UserPromptSubmit hook additional context: " + talk.context("UserPromptSubmit")
    cost = talk.post.ok("status", "--session", ME, "--cost")["cost"]
    assert [(c["sender"], c["mode"], c["messages"]) for c in cost] == [("ann", "direct", 1), ("bob", "broadcast", 1)]
    assert abs(sum(c["tokens"] for c in cost) - len(text) / 4) <= 2
    assert "tokens that hooks spent on mail" in talk.post.call("status", "--session", ME, "--cost").stdout
    assert "cost" not in talk.post.ok("status", "--session", ME)


def test_archived_mail_is_in_every_answer_as_live_mail_was(talk: Talk) -> None:
    """The steward moves all of it. What was asked about it before has the same answer: its cost, its readers, its
    words, its thread. A successor is told what the session's own mail cost, too."""
    post = talk.post
    asked = post.send("ann", ME, "word " * 40, "--ack")
    talk.told("UserPromptSubmit")
    talk.speak()
    answer = post.ok("reply", asked, "--from", ME, "--body", "an answer")["message"]["id"]
    assert post.check("ann") == [answer]
    questions = (
        ("history", "--session", ME), ("history", "--all", "--with", "ann"), ("search", "word"), ("thread", answer),
        ("show", asked), ("export",), ("dead-letters", "--all"),
    )  # fmt: skip
    before = [post.call(*words).stdout for words in questions]
    cost = post.ok("status", "--session", ME, "--cost")["cost"]
    assert [one["messages"] for one in cost] == [1]
    assert post.ok("steward", "run", "--max-live", "0")["kept"] == 0
    assert [post.call(*words).stdout for words in questions] == before
    assert post.ok("status", "--session", ME, "--cost")["cost"] == cost
    talk.hook("SessionEnd", reason="clear")
    talk.hook("SessionStart", session_id="next", source="clear")
    assert post.ok("status", "--session", "next", "--cost")["cost"] == cost


def test_wakes_are_counted_though_telemetry_began_anew(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log before the present one is kept, and a successor's count has those of the session before it."""
    logs = Logs(str(talk.post.box))
    monkeypatch.setattr(events, "LIMIT", 100)
    for who in (ME, "other"):
        events.note_wake(logs, who, 1, 7)
    talk.post.ok("steward", "run")
    events.note_wake(logs, ME, 2, 7)
    for who in (ME, "next"):
        assert talk.post.ok("status", "--session", who, "--cost")["wakes"] == {"count": 2, "tokens": 14}
        talk.hook("SessionEnd", reason="clear")
        talk.hook("SessionStart", session_id="next", source="clear")


# -- a check below a client -------------------------------------------------------------------------------------------


class Checking:
    """A session's own ``check``, as its client's shell tool runs it."""

    def __init__(self, talk: Talk) -> None:
        self.talk = talk
        talk.speak()

    def run(self, *words: str) -> Any:
        """The command below the client."""
        done = self.talk.post.call(*(words or ("check",)), env={"CLAUDE_CODE_SESSION_ID": ME})
        assert done.rc == 0, done
        return done

    def result(self, text: str, **line: Any) -> None:
        """The client gives the model a tool's output."""
        block = {"type": "tool_result", "tool_use_id": "toolu_1", "content": text.strip()}
        self.talk.write(type="user", message={"role": "user", "content": [block]}, **line)


@pytest.fixture
def checking(talk: Talk) -> Checking:
    """A session in the midst of a turn."""
    return Checking(talk)


def test_a_check_whose_output_reached_the_model_is_seen(checking: Checking) -> None:
    """Once the model went on after it; until then it is offered, as by a hook."""
    talk = checking.talk
    sent = talk.post.send("x", ME, "first\nsecond")
    said = checking.run().stdout
    assert re.match(r"1 unread message for \S+, mail [0-9a-f]{6}\n\n", said)
    assert re.search(r"\nend of mail [0-9a-f]{6}: \d+ characters\n$", said)
    assert talk.post.ok("thread", sent)["receipts"] == {sent: {ME: "offered"}}
    checking.result(said)
    assert talk.context("PostToolUse") == ""
    assert talk.events() == ["read"]
    talk.speak()
    assert talk.context("Stop") == ""
    assert talk.events() == ["read", "seen"]
    assert talk.post.ok("thread", sent)["receipts"] == {sent: {ME: "seen"}}


@pytest.mark.parametrize(
    "cut",
    [
        lambda _: "",
        lambda said: "\n".join(said.split("\n")[:4]),
        lambda said: "\n".join(said.split("\n")[-4:]),
        lambda said: "\n".join(line for line in said.split("\n") if "body" in line),
        lambda said: "\n".join([*said.split("\n")[:4], "... [3 lines truncated] ...", *said.split("\n")[-3:]]),
        lambda said: said.replace("body", "b", 1),
        lambda said: "\n".join(f"  {line}" for line in said.split("\n")),
    ],
    ids=["nothing", "head", "tail", "grep", "middle left out", "a character", "indented"],
)
def test_a_check_of_which_the_model_got_a_part_is_offered_again(checking: Checking, cut: Any) -> None:
    """A pipe into ``tail``, ``grep`` or a file takes everything; the transcript shows what came of it."""
    talk = checking.talk
    sent = [talk.post.send("x", ME, f"body {n}") for n in range(3)]
    checking.result(cut(checking.run().stdout))
    talk.speak()
    again = talk.told("Stop")
    assert all(i[:8] in again for i in sent)
    talk.speak()
    assert talk.context("Stop", stop_hook_active=True) == ""
    assert talk.events() == ["read"] * 3 + ["release"] * 3 + ["read"] * 3 + ["seen"] * 3


@pytest.mark.parametrize("line", [{"isSidechain": True}, {"sessionId": "another"}])
def test_a_check_that_another_got_is_offered_again(checking: Checking, line: dict[str, Any]) -> None:
    """A subagent's command takes its parent's mail, and the parent's model never saw it."""
    talk = checking.talk
    sent = talk.post.send("x", ME)
    checking.result(checking.run().stdout, **line)
    talk.speak()
    assert sent[:8] in talk.told("Stop")


def test_what_was_acked_after_a_check_is_not_offered_again(checking: Checking) -> None:
    """Whatever the model was given of it: it dealt with it."""
    talk = checking.talk
    sent = talk.post.send("x", ME, "hello", "--ack")
    checking.run()
    checking.run("ack", sent)
    talk.speak()
    assert talk.context("Stop") == ""


def test_a_program_s_document_and_a_client_without_a_transcript_are_read_at_once(talk: Talk) -> None:
    """Nothing can show more: no marks, and no offer is left open."""
    checking = Checking(talk)
    for words in (("check", "--json"), ("check",)):
        sent = talk.post.send("x", ME)
        if words == ("check",):
            talk.path.unlink()
        assert ", mail " not in checking.run(*words).stdout
        assert talk.post.ok("thread", sent)["receipts"] == {sent: {ME: "read"}}


def test_below_a_client_a_check_shows_what_its_client_passes_on(checking: Checking) -> None:
    """Some 25,000 characters; the rest stays unread and is counted. At a program's side all is shown."""
    talk = checking.talk
    sent = [talk.post.send("x", ME, f"{n} " + "word " * 1200) for n in range(9)]
    for words in (("check", "--limit", "0"), ("check",)):
        said = checking.run(*words).stdout
        assert 20_000 < len(said) < 26_000
        left = talk.post.unread(ME)
        assert f"\n{len(left)} more: agent-mailbox check\n" in said
        assert left == sent[9 - len(left) :]
        assert [i for i in sent if f"\n{i[:8]}  " in said] == [r["message_id"] for r in talk.post.objects(READS)[-4:]]
    assert len(talk.post.call("check", "--session", ME, "--peek").stdout) < 25_000
    talk.post.register("ann")
    fresh = [talk.post.send("x", "ann", "word " * 1200) for _ in range(9)]
    assert talk.post.check("ann") == fresh


def test_a_document_is_as_long_as_its_client_passes_on(checking: Checking) -> None:
    """The rest stays unread, as of a text."""
    talk = checking.talk
    sent = [talk.post.send("x", ME, "\u6587" * 4000) for _ in range(9)]
    done = checking.run("check", "--json")
    assert 15_000 < len(done.stdout) < 26_000
    assert [m["id"] for m in done.json["messages"]] + talk.post.unread(ME) == sent
    assert done.json["more"] == len(talk.post.unread(ME)) > 0


@pytest.mark.parametrize("text", ["word " * 12_000, "line\n" * 12_000, "w" * 60_000, "\x1b" * 20_000])
def test_a_longer_message_comes_in_parts_each_with_the_command_for_the_next(checking: Checking, text: str) -> None:
    """Until the last part was shown it is known by title; every character is in one part."""
    talk = checking.talk
    sent = talk.post.send("x", ME, text, "--ack")
    said = checking.run().stdout
    assert len(said) < 26_000
    stages = set()
    parts = [said]
    while found := re.search(r"^\(cut; it goes on: agent-mailbox (show \S+ --at \d+)\)$", parts[-1], re.MULTILINE):
        stages.add(talk.post.ok("thread", sent)["receipts"][sent][ME])
        parts.append(checking.run(*found[1].split()).stdout)
        assert len(parts[-1]) < 26_000
    assert stages == {"offered"}
    assert len(parts) > 2
    assert talk.post.ok("thread", sent)["receipts"][sent][ME] == "read"
    bodies = [[line[2:] for line in part.split("\n") if line.startswith("| ")] for part in parts]
    shown = "".join("".join(body) for body in bodies)
    assert shown.replace("\\x1b", "\x1b") == text.replace("\n", "")


def test_a_message_that_is_cut_is_known_by_title_and_a_short_one_beside_it_is_not(checking: Checking) -> None:
    """Each has its own receipt."""
    talk = checking.talk
    long, short = talk.post.send("x", ME, "word " * 9000), talk.post.send("x", ME)
    said = checking.run().stdout
    assert (long[:8] in said, short[:8] in said, len(said) < 26_000) == (True, True, True)
    assert [r["message_id"] for r in talk.post.objects(READS) if r.get("title")] == [long]
