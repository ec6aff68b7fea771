"""The real Codex against a stand-in model: what our installation makes reach the model."""

from __future__ import annotations

import json
import re
import threading
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.known_clients.codex import CODEX
from agent_mailbox.mailbox.open_mailbox import OpenMailbox
from tests.control_desk import ControlDesk
from tests.e2e.client import mailer
from tests.e2e.codex_client import Codex
from tests.e2e.responses import by_prompt, conversation, patch, said, shell, use
from tests.e2e.shown import shows, shows_at, takes_long
from tests.helpers import MESSAGES, PATIENCE, READS, TOOLS, until

if TYPE_CHECKING:
    pass


@takes_long
@shows(CODEX, "start", "once", "role once", "seen")
@shows_at(CODEX, "headless", "mail")
def test_the_first_request_holds_the_mail_and_a_resumed_session_is_shown_none_again(codex: Codex) -> None:
    """Installed, started: the model has the mail beside the first prompt. Resumed: once in the conversation, as before,
    and one read record; mail that came meanwhile is there, too. Its rollout tells that the model saw each. A second
    session gets only what is for everyone."""
    codex.install()
    post, model = codex.post, codex.model
    post.send("bob", "role:architect", "MAIL_FOR_THE_ROLE")
    post.send("bob", "all", "MAIL_FOR_ALL")
    session = codex.ask("PROMPT_ONE", env={"AGENT_MAILBOX_ROLE": "architect"})
    first = model.asked("PROMPT_ONE")[0]
    assert [first.count(word) for word in ("MAIL_FOR_THE_ROLE", "MAIL_FOR_ALL", "## Mail from other agents")] == [1] * 3
    assert {r["reader_session_id"] for r in post.objects(READS)} == {session}
    post.send("bob", session, "MAIL_MEANWHILE")
    assert codex.ask("PROMPT_TWO", "resume", session) == session
    second = model.asked("PROMPT_TWO")[0]
    assert [second.count(word) for word in ("MAIL_FOR_THE_ROLE", "MAIL_FOR_ALL", "MAIL_MEANWHILE")] == [1, 1, 1]
    assert [r["event"] for r in post.objects(READS)] == ["claim", "read", "read", "seen", "seen", "read", "seen"]
    codex.ask("PROMPT_THREE", env={"AGENT_MAILBOX_ROLE": "architect"})
    third = model.asked("PROMPT_THREE")[0]
    assert [third.count(word) for word in ("MAIL_FOR_THE_ROLE", "MAIL_FOR_ALL")] == [0, 1]


@shows(CODEX, "between tools", "stop", "seen")
def test_mail_sent_during_a_turn_arrives_before_it_ends(codex: Codex) -> None:
    """Mail during a turn of Codex arrives once, behind the tool's result or at the stop. The model then goes on."""
    codex.install()
    model = codex.model

    def script(body: dict[str, Any]) -> list[dict[str, Any]]:
        count = len(model.asked("PROMPT_ONE"))
        if count < 3:
            words = (("MAIL_DURING_THE_TURN", "--when", "now"), ("MAIL_AT_THE_END",))[count - 1]
            codex.post.send("bob", "all", *words)
        return by_prompt(PROMPT_ONE=[shell("true")])(body)

    model.script = script
    codex.ask("PROMPT_ONE")
    talks = model.asked("PROMPT_ONE")
    assert [talk.count("MAIL_DURING_THE_TURN") for talk in talks] == [0, 1, 1]
    assert [talk.count("MAIL_AT_THE_END") for talk in talks] == [0, 0, 1]
    assert [r["event"] for r in codex.post.objects(READS)] == ["read", "seen", "read", "seen"]


@shows(CODEX, "end", "clean uninstall")
def test_without_mail_nothing_of_ours_is_in_the_conversation(codex: Codex) -> None:
    """A conversation without mail contains only our section of AGENTS.md and the line of the session's start. After
    ``uninstall`` no hook runs and no file is left."""
    before = sorted(codex.project.rglob("*"))
    codex.install()
    session = codex.ask("PROMPT_ONE")
    (talk,) = codex.model.asked("PROMPT_ONE")
    section = (codex.project / "AGENTS.md").read_text()
    (agent,) = codex.post.ok("roster", "list")["agents"]
    assert (agent["session_id"], agent["state"]) == (session, "frozen")
    (line,) = re.findall(r"agent-mailbox: .*? writes", talk)
    assert line.startswith(f"agent-mailbox: you are {agent['name']}; ")
    assert talk.replace(line, "").count("agent-mailbox") == section.count("agent-mailbox")
    codex.post.ok("uninstall", "codex", "--project", codex.project)
    assert sorted(codex.project.rglob("*")) == before
    codex.post.send("bob", "all", "MAIL_FOR_ALL")
    codex.ask("PROMPT_TWO")
    assert "MAIL_FOR_ALL" not in codex.model.asked("PROMPT_TWO")[0]
    assert "Mail from other agents" not in codex.model.asked("PROMPT_TWO")[0]
    assert len(codex.post.ok("roster", "list")["agents"]) == 1


@shows(CODEX, "own session", "plain mail unasked", "tasks")
def test_the_agent_s_commands_know_who_they_are_and_leave_the_sandbox(codex: Codex) -> None:
    """An agent's command writes to the mailbox from a read-only sandbox. A subagent sends as its parent and takes none
    of its mail."""
    post, model = codex.post, codex.model
    tools = TOOLS
    post.env["PATH"] = f"{tools}:{post.env['PATH']}"
    (post.home / ".profile").write_text(f"PATH='{tools}':$PATH\n")  # the client's shell is a login shell
    codex.install()

    def script(body: dict[str, Any]) -> list[dict[str, Any]]:
        used = [item for item in body["input"] if "output" in item]
        if "PROMPT_ONE" not in conversation(body):
            return by_prompt(TASK=[shell("agent-mailbox send --to user --body FROM_THE_CHILD")])(body)
        if not used:
            post.send("bob", "all", "MAIL_FOR_THE_PARENT", "--when", "now")
            return [use("spawn_agent", namespace="multi_agent_v1", message="TASK")]
        if len(used) == 1:
            child = json.loads(used[0]["output"])["agent_id"]
            return [use("wait_agent", namespace="multi_agent_v1", targets=[child], timeout_ms=60_000)]
        return by_prompt(PROMPT_ONE=[*[said("")] * 2, shell("agent-mailbox send --to user --body FROM_THE_PARENT")])(
            body
        )

    model.script = script
    session = codex.ask("PROMPT_ONE with $bye")
    assert "agent-mailbox roster retire" in model.asked("PROMPT_ONE")[0]
    sent = {m["content"]: m["sender"] for m in post.ok("history", "--all")["messages"]}
    assert (sent["FROM_THE_PARENT"], sent["FROM_THE_CHILD"]) == (session, session)
    children = [talk for talk in map(conversation, model.requests) if "PROMPT_ONE" not in talk]
    assert children
    assert not any("MAIL_FOR_THE_PARENT" in talk for talk in children)
    assert model.asked("PROMPT_ONE")[-1].count("MAIL_FOR_THE_PARENT") == 1


@shows(CODEX, "guard", "permit", "own name")
def test_its_lead_and_its_rules_bind_it(codex: Codex) -> None:
    """A file is not sent, and another's name is refused by the command; the model is told why. A call runs
    where its lead approves it, as the lead changed it, and nowhere else. What another tool's hook makes of a call runs,
    and the lead is told of it."""
    post, model = codex.post, codex.model
    post.env["PATH"] = f"{TOOLS}:{post.env['PATH']}"
    (post.home / ".profile").write_text(f"PATH='{TOOLS}':$PATH\n")  # a login shell's
    codex.config.write_text(codex.config.read_text().replace("read-only", "danger-full-access"))
    codex.install()
    post.register("boss")
    session = codex.ask("PROMPT_ONE")
    post.ok("roster", "update", "--session-id", session, "--lead", "boss")
    post.ok("control", "mode", session, "safe", "--session", "boss")
    hidden = "me=--from; agent-mailbox send $me boss --to all --body FORGED && echo approved"
    calls = ["agent-mailbox send --to all --body @/etc/hostname", "touch denied", "touch approved", hidden]
    answer = {"hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": {"command": "touch tidied"}}
    tidy = codex.project / "tidy"
    tidy.write_text(
        f"#!/bin/sh\n! grep -q '\"command\":\"pwd\"' || echo '{json.dumps({'hookSpecificOutput': answer})}'\n"
    )
    tidy.chmod(0o755)
    hooks = codex.project / ".codex/hooks.json"
    known = json.loads(hooks.read_text())
    known["hooks"]["PreToolUse"].append({"hooks": [{"type": "command", "command": str(tidy)}]})
    hooks.write_text(json.dumps(known))
    model.script = by_prompt(PROMPT_TWO=list(map(shell, [*calls, "pwd"])))
    desk = ControlDesk(OpenMailbox(str(post.box)))
    answered: list[str] = []

    def lead() -> None:
        for _ in calls[1:]:
            (request,) = until(lambda: desk.pending("boss"))
            answered.append(request.payload.arguments)
            changed = {"command": "touch changed"} if answered[-1] == "touch approved" else None
            says_yes = "approved" in request.payload.arguments
            desk.answer("boss", request.id, says_yes, notes="NOT_THAT", updated_input=changed)

    thread = threading.Thread(target=lead, daemon=True)
    thread.start()
    codex.ask("PROMPT_TWO", "resume", session)
    thread.join(PATIENCE)
    assert answered == calls[1:]
    talk = model.asked("PROMPT_TWO")[-1]
    assert talk.count("blocked by PreToolUse hook: agent-mailbox: ") == 2
    assert "boss denied" in talk
    assert "NOT_THAT" in talk
    assert f"this is a process of session {session[:8]}, and 'boss' is another" in talk
    assert not any("FORGED" in m["content"] for m in post.ok("history", "--all")["messages"] if m["type"] == "message")
    assert [(codex.project / name).exists() for name in ("denied", "approved", "changed")] == [False, False, True]
    (told,) = [json.loads(m["content"]) for m in post.objects(MESSAGES) if "call_changed" in m["content"]]
    assert (told["tool"]["arguments"], told["ran"], told["hook"]) == ("pwd", "touch tidied", str(tidy))
    assert (codex.project / "tidied").exists()


@shows(CODEX, "prompt", "clean uninstall")
def test_a_user_s_own_hooks_go_on_around_ours_and_stay(codex: Codex) -> None:
    """One sends mail once our hook at the start has shown the first: that comes beside the prompt. Uninstalled, the
    file that holds both is what it was, byte for byte."""
    post, model = codex.post, codex.model
    waits = f"until grep -q read '{post.file(READS)}'; do sleep 0.02; done"
    own = [{"type": "command", "command": mailer(post, "MAIL_WITH_THE_PROMPT", waits), "timeout": PATIENCE}]
    hooks = codex.project / ".codex/hooks.json"
    hooks.parent.mkdir()
    mine = {"description": "mïne", "hooks": {"SessionStart": [{"hooks": own}], "Stop": []}}
    hooks.write_text(before := json.dumps(mine, indent=3, ensure_ascii=False))
    codex.install()
    post.send("bob", "all", "MAIL_AT_THE_START")
    codex.ask("PROMPT_ONE")
    (talk,) = model.asked("PROMPT_ONE")
    assert [talk.count(word) for word in ("MAIL_AT_THE_START", "MAIL_WITH_THE_PROMPT")] == [1, 1]
    assert [r["event"] for r in post.objects(READS)] == ["read", "read", "seen", "seen"]
    post.ok("uninstall", "codex", "--project", codex.project)
    assert hooks.read_text() == before


@shows(CODEX, "guard files")
def test_a_patch_is_an_edit_of_each_of_its_files(codex: Codex) -> None:
    """It names them in its text. Another leases one: the session is warned once, and the patch runs. Refused where the
    person's own configuration enforces leases, where a rule denies one of its files, and where one is the mailbox's."""
    post, model = codex.post, codex.model
    config = codex.config.read_text().replace("read-only", "danger-full-access")
    codex.config.write_text(config.replace('model = "stand-in"', 'model = "gpt-5.5"'))
    codex.install()
    post.register("ada", "--name", "Ada")
    post.ok("lease", "leased", "--session", "ada", cwd=codex.project)

    def adds(*names: object) -> dict[str, Any]:
        files = "".join(f"*** Add File: {name}\n+x\n" for name in names)
        return patch(f"*** Begin Patch\n{files}*** End Patch\n")

    def told() -> list[str]:
        return [str(item["output"]) for item in model.requests[-1]["input"] if "output" in item]

    model.script = by_prompt(PROMPT_ONE=[adds("free", "leased"), adds("other", post.file("config.toml"))])
    session = codex.ask("PROMPT_ONE")
    assert [("Success" in said, "the mailbox's own" in said) for said in told()] == [(True, False), (False, True)]
    assert model.asked("PROMPT_ONE")[-1].count("leased is leased by Ada") == 1
    name = post.ok("roster", "show", session)["agent"]["name"]
    assert [m["subject"] for m in post.ok("check", "--session", "ada")["messages"]] == [f"{name} edits what you lease"]
    (post.user_state / "config.toml").write_text("[leases]\nenforce = true\n")
    post.ok("control", "policy", session, "--deny", "Edit(//**/secret)", "--session", "user")
    calls = [adds("free-2", "leased-2"), shell("echo x >leased-2"), adds("free-3", "secret"), adds("last")]
    model.script = by_prompt(PROMPT_TWO=[*[said("")] * 2, *calls])  # it counts the first turn's
    post.ok("lease", "leased-2", "--session", "ada", cwd=codex.project)
    codex.ask("PROMPT_TWO", "resume", session)
    outcome = [("Success" in said, "leased by Ada" in said, "denies Edit" in said) for said in told()[-4:]]
    assert outcome == [(False, True, False), (False, True, False), (False, False, True), (True, False, False)]
    there = [
        name
        for name in ("free", "leased", "other", "free-2", "free-3", "secret", "last")
        if (codex.project / name).exists()
    ]
    assert there == ["free", "leased", "last"]


@pytest.mark.parametrize("scope", ["project", pytest.param("user", marks=takes_long)])
def test_hooks_that_nobody_trusted_are_skipped_and_we_say_so(codex: Codex, scope: str) -> None:
    """Codex skips hooks that nobody trusted or that were changed since; ``install`` and the doctor say so. A foreign
    hook beside ours stays."""
    post = codex.post
    hooks = (codex.project / ".codex" if scope == "project" else codex.home) / "hooks.json"
    hooks.parent.mkdir(exist_ok=True)
    ran = post.scratch / "ran"
    foreign = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": f"touch '{ran}'"}]}]}}
    hooks.write_text(json.dumps(foreign))
    assert (
        "/hooks"
        in codex.install("--user" if scope == "user" else "--project", *([codex.project] * (scope == "project")))[
            "next"
        ]
    )
    assert json.loads(hooks.read_text())["hooks"]["Stop"][0] == foreign["hooks"]["Stop"][0]
    post.send("bob", "all", "MAIL_FOR_ALL")
    codex.ask("PROMPT_ONE", trusting=False)
    assert "MAIL_FOR_ALL" not in codex.model.asked("PROMPT_ONE")[-1]
    assert not ran.exists()

    def skipped() -> list[str]:
        notes = post.ok("doctor", cwd=codex.project).get("notes", [])
        return [n["what"] for n in notes if "Codex skips" in n["what"]]

    assert len(skipped()) == 1
    assert {hook["trustStatus"] for hook in codex.hooks()} == {"untrusted"}
    codex.trust()
    assert skipped() == []
    assert {hook["trustStatus"] for hook in codex.hooks()} == {"trusted"}
    codex.ask("PROMPT_TWO", trusting=False)
    assert "MAIL_FOR_ALL" in codex.model.asked("PROMPT_TWO")[0]
    assert ran.exists()
    hooks.write_text(hooks.read_text().replace('"timeout": 10', '"timeout": 11'))
    assert {hook["trustStatus"] for hook in codex.hooks()} == {"trusted", "modified"}
    assert len(skipped()) == 1
