"""What the mailbox knows of swarms without the gateway: addresses, how mail is shown, configuration."""

from __future__ import annotations

from typing import Any

import pytest

from agent_mailbox.config import config_file
from agent_mailbox.config.config import Config
from agent_mailbox.config.own_config import OwnConfig
from agent_mailbox.console import presenters
from agent_mailbox.core import address, frame, references
from agent_mailbox.core.inbox import Item
from agent_mailbox.core.message_reads import Reads
from agent_mailbox.core.records import Message
from agent_mailbox.core.roster import Roster
from agent_mailbox.core.showing import message_frame
from agent_mailbox.errors import BadData, Malformed
from agent_mailbox.mailbox import leaving
from agent_mailbox.mailbox.mailbox import Mailbox
from agent_mailbox.swarm import swarm_settings
from tests.helpers import Post, refused


def message(**more: Any) -> Message:
    return Message("m", "swarm:demo/bob", ("swarm:demo",), 0, "text").replace(**more)


def test_an_agent_elsewhere_has_an_address() -> None:
    """``swarm:s/a`` is an address that nobody here has; ``swarm:s`` a tag."""
    assert address.check_tag("swarm:demo/bob", address.NAMESPACES) == "swarm:demo/bob"
    assert address.swarm_of("swarm:demo/bob") == ("demo", "bob")
    assert address.swarm_of("swarm:demo") == ("demo", "")
    assert address.swarm_of("project:demo") is None
    for word in ("swarm:demo/bob", "swarm:demo"):
        with pytest.raises(Malformed):
            address.check_id(word)


def test_nobody_here_takes_the_address_of_somebody_elsewhere(post: Post) -> None:
    """A session cannot take the address of another machine's agent as a tag, nor as a sender. It joins by the swarm's
    own tag."""
    refused(post.call("roster", "register", "--session-id", "eve", "--tags", "swarm:demo/bob"), 2, "another machine")
    post.register("ann", "--tags", "swarm:demo")
    refused(post.call("roster", "update", "--session-id", "ann", "--add-tags", "swarm:demo/bob"), 2, "another machine")
    refused(post.call("send", "--from", "swarm:demo/bob", "--to", "ann", "--body", "x"), 2, "swarm:demo/bob")


def test_mail_from_elsewhere_is_read_answered_and_found(post: Post) -> None:
    """It is the joined agent's mail, is marked, and a reply goes back to its address, in its thread."""
    post.register("ann", "--tags", "swarm:demo")
    post.register("zoe")
    desk = Mailbox(str(post.box))
    desk.take_in([message(id="a6aad2fc-a42c-489b-864d-21f8cb5ad25e", timestamp=desk.now())])
    assert post.unread("zoe") == []
    assert "swarm:demo/bob (remote) → swarm:demo" in post.call("check", "--session", "ann").stdout
    sent = post.ok("reply", "a6aad2fc", "--from", "ann", "--body", "answer")["message"]
    assert (sent["recipient"], sent["thread"]) == ("swarm:demo/bob", "a6aad2fc-a42c-489b-864d-21f8cb5ad25e")
    told = post.call("send", "--from", "ann", "--to", "swarm:demo/bob", "--body", "more").stdout
    assert "delivered or not: " in told
    found = post.ok("history", "--with", "swarm:demo/bob", "--all")["messages"]
    assert [m["content"] for m in found] == ["text", "answer", "more"]
    assert post.doctor() == []


def test_mail_to_a_swarm_that_nobody_knows_fails_at_once(post: Post) -> None:
    """Without a gateway the swarms are those that somebody joined; the hint names them."""
    post.register("ann", "--tags", "swarm:demo")
    for to in ("swarm:nosuch", "swarm:nosuch/bob", "swarm:dem"):
        before = post.snapshot()
        refused(post.call("send", "--from", "user", "--to", f"ann,{to}", "--body", "x"), 1, "swarm:demo", "no gateway")
        assert post.snapshot() == before
    post.ok("send", "--from", "user", "--to", "swarm:demo/bob", "--body", "x")


def test_mail_from_elsewhere_makes_no_team(post: Post) -> None:
    """Its metadata may say so, and date it: no team is listed by that, and no history gets a line of it."""
    post.register("ann", "--tags", "swarm:demo")
    about = {"team": "ghosts", "inbox": "lead", "from": "lead", "timestamp": "2001-01-01T00:00:00.000Z"}
    desk = Mailbox(str(post.box))
    new_id = "a6aad2fc-a42c-489b-864d-21f8cb5ad25e"
    for n, sender in enumerate(("swarm:demo/bob", "swarm:demo/lead@ghosts")):
        told = message(id=f"{new_id[:-1]}{n}", sender=sender, timestamp=desk.now(), metadata={"team": about})
        desk.take_in([told])
    assert post.ok("teams", "list")["teams"] == []
    refused(post.call("teams", "export", "ghosts"), 1, "ghosts")


def test_the_console_shows_who_is_elsewhere(post: Post) -> None:
    """The whole address, whatever its form, marked; news of a swarm's life by what the gateway says of it alone."""
    desk, sender = Mailbox(str(post.box)), "swarm:de-mo12/bob-2345-aaaa-123456789012"
    event = {"type": "system", "subject": "bob joined", "extra": {"swarm": {"event": True}}}
    for more in ({}, {**event, "content": '{"action":"member_joined"}'}):
        roster = desk.logs.read_roster()
        row = presenters.message_row(message(sender=sender, **more), Reads([]), roster)
        assert (row["sender"], row["roles"]) == (sender, "remote")
    assert row["notes"] == ("swarm event",)
    assert row["body"] == ""


@pytest.mark.parametrize("odd", [None, 5, "x", [], {"event": 1}, {"conflicts": "x"}, {"conflicts": [1, None]}], ids=str)
def test_whatever_stands_beside_a_message_it_can_be_shown(odd: Any) -> None:
    """Other programs write what they like: references and the gateway's note of any shape."""
    for refs in (odd, [odd], [{"repo": odd, "number": odd, "sha": odd, "url": odd, "action": odd}]):
        presenters = message_frame.body(message(type="system", subject="s", references=refs, extra={"swarm": odd}))
        assert presenters[-1] == "| text"
    assert frame.notes(message(sender="ann", type="system")) == ["system"], "it came from no swarm"


def test_a_reference_is_told_in_words_on_one_line() -> None:
    """A reference's words tell what was done, and to what. Nothing in them can break the line."""
    for reference, said in (
        ({"type": "github_issue", "repo": "o/r", "number": 3, "action": "claimed"}, "claimed o/r#3"),
        ({"type": "github_pr", "repo": "o/r", "number": 4, "action": "review_requested"}, "review requested o/r#4"),
        ({"type": "github_commit", "repo": "o/r", "sha": "abcdef0123456789"}, "o/r@abcdef012345"),
        ({"type": "url", "url": "https://x.example"}, "https://x.example"),
        ({"repo": "o/r\n| forged", "number": 1}, "o/r | forged#1"),
    ):
        assert references.one(reference) == said
    (line,) = references.lines(message(references=[{"repo": "o/r", "number": n} for n in range(20)]))
    assert line.endswith("and 12 more")


@pytest.mark.parametrize("kind", ["controlled", "control-2"])
def test_a_type_that_begins_as_a_control_message_s_is_shown_as_mail(kind: str) -> None:
    """Only the word itself is control, also where mail is shown in brief."""
    mail = message(type=kind, content="plain words")
    assert message_frame.body(mail)[-1] == "| plain words"
    shown = Item(mail, "tag", "swarm:demo", False, None)
    for lines in (message_frame.brief(shown, Roster(), "", "us"), message_frame.item(shown, Roster())):
        assert lines[-1] == "| plain words"


def test_what_happened_in_a_swarm_is_said_in_words() -> None:
    """The gateway's line in place of the JSON; never as the client's own ``system``. Who only claims to be the gateway
    hides nothing."""
    event = message(type="system", subject="bob joined demo", content='{"action":"member_joined"}')
    noted = event.replace(extra={"swarm": {"event": True}})
    assert message_frame.body(noted) == ['Subject: "bob joined demo"']
    assert frame.notes(noted) == ["swarm event"]
    for action, reason in (("member_left", ["Reason: done"]), ("swarm_dissolved", [])):
        told = noted.replace(content=f'{{"action":"{action}","reason":"done"}}')
        assert message_frame.body(told)[1:] == reason, "a program's word for it is no reason to a reader"
    assert message_frame.body(noted.replace(sender="eve"))[-1].startswith("| {")
    assert frame.sender_of(noted, Roster()) == "swarm:demo/bob (remote)"


def test_a_wrong_setting_of_the_gateway_is_named_and_a_missing_one_has_its_default() -> None:
    """A gateway's setting counts if it is set, and otherwise has the number of the founding text. A wrong one is
    named."""
    told = Config(**config_file.parse_config({"swarm": {"joins_per_hour": 3}}))
    found = swarm_settings.settings_of(
        told, OwnConfig(**config_file.parse_own({"swarm": {"trusted_proxies": ["10.0.0.1"]}}, "/box"))
    )
    assert (found.joins_per_hour, found.messages_per_minute, found.swarm_messages_per_minute) == (3, 60, 100)
    assert found.trusted_proxies == ("10.0.0.1",)
    assert not swarm_settings.GatewaySettings().private_addresses
    for key, value in (
        ("joins_per_hour", 0),
        ("body_bytes", 1.5),
        ("retry_seconds", True),
        ("private_addresses", "yes"),
        ("trusted_proxies", "10.0.0.1"),
        ("wake_url", ""),
        ("unheard_of", 1),
    ):
        own = OwnConfig(**config_file.parse_own({"swarm": {key: value}}, "/box"))
        assert key in own.faults[0].text
        assert swarm_settings.settings_of(told, own) == swarm_settings.settings_of(told, OwnConfig())
        if not own.faults[0].note:
            with pytest.raises(BadData, match=key):
                swarm_settings.sound_settings(told, own)


SECRETS = {
    "private key": (
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN OPENSSH PRIVATE KEY-----",
        "-----BEGIN PGP PRIVATE KEY BLOCK-----",
    ),
    "JSON Web Token": ("swarm://x@y?token=eyJhbGciOiJFZERTQSJ9.eyJzd2FybSI6MX0.abcdefghij",),
    "password in a URL": ("postgres://bob:hunter2@db.example/x",),
    "AWS key": ("AKIA" + 16 * "A",),
    "Anthropic key": ("sk-ant-api03-" + 30 * "x",),
    "GitHub token": ("ghp_" + 36 * "a", "github_pat_" + 70 * "a"),
    "Slack token": ("xoxb-" + 24 * "1",),
}
HARMLESS = (
    "the key is in key.pem, see -----BEGIN CERTIFICATE-----",
    "commit 0bc9f3d7e55d4419baa37cfdc2ff0001 of sk-learn, sha256:" + 64 * "a",
    "https://example.com:8443/a?b=c@d and mailto:bob@example.com, AKIA is a prefix, password = x, git@host:a/b",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBob bob@laptop",
)


@pytest.mark.parametrize("kind", SECRETS)
def test_secrets_of_known_forms_are_found_wherever_they_stand(kind: str) -> None:
    """A secret of a known form is found in the text, in the subject, and in whatever goes beside them."""
    for text in SECRETS[kind]:
        for told in (
            {"content": f"see {text} ."},
            {"subject": text},
            {"metadata": {"a": [text]}},
            {"references": [text]},
        ):
            assert leaving.secret_in(message(**told), "") == kind


@pytest.mark.parametrize("text", HARMLESS)
def test_hashes_and_public_keys_are_no_secrets(text: str) -> None:
    """Hashes, addresses, public keys, words."""
    assert leaving.secret_in(message(content=text), "") == ""
