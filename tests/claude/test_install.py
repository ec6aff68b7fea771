"""Installing: everything that was there stays, what is ours comes once, and going away leaves no trace.

The plugin of the checkout is what an installation would write. Settings with comments keep every byte that
nobody changed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_mailbox import __version__
from agent_mailbox.clients import places, texts
from agent_mailbox.clients.install import commented, foreign_files, hook_entries, installation, merge
from agent_mailbox.errors import Busy
from agent_mailbox.known_clients.claude_code import BELLS, CLAUDE_CODE
from agent_mailbox.known_clients.known_client import BELL, FILES, PERMIT
from scripts import plugin_files
from tests.claude.house import EVENTS, FOREIGN, SETTINGS, House
from tests.door import switches
from tests.faults.killing import killed
from tests.helpers import PATIENCE, ROOT, Post, Program, each, refused, refused_both

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.helpers import Program


# -- what is put in ---------------------------------------------------------------------------------------------------


def test_a_bare_project_gets_all_and_loses_all(house: House) -> None:
    """Hooks, rules, commands and the section; a second time nothing; afterwards not even a directory is left."""
    changed = house.install()
    assert sorted(changed) == [
        ".claude/commands/bye.md",
        ".claude/commands/checkpoint.md",
        ".claude/settings.local.json",
        "CLAUDE.md",
    ]
    for event in EVENTS:
        (command,) = house.commands(event)
        assert command.endswith(f"/agent-mailbox-hook {event}")
        assert os.access(command.split()[0], os.X_OK)
    assert set(house.loaded()["hooks"]) == set(EVENTS)
    for (bell,) in (house.bells()[event] for event in ("SessionStart", "UserPromptSubmit")):
        assert bell["command"].startswith("exec /")
        assert bell["command"].endswith("/agent-mailbox-hook Doorbell")
        assert bell["asyncRewake"] is True
        assert bell["timeout"] * 1000 < 2**31  # above that the client's timers end at once
    assert len(house.bells()) == 2
    assert house.loaded()["permissions"]["allow"] == list(texts.allow_rules("agent-mailbox"))
    before = house.tree()
    assert house.install() == []
    assert house.tree() == before
    assert sorted(house.uninstall()) == sorted(changed)
    assert house.tree() == {}
    assert house.uninstall() == []


def test_an_earlier_installation_gets_its_doorbell_and_a_persons_own_is_left(house: House) -> None:
    """Each of an event's two hooks is known by what it calls: neither takes the place of the other, nor is doubled."""
    house.install()
    whole = house.loaded()
    without = json.loads(json.dumps(whole))
    for event in BELLS:
        without["hooks"][event] = without["hooks"][event][:1]
    house.write(without)
    house.install()
    assert house.loaded() == whole
    house.write(json.loads(json.dumps(whole).replace('"exec ', '"')))
    house.install()
    assert house.loaded() == whole
    own = {"type": "command", "command": "LC_ALL=C agent-mailbox hook Doorbell", "asyncRewake": True, "timeout": 60}
    without["hooks"]["SessionStart"].append({"hooks": [own]})
    house.write(without)
    house.install()
    assert house.bells()["SessionStart"] == [own]
    assert len(house.commands("SessionStart")) == 1
    house.uninstall()
    assert house.loaded()["hooks"] == {"SessionStart": [{"hooks": [own]}]}


def test_the_hooks_run_and_show_mail(house: House) -> None:
    """A shell that runs the installed hook's command shows the mail, even without the person's PATH."""
    post = house.program
    box = house.project / "data"
    assert post.call("init", box).rc == 0
    house.install()
    sent = post.call("send", "--dir", box, "--from", "x", "--to", "all", "--body", "hello", "--json")
    assert sent.rc == 0, sent
    (command,) = house.commands("SessionStart")
    call = {"session_id": "me", "cwd": str(house.project), "hook_event_name": "SessionStart", "source": "startup"}
    env = post.environ({"PATH": "/usr/bin:/bin", "PYTHONPATH": None})
    done = subprocess.run(
        ["sh", "-c", command],
        input=json.dumps(call).encode(),
        env=env,
        cwd=post.cwd,
        capture_output=True,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert "| hello" in json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"]


def test_only_plain_mail_needs_no_asking() -> None:
    """No rule opens a command that changes who anybody is, runs maintenance, or takes files out of the mailbox."""
    opened = {rule.removeprefix("Bash(agent-mailbox ").removesuffix(")") for rule in texts.allow_rules("agent-mailbox")}
    plain = {word.removesuffix(":*") for word in opened}
    assert plain == {
        *("check", "send", "reply", "status", "show", "thread", "history", "search", "ack", "release"),
        *("dead-letters", "wait", "roster list", "roster show", "roster retire"),
        *(f"task {verb}" for verb in ("add", "list", "claim", "progress", "done", "drop", "cancel", "show")),
        *(f"note {verb}" for verb in ("add", "list", "show", "drop")),
        *("handover", "lease take", "lease list", "lease release", "watch"),
        *(f"control request {what}" for what in ("permission", "plan", "sandbox")),
        *(f"control {verb}" for verb in ("wait", "pending", "log", "report")),
    }
    assert "roster retire" in opened  # without :*, so without an id: nobody's but one's own


def test_a_closed_project_has_the_client_ask_about_all_that_acts(house: House) -> None:
    """About commands, files, the network, other agents, skills and every server; nobody is asked about reading."""
    house.say("install", "--closed")
    asks = house.loaded()["permissions"]["ask"]
    acting = ("Bash", "Edit", "Write", "NotebookEdit", "WebFetch", "WebSearch", "Agent", "Skill", "mcp__*")
    assert [tool for tool in acting if tool not in asks] == []
    assert [tool for tool in ("Read", "Grep", "Glob", "TodoWrite") if tool in asks] == []
    assert house.uninstall() != []
    assert house.tree() == {}


def test_the_standing_text_is_small() -> None:
    """The section has at most 160 tokens, counted as characters / 4; the commands name only commands that exist."""
    section = merge.with_section("x", "", texts.SECTION)
    assert len(section) / 4 <= 160
    commands = CLAUDE_CODE.files(texts.make_wording("agent-mailbox"))
    assert set(commands) == {"commands/bye.md", "commands/checkpoint.md"}
    for text in commands.values():
        for word in ("status", "history", "reply ID", "ack ID", "send --to", "check"):
            assert f"agent-mailbox {word}" in text
    assert "`agent-mailbox roster retire`" in commands["commands/bye.md"]
    assert "roster retire" not in commands["commands/checkpoint.md"]


def test_user_settings_are_where_the_client_has_them(house: House) -> None:
    """``~/.claude/settings.json``, or in ``CLAUDE_CONFIG_DIR``."""
    for env, base in (
        ({}, house.program.home / ".claude"),
        ({"CLAUDE_CONFIG_DIR": str(house.project / "c")}, house.project / "c"),
    ):
        result = house.program.call("install", "claude-code", "--user", "--json", env=env)
        assert result.rc == 0, result
        wanted = {base / "settings.json", base / "CLAUDE.md", base / "commands/bye.md", base / "commands/checkpoint.md"}
        assert {Path(p) for p in result.json["changed"] if "hook" not in p} == wanted
        assert house.program.call("uninstall", "claude-code", "--user", env=env).rc == 0
        assert not base.exists()


# -- what is kept -----------------------------------------------------------------------------------------------------


def foreign(value: dict[str, Any]) -> Any:
    """Settings without ours."""
    return merge.without_ours(value, texts.is_rule)


INDENTS: dict[str, Callable[[], bytes]] = {
    "two": lambda: json.dumps(SETTINGS, indent=2, ensure_ascii=False).encode(),
    "three": lambda: json.dumps(SETTINGS, indent=3, ensure_ascii=False).encode() + b"\n",
    "tab": lambda: json.dumps(SETTINGS, indent="\t", ensure_ascii=False).encode() + b"\n\n",
    "none": lambda: json.dumps(SETTINGS, indent=0).encode(),
    "one line": lambda: json.dumps(SETTINGS).encode() + b"\n",
    "packed": lambda: json.dumps(SETTINGS, separators=(",", ":"), ensure_ascii=False).encode(),
    "crlf": lambda: json.dumps(SETTINGS, indent=4).replace("\n", "\r\n").encode() + b"\r\n",
    "bom": lambda: b"\xef\xbb\xbf" + json.dumps(SETTINGS, indent=2, ensure_ascii=False).encode(),
}


def test_who_looks_in_the_wrong_place_is_told_where_ours_is(post: Post) -> None:
    """The client's own variable names another directory, or it is installed for all sessions: "not installed" would be
    believed, and the hooks go on."""
    other = {"CLAUDE_CONFIG_DIR": str(post.scratch / "other")}
    assert "elsewhere" not in post.call("uninstall", "claude-code", "--user").stdout
    assert post.call("install", "claude-code", "--user", env=other).rc == 0
    for words in (("--user",), ()):
        told = post.call("uninstall", "claude-code", *words).stdout.splitlines()
        assert told[0] == f"not installed in {post.cwd if not words else post.home}/.claude; nothing to change"
        assert told[1].startswith(f"ours elsewhere: {post.scratch}/other/")
        assert "`agent-mailbox uninstall --all`" in told[1]


@pytest.mark.parametrize("form", INDENTS)
def test_keys_order_form_and_other_people_s_hooks_stay(house: House, form: str) -> None:
    """Written as it was written; taking ours out again gives the same bytes even where somebody edited since."""
    before = house.write(INDENTS[form]())
    assert house.install()
    text = house.settings.read_bytes().decode("utf-8-sig")
    after = json.loads(text)
    assert list(after) == list(SETTINGS)
    assert json.dumps(foreign(after)) == json.dumps(SETTINGS)
    assert FOREIGN in [h for g in after["hooks"]["Stop"] for h in g["hooks"]]
    house.settings.write_bytes(house.settings.read_bytes() + b" ")
    house.uninstall()
    assert house.settings.read_bytes() == before + b" "


@pytest.mark.parametrize("form", INDENTS)
def test_what_nobody_edited_since_is_restored_byte_for_byte(house: House, form: str) -> None:
    """``uninstall`` gives back the files that nobody edited, byte for byte and with their mode, each time."""
    before = house.write(INDENTS[form]().replace(b'"Bash(ls:*)"', b' "Bash(ls:*)"  '))
    memory = house.write(b"# Mine\r\n\xff no UTF-8\r\n\r\n", house.memory)
    house.settings.chmod(0o640)
    for _ in range(2):
        house.install()
        assert house.settings.read_bytes() != before
        assert house.settings.stat().st_mode & 0o777 == 0o640
        house.install()
        house.uninstall()
        assert (house.settings.read_bytes(), house.memory.read_bytes()) == (before, memory)
        assert house.settings.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("data", [b"", b"{}", b" \n", b"{ }\n"])
def test_an_empty_file_is_one_without_settings(house: House, data: bytes) -> None:
    """``install`` fills an empty settings file, and ``uninstall`` gives back its exact bytes."""
    house.write(data)
    house.install()
    assert set(house.loaded()) == {"hooks", "permissions"}
    house.uninstall()
    assert house.settings.read_bytes() == data


def test_a_symlink_is_followed(house: House) -> None:
    """The link stays one; what it leads to changes; a dangling one's target is made and goes."""
    real = house.program.scratch / "dotfiles/claude.json"
    before = house.write(SETTINGS, real)
    house.settings.parent.mkdir()
    house.settings.symlink_to(real)
    house.memory.symlink_to(house.program.scratch / "dotfiles/AGENTS.md")
    house.install()
    assert house.settings.is_symlink()
    assert house.memory.is_symlink()
    assert json.dumps(foreign(json.loads(real.read_bytes()))) == json.dumps(SETTINGS)
    house.uninstall()
    assert real.read_bytes() == before
    assert house.settings.is_symlink()
    assert not house.memory.exists()


def test_after_an_edit_only_ours_goes(house: House) -> None:
    """``uninstall`` keeps what somebody added after ``install``, and a rule that the person had before."""
    house.write({"permissions": {"allow": ["Bash(agent-mailbox check:*)"]}})
    house.write(b"Mine.\n", house.memory)
    house.install()
    value = house.loaded()
    value["hooks"]["Stop"][0]["hooks"].append(FOREIGN)
    value["hooks"]["Notification"] = [{"hooks": [FOREIGN]}]
    value["permissions"]["allow"].append("Bash(make:*)")
    house.write(value)
    house.write(house.memory.read_bytes() + b"More of mine.\n", house.memory)
    house.uninstall()
    assert house.loaded() == {
        "permissions": {"allow": ["Bash(agent-mailbox check:*)", "Bash(make:*)"]},
        "hooks": {"Stop": [{"hooks": [FOREIGN]}], "Notification": [{"hooks": [FOREIGN]}]},
    }
    assert house.memory.read_bytes() == b"Mine.\nMore of mine.\n"


def test_a_read_only_file_stays_as_it_is(house: House) -> None:
    """Neither command replaces it. Nothing else is changed then, and the way to allow it is named."""
    foreign = house.write(SETTINGS)
    house.settings.chmod(0o444)

    def is_refused(word: str) -> None:
        refused(house.program.call(word, "claude-code", "--project", house.project), 1, "is read-only", "chmod u+w")

    is_refused("install")
    assert (house.settings.read_bytes(), house.memory.exists()) == (foreign, False)
    house.settings.chmod(0o644)
    house.install()
    house.settings.chmod(0o444)
    assert house.install() == [], "nothing is to change"
    installed = house.settings.read_bytes()
    is_refused("uninstall")
    assert "`chmod u+w " in house.program.call("uninstall", "--all").stderr
    assert house.settings.read_bytes() == installed
    assert house.memory.exists()


def test_an_edited_command_is_left_alone(house: House) -> None:
    """``install`` and ``uninstall`` leave a command that the person edited, and report it."""
    house.install()
    bye = house.project / ".claude/commands/bye.md"
    bye.write_text("my own\n")
    answer = house.say("install")
    assert [left["path"] for left in answer["left"]] == [str(bye)]
    assert [left["path"] for left in house.say("uninstall")["left"]] == [str(bye)]
    assert house.tree() == {".claude": b"/", ".claude/commands": b"/", ".claude/commands/bye.md": b"my own\n"}
    house.say("install")
    house.uninstall()
    assert bye.read_text() == "my own\n"


def test_a_command_of_an_earlier_version_is_renewed(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """``install`` renews a command that an earlier version wrote, and ``uninstall`` then leaves nothing."""
    with monkeypatch.context() as earlier:
        earlier.setitem(texts.TASKS, "bye", ("as it was", ""))
        house.install()
    assert house.install() == [".claude/commands/bye.md"]
    house.uninstall()
    assert house.tree() == {}


def test_killed_while_renewing_it_is_still_known_what_is_ours(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the record and the file: what is there is the earlier version's, not somebody's edit."""
    with monkeypatch.context() as earlier:
        earlier.setitem(texts.TASKS, "bye", ("as it was", ""))
        house.install()
    environ = house.program.environ()
    (change,) = installation.plan_installation(
        places.project_target(CLAUDE_CODE, str(house.project)), environ, "agent-mailbox"
    ).changes
    assert change.entry is not None
    foreign_files.FileRecords(environ).keep_record(change.path, change.entry)
    house.uninstall()
    assert house.tree() == {}


# -- what is put right ------------------------------------------------------------------------------------------------


def test_stale_and_doubled_hooks_of_ours_become_one(house: House) -> None:
    """Whatever earlier installation they are from; a timeout somebody gave ours stays; foreign ones do not move."""
    old = {"type": "command", "command": "'/gone away/hooks/agent-mailbox-hook' Stop", "timeout": 42}
    value = {
        "hooks": {
            "Stop": [
                {"hooks": [FOREIGN, old, FOREIGN]},
                {"hooks": [{"type": "command", "command": "agent-mailbox hook Stop"}]},
            ],
            "SessionStart": [
                {"matcher": "startup", "hooks": [{"type": "command", "command": "agent-mailbox hook SessionStart"}]}
            ],
        }
    }
    house.write(value)
    house.install()
    ((command,),) = [house.commands("Stop")]
    assert house.loaded()["hooks"]["Stop"] == [{"hooks": [FOREIGN, {**old, "command": command}, FOREIGN]}]
    group, _ = house.loaded()["hooks"]["SessionStart"]
    assert "matcher" not in group  # one that calls us for some starts only is no whole installation
    assert house.install() == []
    house.uninstall()
    assert house.loaded() == {"hooks": {"Stop": [{"hooks": [FOREIGN, FOREIGN]}]}}  # it was ours, whoever put it in


def test_a_call_of_ours_that_does_more_is_the_person_s(house: House) -> None:
    """A role set for the session, a directory changed to: it stays as it is, and nothing is put beside it."""
    own = {"hooks": [{"type": "command", "command": "AGENT_MAILBOX_ROLE=x /x/agent-mailbox-hook SessionStart"}]}
    other = {"hooks": [{"type": "command", "command": "cd /tmp && agent-mailbox hook Stop"}]}
    house.write({"hooks": {"SessionStart": [own], "Stop": [other]}})
    house.install()
    assert house.loaded()["hooks"]["SessionStart"] == [own, {"hooks": house.bells()["SessionStart"]}]
    assert house.loaded()["hooks"]["Stop"] == [other]
    house.settings.write_bytes(house.settings.read_bytes() + b"\n")
    house.uninstall()
    assert house.loaded() == {"hooks": {"SessionStart": [own], "Stop": [other]}}


def test_a_section_is_renewed_where_it_stands(house: House) -> None:
    """Text before and after stays; a second section goes; a marker without its fellow is refused."""
    old = f"{merge.BEGIN}\nold\n{merge.END}"
    house.write(f"one\n\n{old}\ntwo\n\n{old}\nthree\n".encode(), house.memory)
    house.install()
    text = house.memory.read_text()
    assert text == f"one\n\n{merge.BEGIN}\n{texts.SECTION}\n{merge.END}\ntwo\nthree\n"
    for broken in (f"x\n{merge.BEGIN}\ny\n", f"x\n{merge.END}\ny\n"):
        before = house.write(broken.encode(), house.memory)
        for word in ("install", "uninstall"):
            refused(house.program.call(word, "claude-code", "--project", house.project), 3, "only one of")
            assert house.memory.read_bytes() == before


@given(st.text(st.sampled_from("ab \n\r"), max_size=12))
@settings(max_examples=3 * settings().max_examples)
def test_a_section_comes_and_goes_without_a_trace(text: str) -> None:
    """Whatever the text, ours is in it once, and without ours it is the same but for the end of its last line."""
    path = "CLAUDE.md"
    once = merge.with_section(path, text, "ours")
    assert once.count(merge.BEGIN) == once.count(merge.END) == 1
    assert merge.with_section(path, once, "ours") == once
    assert once.startswith(text)
    assert merge.without_section(path, once).rstrip("\r\n") == text.rstrip("\r\n")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
HOOKS = st.fixed_dictionaries({"type": st.just("command"), "command": st.sampled_from(["true", "echo x"])})
GROUPS = st.lists(st.fixed_dictionaries({"hooks": st.lists(HOOKS, max_size=2)}), max_size=2) | st.lists(
    JSON, max_size=2
)
SHAPES = st.fixed_dictionaries(
    {},
    optional={
        "model": JSON,
        "hooks": st.dictionaries(st.sampled_from((*EVENTS, "PreToolUse")), GROUPS, max_size=3),
        "permissions": st.fixed_dictionaries({}, optional={"allow": st.lists(JSON, max_size=2), "deny": JSON}),
    },
)


def bare(value: dict[str, Any]) -> dict[str, Any]:
    """Settings without the empty tables and lists that may stand in our places: nobody can tell whose they were."""
    fewer = dict(value)
    for key in ("hooks", "permissions"):
        if key in fewer:
            fewer[key] = {name: inner for name, inner in fewer[key].items() if inner != []}
    return {key: inner for key, inner in fewer.items() if inner != {} or key == "model"}


@given(SHAPES, st.sampled_from([None, "", "  ", "\t"]), st.booleans())
@settings(max_examples=5 * settings().max_examples, suppress_health_check=[HealthCheck.too_slow])
def test_settings_of_any_content_come_through_unharmed(value: dict[str, Any], indent: str | None, ascii: bool) -> None:
    """Ours in, once; ours out: every key, value and order as it was."""
    hooks = [(wanted, f"/x/agent-mailbox-hook {wanted.event}") for wanted in CLAUDE_CODE.hooks()]
    sandbox = {"sandbox": texts.sandbox_settings("agent-mailbox", ["/box"], ["example.org"])}
    ours = merge.Ours(hooks, {"permissions": {"allow": [*texts.allow_rules("agent-mailbox")]}, **sandbox})
    data = json.dumps(value, indent=indent, ensure_ascii=ascii).encode(
        "utf-8", "backslashreplace" if ascii else "replace"
    )
    read, form = merge.parse_settings("x", data)
    once = merge.merge_ours("x", read, ours)
    again, same = merge.parse_settings("x", merge.write_settings(once, form))
    assert again == once
    assert merge.merge_ours("x", again, ours) == once
    assert same.newline == form.newline
    for event in EVENTS:
        calls = [
            h for g in again["hooks"][event] if hook_entries.is_group(g) for h in g["hooks"] if hook_entries.calls_us(h)
        ]
        more = [BELL] if event in BELLS else [PERMIT, FILES] if event == "PreToolUse" else []
        assert [hook_entries.part_called(hook) for hook in calls] == ["", *more]
    back = merge.without_settings(merge.without_ours(again, texts.is_rule), sandbox, read)
    assert json.dumps(bare(back)) == json.dumps(bare(read))


needs_sandbox = pytest.mark.skipif(
    not (shutil.which("bwrap") and shutil.which("socat")),
    reason="no bwrap or socat, without which Claude Code has no sandbox (apt-get install bubblewrap socat)",
)
SANDBOX = {
    "sandbox": {"enabled": False, "network": {"allowedDomains": ["example.net"]}, "excludedCommands": ["docker:*"]}
}


def test_the_sandbox_keeps_what_runs_outside_it(tmp_path: Path) -> None:
    """The user's records, the package, its environment; and a program in our stead where the PATH leads into the
    project. A place of the PATH elsewhere is not the project's."""
    project = tmp_path / "project"
    searched = f"/usr/bin:{project}/.venv/bin:{tmp_path}/project2/bin::{project}/node_modules/.bin"
    environ = {"HOME": str(tmp_path / "home"), "PATH": searched}
    kept = installation.own_places(environ, str(project))
    assert {installation.PACKAGE, *((sys.prefix,) if sys.prefix != sys.base_prefix else ())} <= {*kept}
    planted = [place for place in kept if place.endswith("/bin/agent-mailbox") or "node_modules" in place]
    assert planted == [f"{project}/.venv/bin/agent-mailbox", f"{project}/node_modules/.bin/agent-mailbox"]


@needs_sandbox
def test_the_sandbox_keeps_commands_from_the_mailbox_and_lets_them_reach_the_hosts_named(house: House) -> None:
    """Beside what was there; going away gives back what was there, also from a file that was edited since."""
    assert house.program.call("init", house.project / "data").rc == 0
    before = house.write(SANDBOX)
    house.say("install", "--sandbox", "--host", "example.org")
    sandbox = house.loaded()["sandbox"]
    assert sandbox["enabled"] is True
    assert sandbox["autoAllowBashIfSandboxed"] is sandbox["allowUnsandboxedCommands"] is False
    assert sandbox["network"] == {"allowedDomains": ["example.net", "example.org"]}
    assert sandbox["excludedCommands"] == ["docker:*", *(rule[5:-1] for rule in texts.allow_rules("agent-mailbox"))]
    assert "agent-mailbox:*" not in sandbox["excludedCommands"]
    kept = sandbox["filesystem"]["denyWrite"]
    assert kept[0] == str(house.project / "data")
    assert {str(house.program.user_state), installation.PACKAGE} <= {*kept}
    house.write({**house.loaded(), "model": "opus"})
    house.uninstall()
    hosts = {"allowedDomains": ["example.net", "example.org"]}  # which of them are ours nobody knows by then
    assert house.loaded() == {"sandbox": {**SANDBOX["sandbox"], "network": hosts}, "model": "opus"}
    house.write(before)
    house.say("install", "--sandbox")
    house.uninstall()
    assert house.settings.read_bytes() == before


def test_a_sandbox_that_the_client_could_not_start_is_refused(house: House) -> None:
    """Before anything is written; the package is named. The client would refuse to start."""
    assert house.program.call("init", house.project / "data").rc == 0
    tools = house.program.scratch / "tools"
    words = ("install", "claude-code", "--project", house.project, "--sandbox")
    refused(house.program.call(*words, env={"PATH": str(tools)}), 1, "bwrap and socat", "install bubblewrap socat")
    (tools / "bwrap").symlink_to("/bin/true")
    refused(house.program.call(*words, env={"PATH": str(tools)}), 1, "needs socat", "apt-get install socat")
    assert not house.settings.exists()


def test_beside_an_installation_for_all_sessions_a_project_gets_its_bounds_alone(house: House) -> None:
    """No hook twice; the same command again changes nothing, and uninstalling takes the bounds out."""
    assert house.program.call("install", "claude-code", "--user").rc == 0
    words = ("install", "claude-code", "--project", house.project)
    refused(house.program.call(*words), 1, "already covers these sessions")
    house.say("install", "--closed")
    assert house.loaded() == {"permissions": {"ask": [*texts.FLOOR]}}
    assert house.say("install", "--closed")["changed"] == []
    assert not house.memory.exists()
    house.uninstall()
    assert not house.settings.exists()
    before = house.write({"model": "opus", "permissions": {"ask": ["WebFetch"]}})
    house.say("install", "--closed")
    house.write({**house.loaded(), "model": "sonnet"})
    house.uninstall()
    assert house.loaded() == {"model": "sonnet", "permissions": {"ask": ["WebFetch"]}}
    house.write(before)


@needs_sandbox
def test_what_an_earlier_version_freed_is_taken_out(house: House) -> None:
    """Rules by which decisions ran unasked, and the sandbox's exclusion of every command; the person's own stay."""
    assert house.program.call("init", house.project / "data").rc == 0
    house.say("install", "--sandbox")
    kept = house.loaded()
    old = [f"Bash(agent-mailbox control {verb}:*)" for verb in ("approve", "deny", "answer", "request")]
    theirs = ["Bash(agent-mailbox control mode:*)", "Bash(docker:*)"]
    house.write(
        {
            **kept,
            "permissions": {**kept["permissions"], "allow": [*kept["permissions"]["allow"], *old, *theirs]},
            "sandbox": {**kept["sandbox"], "excludedCommands": ["docker:*", "agent-mailbox:*"]},
        }
    )
    result = house.program.call("doctor", "--json", cwd=house.project)
    assert result.rc == 3
    (problem,) = [p for p in result.json["problems"] if "unasked" in p["what"]]
    assert all(rule in problem["what"] for rule in old)
    house.say("install")
    now = house.loaded()
    assert now["permissions"]["allow"] == [*kept["permissions"]["allow"], *theirs]
    assert now["sandbox"]["excludedCommands"] == ["docker:*"]
    assert house.program.call("doctor", cwd=house.project).rc == 0


def test_the_floor_holds_every_tool_that_acts() -> None:
    """Those the client ships; one that only looks, asks the person or keeps the model's own notes is none."""
    assert {"Bash", "Edit", "Write", "NotebookEdit", "WebFetch", "Agent", "Skill", "mcp__*"} <= set(texts.FLOOR)
    assert {"EnterWorktree", "ExitWorktree", "Workflow", "CronCreate", "RemoteTrigger"} <= set(texts.FLOOR)


@needs_sandbox
def test_a_sandbox_that_would_keep_commands_from_nothing_is_refused(house: House) -> None:
    """No mailbox, none of a project's, one that is the whole project; hosts without a sandbox, and what is no host."""
    words = ("install", "claude-code", "--project", house.project)
    hint = f"`agent-mailbox init {house.project / 'data'}`"
    refused(house.program.call(*words, "--sandbox", cwd=house.program.scratch), 1, "no mailbox", hint)
    refused(house.program.call(*words, "--host", "example.org"), 2, "add --sandbox")
    refused(house.program.call("install", "claude-code", "--user", "--sandbox"), 2, "excludes --user")
    assert house.program.call("init", house.project / "data").rc == 0
    for word in ("https://example.org", "*", "example.org/x", "a b"):
        refused(house.program.call(*words, "--sandbox", "--host", word), 2, "not a host name")
    refused(house.program.call(*words, "--sandbox", "--host", ""), 2, "--host is empty")
    shutil.rmtree(house.project / "data")
    assert house.program.call("init", house.project).rc == 0
    told = refused(
        house.program.call(*words, "--sandbox"), 1, "the mailbox contains the project", "leave --sandbox out"
    )
    assert "agent-mailbox init" not in told.stderr  # another below it stays unseen: the project's own comes first
    assert not house.settings.exists()


# -- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"{", "not JSON"),
        (b'{"a": 1,}', "not JSON"),
        (b'// comment\n{"a": 1}', "not JSON"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": "\xff"}', "not JSON"),
        (b"[]", "not an object"),
        (b'{"hooks": []}', "hooks is not an object"),
        (b'{"hooks": {"Stop": {}}}', "hooks.Stop is not an array"),
        (b'{"permissions": 5}', "permissions is not an object"),
        (b'{"permissions": {"allow": "x"}}', "permissions.allow is not an array"),
        (b'{"hooks": {}, "hooks": {}}', "'hooks' occurs twice"),
        (b"[" * 100_000, "not JSON"),
    ],
)
def test_settings_that_cannot_be_merged_are_refused_and_nothing_changes(house: House, data: bytes, said: str) -> None:
    """Exit 3, the file named; no other file is touched either."""
    house.write(data)
    before = house.tree()
    words = ("install", "claude-code", "--project", house.project)
    refused_both(house.program.call, 3, *words, said=(said, str(house.settings), "nothing was changed"))
    assert house.tree() == before


def test_what_cannot_be_written_is_a_storage_error(house: House) -> None:
    """Exit 5: a directory in the file's place, a file in the directory's, a place where nobody may write."""
    words = ("install", "claude-code", "--project", house.project)
    house.settings.mkdir(parents=True)
    refused_both(house.program.call, 5, *words, said=(str(house.settings),))
    assert house.memory.exists() is False
    shutil.rmtree(house.settings.parent)
    house.settings.parent.write_text("in the way")
    refused_both(house.program.call, 5, *words)
    assert house.tree() == {".claude": b"in the way"}


def test_a_directory_that_may_not_be_written_is_a_storage_error(house: House) -> None:
    """Nothing of ours comes into it."""
    if os.geteuid() == 0:
        if not os.path.isdir("/sys/kernel"):
            pytest.skip("root may write everywhere here")
        (house.project / ".claude").symlink_to("/sys/kernel")
    else:
        (house.project / ".claude").mkdir(mode=0o500)
    before = sorted(os.listdir(house.project))
    refused(house.program.call("install", "claude-code", "--project", house.project), 5, "cannot write")
    assert sorted(os.listdir(house.project)) == before
    assert not any(
        name.startswith(".") and name.endswith(".agent-mailbox") for name in os.listdir(house.project / ".claude")
    )


def test_a_write_that_fails_half_way_leaves_the_files_as_they_were(house: House) -> None:
    """A disk that is full, as far as a process can see: nothing half written stays beside them."""
    house.write(SETTINGS)
    house.write(b"Mine. " * 30, house.memory)
    before = house.tree()
    code = (
        "import resource, sys\n"
        "from agent_mailbox.launch import main\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    env = {"PYTHONDONTWRITEBYTECODE": "1"}  # else the interpreter would keep half of a module for everybody
    result = house.program.python(code, "install", "claude-code", "--project", house.project, env=env)
    refused(result, 5, "cannot write")
    assert house.tree() == before
    assert [path for path in house.program.scratch.rglob(".*") if path.name.endswith(".agent-mailbox")] == []


def test_usage_and_places_that_are_not_there(house: House) -> None:
    """Exit 2 for two places at once, exit 1 for none."""
    both = ("install", "claude-code", "--user", "--project", house.project)
    refused_both(house.program.call, 2, *both, said=("exclude each other",))
    gone = house.project / "gone"
    for word in ("install", "uninstall"):
        refused_both(house.program.call, 1, word, "claude-code", "--project", gone, said=(str(gone),))


def test_a_dry_run_shows_the_diff_and_writes_nothing(house: House) -> None:
    """A dry run of ``install`` or ``uninstall`` shows the diff and writes nothing. The real run prints the same diff
    first."""
    house.write(SETTINGS)
    house.write(b"Mine. \x1b[31m\n", house.memory)
    for word in ("install", "uninstall"):
        before = house.tree(), sorted(house.program.home.rglob("*"))
        shown = house.program.call(word, "claude-code", "--project", house.project, "--dry-run")
        assert shown.rc == 0, shown
        assert f"+++ {house.memory}" in shown.stdout
        assert f"--- {house.settings}" in shown.stdout
        assert "\x1b" not in shown.stdout
        told = house.say(word, "--dry-run")
        assert (told["dry_run"], told["diff"]) == (True, shown.stdout)
        assert (house.tree(), sorted(house.program.home.rglob("*"))) == before
        done = house.program.call(word, "claude-code", "--project", house.project)
        assert done.stdout.startswith(shown.stdout)
        changed = [line.partition(" ")[2] for line in done.stdout.removeprefix(shown.stdout).splitlines()]
        assert set(told["changed"]) <= set(changed)


def test_a_file_that_changes_between_plan_and_change_is_not_overwritten(house: House) -> None:
    """Busy, and what somebody else wrote stays; a repetition merges into it."""
    environ = house.program.environ()
    plan = installation.plan_installation(
        places.project_target(CLAUDE_CODE, str(house.project)), environ, "agent-mailbox"
    )
    theirs = house.write(SETTINGS)
    with pytest.raises(Busy, match="another program"):
        installation.carry_out(plan, environ)
    assert house.settings.read_bytes() == theirs
    assert house.install() == [".claude/settings.local.json"]
    house.uninstall()
    assert house.tree() == {".claude": b"/", ".claude/settings.local.json": theirs}


def test_uninstalling_where_nothing_is_installed_writes_nothing(house: House) -> None:
    """``uninstall`` writes nothing, not even into the state directory, where nothing is installed."""
    house.write(SETTINGS)
    house.write(b"Mine.\n", house.memory)
    before = house.tree(), sorted(house.program.home.rglob("*"))
    assert house.uninstall() == []
    assert (house.tree(), sorted(house.program.home.rglob("*"))) == before


def test_hooks_are_not_put_in_twice_unless_asked(house: House) -> None:
    """``install`` refuses a project whose user has the hooks already, and writes nothing. It warns if ``--force`` or an
    install for the user makes them run twice."""
    call, here = house.program.call, {"cwd": house.project}
    user, project = ("install", "claude-code", "--user"), ("install", "claude-code", "--project", house.project)
    assert call(*user, **here).rc == 0
    before = house.tree(), sorted(house.program.home.rglob("*"))
    result = refused_both(call, 1, *project, said=("twice", "--force", "uninstall claude-code --user"), **here)
    assert result.json["error"]["code"] == "refused"
    refused(call(*project, "--dry-run", **here), 1)
    assert (house.tree(), sorted(house.program.home.rglob("*"))) == before
    for words, way in (
        ((*project, "--force"), "uninstall claude-code --user"),
        (user, f"uninstall claude-code --project {house.project}"),
        (project, "uninstall claude-code --user"),
    ):
        result = call(*words, **here)
        assert result.rc == 0
        (warning,) = result.warnings
        assert "twice" in warning
        assert way in warning
    for words in (user, project):
        assert call("uninstall", *words[1:], **here).rc == 0
    assert house.tree() == {}


# -- the shim ---------------------------------------------------------------------------------------------------------


def run(house: House, *words: object, **how: Any) -> Any:
    """The JSON answer of a process of the copy."""
    result = house.program.run(*words, "--json", **how)
    assert result.rc == 0, result
    return result.json


def test_an_installed_package_writes_a_shim_that_finds_it(copied: House) -> None:
    """An installed package writes one shim for all projects, which works in an empty environment. The last
    ``uninstall`` removes it."""
    other = copied.program.scratch / "other"
    other.mkdir()
    for project in (copied.project, other):
        run(copied, "install", "claude-code", "--project", project)
    shim = copied.program.home / ".local/share/agent-mailbox/agent-mailbox-hook"
    assert copied.commands("Stop") == [f"{shim} Stop"]
    done = subprocess.run([shim, "Nonsense"], env={}, capture_output=True, timeout=PATIENCE)
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"no hook for 'Nonsense'" in done.stderr
    assert b"if another version installed it, run `agent-mailbox setup`" in done.stderr
    run(copied, "uninstall", "claude-code", "--project", copied.project)
    assert shim.exists()
    shim.write_text("#!/bin/sh\n")
    assert run(copied, "install", "claude-code", "--project", other)["changed"] == [str(shim)]
    run(copied, "uninstall", "claude-code", "--project", other)
    assert not shim.parent.exists()


def test_hooks_name_the_shim_absolutely_below_a_relative_home(copied: House) -> None:
    """A client runs its hooks in a directory of its own choice, so ``HOME=home`` is taken from where we were run."""
    run(copied, "install", "claude-code", "--project", copied.project, cwd=copied.program.scratch, env={"HOME": "home"})
    assert copied.commands("Stop") == [f"{copied.program.home}/.local/share/agent-mailbox/agent-mailbox-hook Stop"]


def test_two_spellings_of_a_project_are_no_two_installations(copied: House) -> None:
    """Claude Code names the project as it was started there: the doctor knows it as the mailbox's own, too."""
    (link := copied.program.scratch / "link").symlink_to(copied.project)
    run(copied, "init", copied.project / "data")
    for client in ("claude-code", "gemini"):
        run(copied, "install", client, "--project", copied.project)
    for spelled in (f"{copied.project}/", str(link)):
        env = {"CLAUDE_PROJECT_DIR": spelled}
        assert run(copied, "doctor", cwd=copied.project, env=env) == {"ok": True, "problems": []}, spelled


def test_the_doctor_tells_a_shim_that_is_stale_or_leads_nowhere(copied: House) -> None:
    """Another version's and doubled ones are notes; one whose package is gone, no program on PATH, is a problem."""
    program = copied.program
    program.env["AGENT_MAILBOX_DIR"] = str(program.box)
    run(copied, "init", program.box)
    here = {"cwd": copied.project}
    run(copied, "install", "claude-code", **here)
    assert run(copied, "doctor", **here) == {"ok": True, "problems": []}
    run(copied, "install", "claude-code", "--user", **here)
    hooks, bells, permits, files = run(copied, "doctor", **here)["notes"]
    assert files["what"].startswith("PreToolUse calls us 2 times for the files it may write, here, and in")
    assert permits["what"].startswith("PreToolUse calls us 2 times for what it may do, here, and in")
    assert hooks["file"] == bells["file"] == str(copied.settings)
    assert hooks["what"].startswith(f"{', '.join(EVENTS)} call us 2 times, here, and in")
    assert bells["what"].startswith(f"{', '.join(BELLS)} call us 2 times for its doorbell, here, and in")
    run(copied, "uninstall", "claude-code", "--user")
    shim = program.home / ".local/share/agent-mailbox/agent-mailbox-hook"
    shim.write_text(shim.read_text() + "# older\n")
    (note,) = run(copied, "doctor", **here)["notes"]
    assert (note["file"], "agent-mailbox install" in note["what"]) == (str(shim), True)
    shim.write_text(shim.read_text().replace("agent_mailbox/__main__.py'", "gone/__main__.py'"))
    result = program.run("doctor", "--json", env={"PATH": "/usr/bin:/bin"}, **here)
    assert result.rc == 3, result
    assert all("gone/__main__.py" in p["what"] for p in result.json["problems"])


def test_the_command_that_renews_a_stale_shim_works_as_it_stands(copied: House) -> None:
    """It names the user's own installation, or the project of another directory."""
    program = copied.program
    program.env["AGENT_MAILBOX_DIR"] = str(program.box)
    run(copied, "init", program.box)
    shim = program.home / ".local/share/agent-mailbox/agent-mailbox-hook"
    for scope in (("--user",), ("--project", copied.project)):
        run(copied, "install", "claude-code", *scope)
        shim.write_text(shim.read_text() + "# older\n")
        env = {"CLAUDE_PROJECT_DIR": str(copied.project)}
        (note,) = run(copied, "doctor", cwd=program.home, env=env)["notes"]
        named = note["what"].split("`")[1]
        assert named == " ".join(map(str, ("agent-mailbox install claude-code", *scope)))
        assert run(copied, *named.split()[1:], cwd=program.home)["changed"] == [str(shim)]
        run(copied, "uninstall", "claude-code", *scope)


# -- killed ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["install", "uninstall"])
def test_killed_at_any_step_each_file_is_old_or_new_and_a_repetition_completes(house: House, word: str) -> None:
    """Every file of the project is one or the other; then uninstalling gives every byte back."""
    house.write(SETTINGS)
    house.write(b"Mine.\n", house.memory)
    old = house.tree()
    house.install()
    new = house.tree()
    if word == "install":
        house.uninstall()
    seen = set()
    for _ in killed(house.program, word, "claude-code", "--project", house.project, places=[house.project]):
        for name, data in house.tree().items():
            if not name.endswith(".agent-mailbox"):
                assert data in (old.get(name), new.get(name)), name
        seen.add(house.settings.read_bytes())
        house.say(word)
        assert house.tree() == (new if word == "install" else old)
        house.uninstall()
        assert house.tree() == old
    assert seen == {old[".claude/settings.local.json"], new[".claude/settings.local.json"]}


# -- where an installed shim finds the user's records -----------------------------------------------------------------


def test_an_installed_shim_bears_the_place_of_the_records_and_no_variable_moves_it(copied: House) -> None:
    """Another state directory in the environment, with a stamp that frees: not looked at."""
    program = copied.program
    run(copied, "init", program.box)
    run(copied, "install", "claude-code", "--project", copied.project)
    shim = program.home / ".local/share/agent-mailbox/agent-mailbox-hook"
    assert (program.user_state / "shims").read_text() == f"{shim}\n"
    run(copied, "roster", "register", "--session-id", "worker", "--dir", program.box)
    deny = ("control", "policy", "worker", "--deny", "Bash", "--session", "user", "--dir", program.box)
    run(copied, *deny)
    lie = program.scratch / "lie"
    (lie / "unbound").mkdir(parents=True)
    (lie / "unbound/worker").write_text(f"{program.box}\n")
    call = {"session_id": "worker", "cwd": "/", "tool_name": "Bash", "tool_input": {"command": "x"}}
    for name in ("HOME", "XDG_STATE_HOME"):
        env = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(program.home),
            name: str(lie),
            switches.STATE: str(program.user_state),
        }
        env |= {"CLAUDE_CODE_SESSION_ID": "worker", "AGENT_MAILBOX_DIR": str(program.box)}
        done = subprocess.run(
            [shim, "Permit"], input=json.dumps(call).encode(), env=env, capture_output=True, timeout=PATIENCE
        )
        assert b'"deny"' in done.stdout, (name, done)
        assert not (lie / "bound").exists()
    assert (program.user_state / "bound/worker").exists()
    run(copied, "uninstall", "claude-code", "--project", copied.project)
    assert (program.user_state / "shims").read_text() == ""


@pytest.mark.parametrize(
    ("version", "event"), [("2.1.118", "PostToolUse"), ("2.1.119", "PostToolBatch"), ("?", "PostToolBatch")]
)
def test_mail_between_tools_comes_by_the_event_that_the_client_has(program: Program, version: str, event: str) -> None:
    """A version without the later event gets the earlier one, or none. An installation over another takes that one's
    away, and leaves the person's own hooks there."""
    there = program.scratch / "there"
    there.mkdir()
    tool = there / "claude"
    tool.write_text(f"#!/bin/sh\necho '{version} (Claude Code)'\n")
    tool.chmod(0o755)
    program.env["PATH"] = f"{there}:{program.env['PATH']}"
    other = {"PostToolUse": "PostToolBatch", "PostToolBatch": "PostToolUse"}[event]
    settings = program.cwd / ".claude/settings.local.json"
    settings.parent.mkdir()
    own = {"type": "command", "command": "mine"}
    groups = [{"hooks": [own]}, {"hooks": [{"type": "command", "command": f"/x/agent-mailbox-hook {other}"}]}]
    of_none = [{"matcher": "rate_limit", "hooks": [{"type": "command", "command": "/x/agent-mailbox-hook "}]}]
    settings.write_text(json.dumps({"hooks": {other: groups, "": of_none}}))
    assert program.call("install", "claude-code", "--project", program.cwd).rc == 0
    hooks = json.loads(settings.read_text())["hooks"]
    assert hooks[other] == [{"hooks": [own]}]
    assert [hook["command"].rpartition(" ")[2] for group in hooks[event] for hook in group["hooks"]] == [event]
    assert ("StopFailure" in hooks, "" in hooks) == (event == "PostToolBatch", False)
    assert "but not" not in program.call("doctor", "--dir", program.box).stdout


# -- the plugin -------------------------------------------------------------------------------------------------------


def test_the_checkout_holds_the_files_as_they_would_be_written(tmp_path: Path) -> None:
    """Byte for byte; else `scripts/plugin` was forgotten. Nothing else lies where the client would take it up."""
    plugin_files.write_plugin(str(tmp_path))
    written = {str(p.relative_to(tmp_path)): p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    for name, data in written.items():
        assert (ROOT / name).read_bytes() == data, f"{name}: run scripts/plugin"
    for place in (".claude-plugin", "commands", "skills", "agents"):
        there = {str(p.relative_to(ROOT)) for p in (ROOT / place).rglob("*") if p.is_file()}
        assert there == {name for name in written if name.startswith(f"{place}/")}


def test_its_hooks_are_those_of_an_installation() -> None:
    """Every event, matcher and timeout; only where the shim lies is told otherwise."""
    shim = "/x/agent-mailbox-hook"
    ours = merge.Ours(
        [(one, one.command_line(texts.hook_command(shim, one.event, CLAUDE_CODE))) for one in CLAUDE_CODE.hooks()], {}
    )
    installed = merge.merge_ours("x", {}, ours)["hooks"]
    plugged = json.loads(
        plugin_files.plugin_files()[plugin_files.HOOKS_FILE].replace(json.dumps(plugin_files.PLACE)[1:-1], f"{shim}")
    )["hooks"]
    assert plugged == installed
    assert all(hook_entries.is_ours(hook) for groups in plugged.values() for group in groups for hook in group["hooks"])
    assert os.access(ROOT / "hooks/agent-mailbox-hook", os.X_OK)


def test_its_manifests_name_this_version_and_one_another() -> None:
    """The market has one entry, which is the checkout itself."""
    files = plugin_files.plugin_files()
    manifest = json.loads(files[".claude-plugin/plugin.json"])
    market = json.loads(files[".claude-plugin/marketplace.json"])
    assert manifest["version"] == __version__
    ((name, source),) = [(entry["name"], entry["source"]) for entry in market["plugins"]]
    assert (name, source) == (manifest["name"], "./")


def test_the_skill_is_short_and_names_only_what_needs_no_asking() -> None:
    """Under 300 tokens, counted as characters / 4; its commands are among the free ones."""
    assert len(texts.SKILL) / 4 < 300
    spoken = [part.split("`")[0].split() for part in texts.SKILL.split("`agent-mailbox ")[1:]]
    assert {words[0] for words in spoken} <= set(texts.FREE)
    assert {"check", "reply", "send", "ack"} <= {words[0] for words in spoken}


# -- settings with comments -------------------------------------------------------------------------------------------


TEXT = """// mine
{
  /* "hooks": {} */
  "theme": "a // no comment",  // dark
  "hooks": {
    // theirs
    "AfterTool": [ /* one */ {"hooks": [{"type": "command", "command": "echo '/* hi */'"}]} ]
  },
  "general": {"enableAutoUpdate": false} // last
}
"""


COMMENTS = ("// mine", '/* "hooks": {} */', "// dark", "// theirs", "/* one */", "// last", "/* hi */", "// a")


def parsed(text: str) -> Any:
    """The settings in a text with comments."""
    return json.loads(commented.blanked(text))


@each("text", (TEXT, "{} // a", "{ /* a */ }", TEXT.replace("\n", "\r\n")))
def test_install_and_uninstall_keep_every_byte_of_settings_with_comments(program: Program, text: str) -> None:
    """Gemini CLI takes comments. Installed, each of them is there. Uninstalled, the file is what it was. If the person
    added a line meanwhile, that is there, too."""
    project = program.scratch / "project"
    path = project / ".gemini/settings.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    for added in ("", "// added\n"):
        path.write_bytes(text.encode())
        assert program.call("install", "gemini", "--project", project, "--json").json["changed"]
        installed = path.read_bytes().decode()
        assert [word for word in COMMENTS if (word in text) != (word in installed)] == []
        assert parsed(installed)["hooks"].keys() >= {"BeforeAgent", "AfterTool", "BeforeTool"}
        assert program.call("install", "gemini", "--project", project, "--json").json["changed"] == []
        path.write_bytes((installed + added).encode())
        assert program.call("uninstall", "gemini", "--project", project).rc == 0
        assert path.read_bytes().decode() == text + added


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
TABLE = st.dictionaries(st.text(max_size=3), VALUES, max_size=4)


@each("text", ("// mine", "// mine\n", "/* mine\r\n */\r\n// too\r\n", "\ufeff// mine\n\n"))
def test_a_file_of_comments_alone_keeps_them(program: Program, text: str) -> None:
    """It has no settings yet. Ours stand behind the comments, and a later edit takes none of them away."""
    settings = program.cwd / ".gemini/settings.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_bytes(text.encode())
    assert program.call("install", "gemini").rc == 0
    installed = settings.read_bytes()
    assert installed.startswith(text.rstrip().encode())
    assert parsed(installed.decode("utf-8-sig"))["hooks"]
    settings.write_bytes(installed + b"// more\n")
    assert program.call("uninstall", "gemini").rc == 0
    left = settings.read_bytes()
    assert left.startswith(text.rstrip().encode())
    assert parsed(left.decode("utf-8-sig")) == {}


@given(TABLE, TABLE, st.sampled_from([None, 2]))
def test_an_edited_text_has_the_new_settings(old: dict[str, Any], new: dict[str, Any], indent: int | None) -> None:
    """Whatever changes, the text holds the new settings, and the comments of what stays."""
    text = "// a\n" + json.dumps(old, indent=indent, ensure_ascii=False) + "\n/* b */"
    made = commented.edited(text, old, new)
    assert parsed(made) == new
    assert made.startswith("// a\n")
    assert made.endswith("/* b */")
