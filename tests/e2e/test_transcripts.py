"""The real Claude Code's transcript where it is not simply appended to: mail stays in the conversation, once.

Belongs here: a compaction, a rewound turn, a file that was cut, one in another place. The rules alone are in
``tests/claude/test_receipts.py``, against lines as these tests saw them.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from agent_mailbox.known_clients.claude_code import CLAUDE_CODE
from tests.e2e.shown import shows, takes_long
from tests.e2e.standin import bash, conversation, said
from tests.e2e.terminal import Terminal
from tests.helpers import PATIENCE

if TYPE_CHECKING:
    from tests.e2e.conftest import Client
    from tests.e2e.standin import Body

LONG = "head -c 29000 /dev/zero | tr '\\0' a"
"""A command whose output is worth a compaction."""
WINDOW = {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "120000"}
FULL = 95_000
"""Tokens that fill this window."""


@shows(CLAUDE_CODE, "once", "seen")
def test_mail_right_before_a_compaction_is_in_the_conversation_once(client: Client) -> None:
    """A tool's hook gave it to the model, and the client compacts before the next request. It keeps the end of the
    conversation, so no hook shows the mail again."""
    left = [bash(LONG), bash(LONG), bash(client.mailer("MAIL_KEPT"))]

    def script(body: Body) -> list[Body]:
        if "detailed summary" in conversation(body):
            return [said("<summary>THE_SUMMARY</summary>")]
        if not body.get("tools") or not left:
            return [said("DONE")]
        answer = left.pop(0)
        client.model.used = 8_000 if left else FULL
        return [answer]

    client.model.script = script
    session = client.ask("PROMPT_ONE", "--allowedTools", "Bash", env=WINDOW)["session_id"]
    client.model.used = 1
    talk = client.model.asked("THE_SUMMARY")[-1]
    assert "PROMPT_ONE" not in talk
    assert talk.count("| MAIL_KEPT") == 1
    assert client.events("MAIL_KEPT") == [(session, "read"), (session, "seen")]


@takes_long
@shows(CLAUDE_CODE, "once", "seen")
def test_mail_of_a_rewound_turn_that_nobody_answered_is_in_the_next_one(client: Client) -> None:
    """The person interrupts a turn behind a tool, and takes it back by ``/rewind``. The model's next word is none about
    its mail. The mail comes as that turn ends, and only then it is seen."""
    held, left = threading.Event(), [bash(client.mailer("MAIL_REWOUND"))]

    def script(body: Body) -> list[Body]:
        if not body.get("tools") or "PROMPT_TWO" not in conversation(body) or held.is_set():
            return [said("ANSWER")]
        if left:
            return [left.pop()]
        held.wait(PATIENCE)
        return [said("TOO_LATE")]

    with Terminal(client, "--allowedTools", "Bash") as terminal:
        session = terminal.started()
        (client.post.box / "config.toml").write_text("[hook]\ndoorbell = false\n")
        client.model.script = script
        terminal.ask("PROMPT_ONE")
        terminal.wait(terminal.idle)
        terminal.ask("PROMPT_TWO")
        terminal.wait(lambda: client.model.asked("MAIL_REWOUND"))
        terminal.mark()
        terminal.type("\x1b")
        terminal.wait(terminal.idle)
        held.set()
        terminal.submit("/rewind")
        terminal.wait(lambda: b"(current)" in terminal.screen)
        terminal.press("\x1b[A", lambda shown: b"PROMPT_TWO" in shown)
        terminal.press("\r", lambda shown: b"Never mind" in shown)
        terminal.press("\r", lambda shown: "❯\N{NO-BREAK SPACE}PROMPT_TWO".encode() in shown)
        assert client.events("MAIL_REWOUND") == [(session, "read")]
        terminal.type("_AND_MORE")
        terminal.wait(lambda: b"AND_MORE" in terminal.screen)
        terminal.mark()
        terminal.type("\r")
        terminal.wait(lambda: "MAIL_REWOUND" in (client.model.asked("AND_MORE") or [""])[-1])
        terminal.wait(terminal.idle)
        terminal.leave()
    assert client.model.asked("AND_MORE")[-1].count("| MAIL_REWOUND") == 1
    assert [event for _, event in client.events("MAIL_REWOUND")] == ["read", "release", "read", "seen"]
