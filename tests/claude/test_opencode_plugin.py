"""OpenCode, which takes no hooks but a plugin: what is put into place, and what the hooks that it calls answer.

``tests/e2e/test_opencode.py`` shows the plugin at work in the real client.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.clients import doorbell, texts
from agent_mailbox.clients.install import opencode_plugin
from agent_mailbox.known_clients.opencode import OPENCODE
from tests.claude.asking import LEAD, Meanwhile, command, decision
from tests.claude.house import House
from tests.claude.shim import SHELLS, Shim
from tests.claude.test_permit import ME
from tests.helpers import PATIENCE, Post, Program, refused_both

if TYPE_CHECKING:
    from pathlib import Path

SESSION = "ses_df52b0c45ffeTa0lbag1JJm3yi"
OUTER = "11111111-aaaa-4bbb-8ccc-000000000000"


# -- what the plugin's hooks answer -----------------------------------------------------------------------------------


class Plugged:
    """A session of OpenCode, itself started from a Claude Code session, and its hooks by the guard."""

    def __init__(self, shim: Shim) -> None:
        self.shim = shim
        self.post = shim.post
        shim.env = {"PYTHONPATH": None, "PATH": "/usr/bin:/bin", "OPENCODE_SESSION_ID": SESSION, "OPENCODE_PID": "1"}

    def hook(self, event: str, *shell: str, **fields: Any) -> Any:
        """One hook; what it answered, None for nothing."""
        said = {"session_id": SESSION, "cwd": str(self.post.cwd), "hook_event_name": event, **fields}
        call = json.dumps(said, separators=(",", ":"), ensure_ascii=False)  # as JavaScript writes it
        words = [*shell, str(self.shim.checkout / "hooks/agent-mailbox-hook"), event, "opencode"]
        env = self.post.environ(self.shim.env)
        done = subprocess.run(words, input=call.encode(), env=env, capture_output=True, timeout=PATIENCE)
        assert (done.returncode, done.stderr) == (0, b""), done
        return json.loads(done.stdout)["hookSpecificOutput"] if done.stdout else None


@pytest.fixture
def session(post: Post) -> Plugged:
    """A session that has started and has nothing to read."""
    made = Plugged(Shim(post))
    assert "you are " in str(made.hook("SessionStart", source="startup"))
    made.shim.starts()
    return made


@pytest.mark.parametrize("shell", SHELLS)
def test_where_there_is_nothing_new_no_python_starts(session: Plugged, shell: str) -> None:
    """Without new mail, OpenCode's events start no Python, except once to note who wrote a file. The mail of the
    session around it is not shown."""
    words = (shutil.which(shell) or shell, *(("sh",) if shell == "busybox" else ()))
    session.shim.env["CLAUDE_CODE_SESSION_ID"] = OUTER
    session.post.register(OUTER)
    session.post.send("x", OUTER, "MAIL_FOR_THE_OUTER")
    tool = {"tool_name": "Bash", "tool_input": {"command": "make"}}
    assert session.hook("Permit", *words, **tool) is None  # it notes that nothing binds the session
    session.shim.starts()
    for event in ("UserPromptSubmit", "PostToolUse", "Stop"):
        assert session.hook(event, *words) is None
    for event in ("PreToolUse", "Permit"):
        assert session.hook(event, *words, **tool) is None
    file = {"file_path": str(session.post.scratch / "x"), "filePath": "x", "content": "agent-mailbox"}
    assert session.hook("Files", *words, tool_name="Write", tool_input=file) is None
    assert session.shim.starts() == 1  # of Files: Python first notes who wrote the file
    assert session.hook("Files", *words, tool_name="Write", tool_input=file) is None
    assert session.shim.starts() == 0


def test_mail_waits_at_a_turn_s_end_for_the_turn_that_the_doorbell_begins(session: Plugged) -> None:
    """No answer at a stop reaches the model; at a prompt and between tools mail is shown once. The end freezes."""
    post = session.post
    for event in ("UserPromptSubmit", "PostToolUse"):
        post.send("x", SESSION, f"MAIL_AT_{event}")
        assert session.hook("Stop") is None
        assert len(post.unread(SESSION)) == 1
        assert f"MAIL_AT_{event}" in session.hook(event)["additionalContext"]
        assert session.hook(event) is None
    session.hook("SessionEnd", reason="exit")
    assert post.ok("roster", "show", SESSION)["agent"]["state"] == "frozen"


def test_the_lead_hears_that_the_turn_ended_once_no_mail_waits(post: Post) -> None:
    """OpenCode's Stop tells the lead that the turn ended, unless mail waits and a doorbell can begin another turn."""
    post.register("boss")
    post.register(SESSION, "--lead", "boss")
    env = {"OPENCODE_SESSION_ID": SESSION}

    def stop() -> list[str]:
        call = json.dumps({"session_id": SESSION, "hook_event_name": "Stop"})
        assert post.call("hook", "Stop", stdin=call, env=env).rc == 0
        return post.check("boss")

    post.send("x", SESSION, "MAIL")
    assert stop() == []
    post.file("config.toml").write_text("[hook]\ndoorbell = false\n")
    assert len(stop()) == 1
    post.file("config.toml").unlink()
    post.check(SESSION)
    assert len(stop()) == 1


def ask(post: Post, event: str, tool: str, **given: Any) -> Any:
    """One call of the plugin's; the part of the answer that decides, None where nothing was said."""
    call = {"session_id": ME, "cwd": str(post.cwd), "hook_event_name": "PreToolUse", "tool_name": tool}
    stdin = json.dumps({**call, "tool_input": given})
    result = post.call("hook", event, stdin=stdin, env={"OPENCODE_SESSION_ID": ME})
    assert result.rc == 0, result
    return decision(result.stdout)


def test_a_file_is_not_sent_unasked(post: Post) -> None:
    """The client cannot be made to ask its person before a tool."""
    post.register(ME)
    post.register("other")
    said = ask(post, "PreToolUse", "Bash", command="agent-mailbox send --to other --body @/etc/hosts")
    assert said[0] == "deny"
    assert "only the person may run this" in said[1]
    assert ask(post, "PreToolUse", "Bash", command="agent-mailbox send --to other --body x") is None


def test_opencode_s_lead_decides_and_what_is_allowed_is_passed_in_silence(led: Post) -> None:
    """Rules or the lead decide each call of OpenCode, also one of a server's tool. An allowed call passes silently."""
    command(led, "policy", ME, "--deny", "mcp__shop_delete", "--allow", "Bash(touch:*)")
    assert ask(led, "Permit", "Bash", command="touch x") is None
    assert ask(led, "Permit", "mcp__shop_delete", id=1)[0] == "deny"
    command(led, "mode", ME, "safe")
    with Meanwhile(led, lambda desk, request: desk.answer(LEAD, request.id, False, notes="NOTES")):
        said = ask(led, "Permit", "Write", file_path="/x/y", content="x")
    assert said[0] == "deny"
    assert "NOTES" in said[1]


def test_opencode_s_commands_are_its_session_s(post: Post) -> None:
    """A command below OpenCode acts as the session in ``OPENCODE_SESSION_ID``. It is refused if another client's
    variable is set as well."""
    post.register("me")
    post.send("x", "me", "MAIL")
    env = {"OPENCODE_SESSION_ID": "me", "AGENT_MAILBOX_SESSION": "other"}
    assert [m["content"] for m in post.ok("check", "--peek", env=env)["messages"]] == ["MAIL"]
    assert len(post.ok("check", "--peek", env={**env, "CODEX_SESSION_ID": ""})["messages"]) == 1
    refused_both(post.call, 2, "check", env={**env, "CODEX_SESSION_ID": "one"}, said=["a client within a client"])
    result = post.call("send", "--from", "user", "--to", "all", "--body", "x", env={"OPENCODE": "1"})
    assert result.rc == 1
    assert "belongs to an agent" in result.stderr


# -- what is put into place -------------------------------------------------------------------------------------------


@pytest.fixture
def house(program: Program) -> House:
    """A project without any settings."""
    return House(program)


def places(house: House, scope: str) -> tuple[Path, list[object]]:
    """The client's directory, and the words of an installation there."""
    if scope == "project":
        return house.project / ".opencode", ["--project", house.project]
    return house.program.home / ".config/opencode", ["--user"]


@pytest.mark.parametrize("scope", ["project", "user"])
def test_all_is_put_in_once_and_taken_out_without_a_trace(house: House, scope: str) -> None:
    """The person's plugins, commands and settings beside ours stay as they are; run again, it changes nothing."""
    base, where = places(house, scope)
    house.write(b"export const Mine = async () => ({})\n", base / "plugins/mine.js")
    house.write(b"// mine\n{}", base / "opencode.jsonc")
    house.write(b"MINE", base / "commands/bye.md")
    house.write(b"# Ours\n", house.project / "CLAUDE.md")

    def tree() -> dict[str, bytes]:
        found = sorted([*base.rglob("*"), *house.project.rglob("*")])
        return {str(p): p.read_bytes() if p.is_file() else b"/" for p in found}

    def say(word: str, *words: object) -> Any:
        result = house.program.call(word, "opencode", *where, *words, "--json")
        assert result.rc == 0, result
        assert [base / "commands/bye.md"] == [base / w.split(": ")[2] for w in result.warnings] or word == "uninstall"
        return result.json

    before = tree()
    assert say("install", "--dry-run")["diff"]
    assert tree() == before
    assert say("install")["next"] == OPENCODE.after
    assert say("install")["changed"] == []
    added = {name.removeprefix(f"{base}/") for name in set(tree()) - set(before)}
    assert added == {"plugins/agent-mailbox.js", "commands/checkpoint.md", "agent-mailbox.md"}
    assert before.items() <= tree().items()
    assert texts.SECTION in (base / "agent-mailbox.md").read_text()
    say("uninstall")
    assert tree() == before


def test_an_edited_plugin_is_left(house: House) -> None:
    """``install`` and ``uninstall`` leave a plugin that the person edited, and say so."""
    base, where = places(house, "project")
    plugin = base / "plugins/agent-mailbox.js"
    assert house.program.call("install", "opencode", *where).rc == 0
    written = plugin.read_text()
    plugin.write_text(written + "// mine\n")
    for word in ("install", "uninstall"):
        result = house.program.call(word, "opencode", *where)
        assert f"left unchanged: {plugin}" in result.stderr
        assert plugin.read_text() == written + "// mine\n"


def test_xdg_config_home_names_the_user_s_directory(house: House) -> None:
    """Above the client's own."""
    env = {"XDG_CONFIG_HOME": str(house.program.home / "else")}
    result = house.program.call("install", "opencode", "--user", "--json", env=env)
    assert str(house.program.home / "else/opencode/plugins/agent-mailbox.js") in result.json["changed"]


def test_the_plugin_says_what_the_program_says() -> None:
    """The line of a wake and its exit code, the names of a nested client's variables; any path can be the hook's."""
    text = opencode_plugin.plugin_text('/a "b"/$x\\y', "agent-mailbox")
    assert opencode_plugin.hook_of(text.encode()) == '/a "b"/$x\\y'
    assert opencode_plugin.hook_of(b'const HOOK = ""\n') is None
    assert f'const LINE = "{doorbell.LINE}"\nconst WAKE = {doorbell.WAKE}\n' in text
    free = json.loads(re.findall(r"^const FREE = (.*)$", text, re.MULTILINE)[0])
    assert free == [*(f"agent-mailbox {words} *" for words in texts.FREE), "agent-mailbox roster retire"]


BROKEN_OFF = """
import { existsSync, writeFileSync } from "node:fs"
import { AgentMailbox } from "./plugin.mjs"
const client = { session: { get: async () => ({ data: {} }) }, tui: { showToast: async () => {} } }
const plugin = await AgentMailbox({ client, directory: process.cwd() })
const of = { tool: "bash", sessionID: "ses_1", callID: "1" }
const call = plugin["tool.execute.before"](of, { args: { command: "x" } })
call.then(() => console.log("runs"), (error) => console.log(error.message))
while (!existsSync("asked")) await new Promise((done) => setTimeout(done, 5))
await plugin.event({ event: { type: "session.idle", properties: { sessionID: "ses_1" } } })
writeFileSync("over", "\\n")
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node, which OpenCode's plugins are written for")
def test_no_lead_is_asked_once_the_turn_was_broken_off(tmp_path: Path) -> None:
    """The plugin asks no lead if the turn was broken off while the guard looked at the call."""
    hook = tmp_path / "hook"
    hook.write_text('#!/bin/sh\necho "$1" >>asked\n[ "$1" = Permit ] || read -r _ <over\n')
    os.mkfifo(tmp_path / "over")
    hook.chmod(0o755)
    (tmp_path / "plugin.mjs").write_text(opencode_plugin.plugin_text(str(hook), "agent-mailbox"))
    (tmp_path / "test.mjs").write_text(BROKEN_OFF)
    done = subprocess.run(["node", "test.mjs"], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.stdout, done.stderr) == ("agent-mailbox: the turn was broken off before this was decided\n", "")
    assert (tmp_path / "asked").read_text() == "PreToolUse\n"


def test_the_doctor_looks_at_the_plugin(house: House) -> None:
    """One without its hook is a problem; another version's, and two at once, are notes."""
    program = house.program
    program.env["AGENT_MAILBOX_DIR"] = str(program.box)
    assert program.call("init", program.box).rc == 0
    base, where = places(house, "project")
    assert program.call("install", "opencode", *where).rc == 0
    plugin = base / "plugins/agent-mailbox.js"
    written = plugin.read_text()

    def doctor() -> Any:
        return program.call("doctor", "--json", cwd=house.project).json

    assert doctor() == {"ok": True, "problems": []}
    plugin.write_text(written + "// of another version\n")
    (note,) = doctor()["notes"]
    assert (note["file"], "install opencode` renews" in note["what"]) == (str(plugin), True)
    plugin.write_text(re.sub(r'const HOOK = ".*"', 'const HOOK = "/gone/agent-mailbox-hook"', written))
    (problem,) = doctor()["problems"]
    assert problem["file"] == str(plugin)
    assert plugin.read_text().splitlines()[problem["line"] - 1].startswith("const HOOK")
    assert "/gone/agent-mailbox-hook is not there" in problem["what"]
    assert "install opencode" in problem["what"]
    plugin.write_text(written)
    assert program.call("install", "opencode", "--user").rc == 0
    (note,) = doctor()["notes"]
    assert "OpenCode calls us 2 times" in note["what"]


@pytest.mark.skipif(shutil.which("node") is None, reason="no node")
def test_the_section_is_named_to_the_model_once(house: House) -> None:
    """The plugin names no section where Codex's AGENTS.md holds it: OpenCode reads that file as well."""
    plugin = house.project / ".opencode/plugins/agent-mailbox.js"
    assert house.program.call("install", "opencode", "--project", house.project).rc == 0
    (house.project / ".opencode/package.json").write_text('{"type": "module"}')
    ask = f"""const {{ AgentMailbox }} = await import({json.dumps(plugin.as_uri())})
        const config = {{ permission: {{}} }}
        await (await AgentMailbox({{ client: {{}}, directory: {json.dumps(str(house.project))} }})).config(config)
        console.log((config.instructions ?? []).length)"""

    def named() -> int:
        words = ["node", "--input-type=module", "-e", ask]
        return int(subprocess.run(words, capture_output=True, check=True, timeout=PATIENCE).stdout)

    assert named() == 1
    assert house.program.call("install", "codex", "--project", house.project).rc == 0
    assert named() == 0
