"""What we show of an id is its beginning: whoever takes that as an id, a name or a role gets nobody's place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_mailbox.core.control import messages as m
from agent_mailbox.errors import Ambiguous
from tests.helpers import MESSAGES, ROSTER, record, refused, stamp
from tests.trust.scene import OTHER, WORKER, Scene

if TYPE_CHECKING:
    from tests.helpers import Post

SHORT = WORKER[:8]


def test_an_answer_goes_to_the_message_that_was_shown(post: Post) -> None:
    """A message whose whole id is the shown beginning of another's hides it from no command."""
    post.register("alice")
    post.register("eve")
    sent = post.send("bob", "alice", "May I?", "--ack")
    post.append(MESSAGES, record("eve", "nobody", "a decoy", id=sent[:8]), record("eve", "all", "another", id="x-1"))
    for words in (("reply", sent[:8], "--from", "alice", "--body", "the answer"), ("show", sent[:8])):
        refused(post.call(*words), 1, "could be 2 messages", sent)
    assert "May I?" not in post.call("thread", sent[:8]).stdout
    assert [m["content"] for m in post.ok("check", "--session", "eve")["messages"]] == []
    post.append(MESSAGES, record("eve", "all", "longer", id="x-1-more"))
    assert post.ok("show", "x-1")["message"]["content"] == "another"


@pytest.mark.parametrize("taken", ["an id", "a name", "a role"])
def test_mail_and_orders_reach_the_session_that_was_shown(post: Post, taken: str) -> None:
    """Another program's agent with such an id, name or role has neither its mail nor the rules that it was given."""
    scene = Scene(post)
    event = {"event": "register", "timestamp": stamp(), "session_id": SHORT if taken == "an id" else "eve"}
    more = {"a name": {"name": SHORT}, "a role": {"tags": [f"role:{SHORT}"]}}.get(taken, {})
    post.append(ROSTER, {**event, **more})
    sent = post.call("send", "--from", OTHER, "--to", SHORT, "--body", "for the worker")
    order = post.call("control", "policy", SHORT, "--deny", "Bash", "--session", "user")
    for done, is_done in ((sent, bool(post.check(WORKER))), (order, scene.rules()[1] == ("Bash",))):
        assert is_done or refused(done, 1, "could be 2 agents", WORKER)


def test_a_decision_meets_the_request_that_was_shown(post: Post) -> None:
    """A decision by the shown beginning of its message is not taken by another program's request of that id."""
    scene = Scene(post)
    asked = scene.control.request(WORKER, m.PermissionRequest(tool="Bash", input={"command": "ls"}))
    short = asked.message_id[:8]
    line = next(o for o in post.objects(MESSAGES) if asked.id in str(o["content"]))
    decoy = {**line, "id": "f" * 36, "sender": OTHER, "content": line["content"].replace(asked.id, short)}
    post.append(MESSAGES, {key: value for key, value in decoy.items() if key != "seal"})
    with pytest.raises(Ambiguous, match="2 requests"):
        scene.control.find(short)
    assert scene.control.find(asked.id).id == asked.id
