"""The key ``proof`` of each message that a program is told of: what its seal proves, or null."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.core.control import messages as m
from agent_mailbox.core.records import USER
from agent_mailbox.mcp import tool_commands
from tests.helpers import MESSAGES, Post, record
from tests.trust.scene import LEAD, OTHER, WORKER, Scene

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_mailbox.mcp.tool_schemas import ToolAnswer

SESSION = "00000000-0000-4000-8000-00000000000"


def _proofs(value: Any) -> Iterator[tuple[str, str | None]]:
    """The ids and proofs of the messages anywhere in a document; a message without the key is an error."""
    if isinstance(value, list):
        for one in value:
            yield from _proofs(one)
    elif isinstance(value, dict):
        if "content" in value or "sender" in value:
            yield value["id"], value["proof"]
        for one in value.values():
            yield from _proofs(one)


def _written(post: Post) -> dict[str, str | None]:
    """Write mail of each kind; returns what proves its writer, by id."""
    told: dict[str, str | None] = {}
    for sender, proof in ((USER, "user@terminal"), (LEAD, f"session:{LEAD}")):
        told[post.send(sender, OTHER, "sealed word", "--ack")] = proof
        told[post.send(sender, "role:nobody-yet", "sealed word")] = proof
        told[post.send(sender, OTHER, "sealed word", "--ttl-hours", "1")] = proof
    for sender in (USER, LEAD, "steward"):
        foreign = record(sender, OTHER, "forged word", ack=True, proof="user@terminal", written_by="user@terminal")
        post.append(MESSAGES, foreign)
        told[foreign["id"]] = None
    first = next(iter(told))
    told[post.send(OTHER, LEAD, "sealed word", "--thread", first)] = f"session:{OTHER}"
    batch = {"sender": LEAD, "recipient": OTHER, "content": "batch word", "proof": "user@terminal"}
    told[post.ok("send", "--jsonl", "-", stdin=json.dumps(batch))["ids"][0]] = None
    moved = json.loads(next(line for line in post.lines(MESSAGES) if first.encode() in line))
    copy = json.dumps({**moved, "id": f"{SESSION}1"}, separators=(",", ":")).encode()
    post.append(MESSAGES, copy + b"\n")
    told[f"{SESSION}1"] = None
    return told


@pytest.mark.parametrize("archived", [False, True], ids=["live", "archived"])
def test_each_message_in_json_tells_its_proof(scene: Scene, archived: bool) -> None:
    """Every command with ``--json``, and the export: a sealed message never says null, and an unproven one, which
    brings such a key itself, never a word. Live and archived, found by the index and without it."""
    post = scene.post
    told = _written(post)
    if archived:
        post.check(OTHER)
        post.check(LEAD)
        for message_id in told:
            post.call("ack", message_id, "--session", OTHER)
        assert post.ok("steward", "run", "--max-live", "0")["archived"] > 4
    commands = [
        ("check", "--session", OTHER, "--peek"),
        ("history", "--all"),
        ("search", "word"),
        ("status", "--session", OTHER),
        ("status", "--session", LEAD),
        ("dead-letters", "--all"),
        ("dead-letters", "--all", "--waiting"),
        *(("show", message_id) for message_id in told),
        *(("thread", message_id) for message_id in told),
    ]
    met: set[str] = set()
    for words in commands:
        found = list(_proofs(post.ok(*words)))
        assert found == [(one, told[one]) for one, _ in found if one in told], words
        met |= {one for one, _ in found}
    assert met == told.keys()
    exported = [json.loads(line) for line in post.call("export").stdout.splitlines()]
    assert {one["id"]: one["proof"] for one in exported if one["id"] in told} == told
    headers = [line for line in post.call("export", "--format", "mbox").stdout.splitlines() if "-Proof:" in line]
    assert headers.count("X-Agent-Mailbox-Proof: none") == sum(proof is None for proof in told.values())
    assert dict(_proofs(post.ok("check", "--session", OTHER))).items() <= told.items()


def test_a_retry_tells_the_proof_of_what_stands(post: Post) -> None:
    """Mail that was sent before under its id says what proves that line, and a sent one what proves it now."""
    post.register("ann")
    words = ("--from", "ann", "--to", "all", "--body", "once", "--id", f"{SESSION}2")
    assert [post.ok("send", *words)["message"]["proof"] for _ in range(2)] == ["session:ann"] * 2
    foreign = record("ann", "all", "once", id=f"{SESSION}3")
    post.append(MESSAGES, foreign)
    assert post.ok("send", *words[:-1], f"{SESSION}3")["message"]["proof"] is None
    assert post.ok("reply", f"{SESSION}3", "--from", "bob", "--body", "so")["message"]["proof"] == "session:bob"


def test_nothing_is_proven_to_a_program_in_a_broken_log(scene: Scene) -> None:
    """Once a log does not continue what was left, each message says null, also one that is sent then."""
    post = scene.post
    post.send(LEAD, OTHER, "sealed")
    post.file(MESSAGES).write_bytes(b"")
    sent = post.send(LEAD, OTHER, "after it")
    assert list(_proofs(post.ok("history", "--all"))) == [(sent, None)]
    assert post.ok("send", "--from", USER, "--to", OTHER, "--body", "too")["message"]["proof"] is None


def test_requests_and_their_log_tell_their_proof(scene: Scene) -> None:
    """A forged request, and a forged denial of a true one, say null; true ones say who asked and who decided."""
    asked = m.PermissionRequest(tool="Bash", input={"command": "x"})
    open_one, denied, decided = (scene.control.request(WORKER, asked) for _ in range(3))
    forged = scene.forge(
        m.PermissionRequest(request_id="req-forged", tool="Bash", input={"command": "x"}), WORKER, LEAD
    )
    scene.forge(m.PermissionResponse(request_id=denied.id, approved=False), LEAD, WORKER)
    scene.control.answer(LEAD, decided.id, approved=True)
    found = {one["id"]: one for one in scene.post.ok("control", "pending", "--session", LEAD)["requests"]}
    assert {i: one["proof"] for i, one in found.items()} == {open_one.id: f"session:{WORKER}", "req-forged": None}
    log = scene.post.ok("control", "log")["messages"]
    assert dict(_proofs(log))[forged["id"]] is None
    waited = [scene.post.call("control", "wait", one.id, "--session", WORKER, "--json") for one in (denied, decided)]
    shown = [one.json["request"] for one in waited]
    assert [one["proof"] for one in shown] == [f"session:{WORKER}"] * 2
    assert [one["answer_proof"] for one in shown] == [None, f"session:{LEAD}"]


def _called(post: Post, monkeypatch: pytest.MonkeyPatch, tool: str, **given: Any) -> dict[str, Any]:
    """What a tool of the MCP server answers as data."""
    answers: list[ToolAnswer] = []
    for name, value in post.environ({"AGENT_MAILBOX_SESSION": OTHER}).items():
        monkeypatch.setenv(name, value)
    tool_commands.answer_call(str(post.box), tool, given, answers.append)
    assert not answers[0].failed, answers
    return answers[0].data


def test_an_mcp_client_is_told_the_same(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """``search``, one message by its id, ``check`` and ``send`` give each message's proof, or null."""
    told = _written(scene.post)
    for tool, given in (
        ("search", {"query": "word"}),
        *(("search", {"query": f"id:{i}"}) for i in told),
        ("check", {}),
    ):
        found = dict(_proofs(_called(scene.post, monkeypatch, tool, **given)))
        assert found
        assert found.items() <= told.items(), (tool, given)
    sent = _called(scene.post, monkeypatch, "send", to=LEAD, body="mine")
    assert sent["message"]["proof"] == f"session:{OTHER}"
