"""Files of last week on a machine of a space: what the person's rules allowed then waits for a second word."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_mailbox.core import codec
from agent_mailbox.core.records import USER, Message
from agent_mailbox.space.nats.nats_order import open_order
from agent_mailbox.space.order.order import MESSAGES
from tests.trust.scene import WORKER, Scene
from tests.trust.test_brought_back import RULE, bring_back, revoked

from .conformance import lines_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.helpers import Post


def test_a_withheld_rule_is_withheld_in_the_order_of_all_machines(
    post: Post, server: str, credential: str, tmp_path: Path
) -> None:
    """It allows nothing here once the person confirmed the logs, and each machine has the person's order that says
    so."""
    scene = Scene(post)
    post.ok("engine", "join", server, "--space", "rules", "--machine", "north", "--credential", credential)
    bring_back(scene, revoked(scene, tmp_path))
    assert post.ok("doctor", "--trust", "--yes")["withheld"] == [{"agent": WORKER, "allow": [RULE], "mode": None}]
    assert (scene.rules(), scene.asked()) == (((), ("Bash(rm:*)",)), None)
    order = open_order(server, "rules", "reader", credential)
    last = codec.message([*lines_of(order, MESSAGES)][-1])
    order.close()
    assert isinstance(last, Message)
    assert (last.sender, last.recipients, last.type) == (USER, (WORKER,), "control")
    assert RULE not in last.content
    post.ok("engine", "join")
    assert (scene.rules(), scene.asked()) == (((), ("Bash(rm:*)",)), None)
