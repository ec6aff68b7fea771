"""Clients other than Claude Code: what they hand their hooks, who their agents' commands are, what is put into place.

Cursor, too, into which earlier versions installed hooks, and ``install --list``.
``stdin/CLIENT/EVENT.json`` is what each wrote, as it was captured, paths replaced.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.clients import places, texts
from agent_mailbox.clients.install import hook_entries, installation
from agent_mailbox.known_clients import abilities as known
from agent_mailbox.known_clients.codex import CODEX
from agent_mailbox.known_clients.cursor_cli import CURSOR_CLI, OLD_FILES
from agent_mailbox.known_clients.every_client import INSTALLED, MCP_CLIENT, USUAL
from agent_mailbox.known_clients.gemini_cli import GEMINI_CLI
from agent_mailbox.known_clients.known_client import BEFORE_TOOL, Wanted
from agent_mailbox.known_clients.opencode import OPENCODE
from tests.claude.house import FOREIGN, House
from tests.claude.shim import SHELLS, Shim
from tests.helpers import PATIENCE, Post, refused_both
from tests.surroundings import NOBODY_SAID

if TYPE_CHECKING:
    from pathlib import Path

    from agent_mailbox.known_clients.known_client import KnownClient
    from tests.helpers import Program

STDIN = Path(__file__).parent / "stdin"
OTHERS = [CODEX, GEMINI_CLI]
OUTER = "11111111-aaaa-4bbb-8ccc-000000000000"
NAMES = [client.name for client in OTHERS]


def captured(client: str, event: str) -> dict[str, Any]:
    """What a client wrote to a hook of this event, by its own name for it."""
    return dict(json.loads((STDIN / client / f"{event}.json").read_text()))


def test_each_client_that_was_run_has_kept_what_it_wrote() -> None:
    """A hook's JSON is the client's word, and nobody's guess. A plugin of ours makes its own."""
    ran = [one.name for one in INSTALLED if one.seen_with and one is not USUAL and not one.is_plugin]
    assert [name for name in ran if not (STDIN / name).is_dir()] == [], "put what it wrote into tests/claude/stdin"


class Session:
    """A session of a client that is itself started from a Claude Code session, and its hooks by the guard."""

    def __init__(self, shim: Shim, client: KnownClient) -> None:
        self.shim = shim
        self.client = client
        self.id = captured(client.name, "SessionEnd")["session_id"]
        shim.env |= {"CLAUDE_CODE_SESSION_ID": OUTER, "PATH": shim.make_patient()}
        if client is GEMINI_CLI:
            shim.env["GEMINI_SESSION_ID"] = self.id

    def hook(self, event: str, *shell: str, **fields: Any) -> str:
        """One hook; what it wrote."""
        said = {**captured(self.client.name, event), **fields}
        rest = {key: said.pop(key) for key in ("tool_name", "tool_input", "tool_result") if key in said}
        call = json.dumps({**said, **rest}, separators=(",", ":"), ensure_ascii=False)  # about the tool comes last
        words = [str(self.shim.checkout / "hooks/agent-mailbox-hook"), self.client.events[event], self.client.word]
        env = self.shim.post.environ(self.shim.env)
        done = subprocess.run([*shell, *words], input=call.encode(), env=env, capture_output=True, timeout=PATIENCE)
        assert (done.returncode, done.stderr) == (0, b""), done
        return done.stdout.decode()


@pytest.fixture(params=OTHERS, ids=NAMES)
def session(request: pytest.FixtureRequest, post: Post) -> Session:
    """A session of each client that has started and has nothing to read."""
    made = Session(Shim(post), request.param)
    start = "SessionStart" if "SessionStart" in made.client.events else "BeforeAgent"
    assert ("you are " in made.hook(start)) == (made.client.word != "copilot")
    made.shim.starts()
    return made


def prompt_and_stop(client: KnownClient) -> tuple[str, str]:
    """Its names for the two events."""
    names = {ours: theirs for theirs, ours in client.events.items()}
    return names["UserPromptSubmit"], names["Stop"]


@pytest.mark.parametrize("shell", SHELLS)
def test_where_there_is_nothing_new_no_python_starts(session: Session, shell: str) -> None:
    """Whatever the JSON holds; and the session around it is taken for neither."""
    words = (shutil.which(shell) or shell, *(("sh",) if shell == "busybox" else ()))
    session.shim.post.register(OUTER)
    session.shim.post.send("x", OUTER, "MAIL_FOR_THE_OUTER")
    prompt, stop = prompt_and_stop(session.client)
    for fields in ({}, {"prompt": "ä" * 100_000}, {"prompt": '"},{"session_id":"x`touch y`$(touch z)\\'}):
        assert session.hook(prompt, *words, **fields) == ""
    assert session.hook(stop, *words) == ""
    assert session.shim.starts() == 0


@pytest.mark.parametrize("shell", SHELLS)
def test_mail_is_shown_once_by_the_client_s_own_events(session: Session, shell: str) -> None:
    """A client's hooks show each message to the session once, and never to its subagent. The end of the session freezes
    the agent."""
    words = (shutil.which(shell) or shell, *(("sh",) if shell == "busybox" else ()))
    post = session.shim.post
    prompt, stop = prompt_and_stop(session.client)
    for number, size in enumerate((1, 100_000)):
        post.send("x", session.id, f"MAIL_{number}")
        assert session.hook(prompt, *words, agent_id="a-subagent") == ""
        answer = json.loads(session.hook(prompt, *words, prompt="\\n $HOME `ä`" * size))
        assert f"MAIL_{number}" in answer["hookSpecificOutput"]["additionalContext"]
        assert session.hook(prompt, *words) == ""
    post.send("x", session.id, "MAIL_AT_THE_STOP")
    answer = json.loads(session.hook(stop, *words))
    assert answer["decision"] == "block"
    assert "MAIL_AT_THE_STOP" in answer["reason"]
    assert session.hook(stop, *words, stop_hook_active=True) == ""
    session.hook("SessionEnd", *words)
    assert post.ok("roster", "show", session.id)["agent"]["state"] == "frozen"
    assert [a["session_id"] for a in post.ok("roster", "list")["agents"]] == [session.id]


@pytest.mark.parametrize("client", OTHERS, ids=NAMES)
def test_a_session_of_which_nothing_is_proven_is_told_its_id(post: Post, client: KnownClient) -> None:
    """Else the process above its commands tells them whose they are, and the session is told nothing: the fixture of
    this module shows that."""
    made = Session(Shim(post), client)
    made.shim.env |= NOBODY_SAID
    start = "SessionStart" if "SessionStart" in client.events else "BeforeAgent"
    assert f"this session is {made.id}: pass --session ID" in made.hook(start)


# -- commands ---------------------------------------------------------------------------------------------------------


def test_codex_s_commands_are_its_session_s(post: Post) -> None:
    """A command below Codex acts as the session in ``CODEX_SESSION_ID``, even if ``AGENT_MAILBOX_SESSION`` names
    another."""
    post.register("me")
    post.send("x", "me", "MAIL")
    env = {"CODEX_SESSION_ID": "me", "AGENT_MAILBOX_SESSION": "other"}
    assert [m["content"] for m in post.ok("check", env=env)["messages"]] == ["MAIL"]


@pytest.mark.parametrize(
    "env",
    [
        {"CLAUDE_CODE_SESSION_ID": "one", "CODEX_SESSION_ID": "two"},
        {"CLAUDE_CODE_SESSION_ID": "one", "GEMINI_CLI": "1"},
        {"CODEX_SESSION_ID": "two", "GEMINI_CLI": "1"},
    ],
    ids=" in ".join,
)
def test_within_two_clients_nobody_is_taken_for_the_other(post: Post, env: dict[str, str]) -> None:
    """Nothing in the environment says which is the inner one: refused, until the command says it."""
    post.register("one")
    post.send("x", "one", "MAIL")
    refused_both(post.call, 2, "check", env=env, said=["a client within a client", "--session"])
    assert len(post.unread("one")) == 1
    assert len(post.ok("check", "--session", "one", env=env)["messages"]) == 1


def test_an_agent_of_any_client_does_not_speak_as_the_person(post: Post) -> None:
    """Its terminal says that it is one."""
    for env in ({"CODEX_SESSION_ID": "me"}, {"GEMINI_CLI": "1"}):
        result = post.call("send", "--from", "user", "--to", "all", "--body", "x", env=env)
        assert result.rc == 1, result
        assert "belongs to an agent" in result.stderr


# -- what is put into place -------------------------------------------------------------------------------------------


@pytest.fixture
def house(program: Post) -> House:
    """A project without any settings."""
    return House(program)


EVENTS = {
    "codex": {
        *("SessionStart", "UserPromptSubmit", "PreToolUse", "PermissionRequest", "PostToolUse", "Stop", "SessionEnd")
    },
    "gemini": {"BeforeAgent", "BeforeTool", "AfterTool", "AfterAgent", "SessionEnd"},
}


@pytest.mark.parametrize("client", OTHERS, ids=NAMES)
@pytest.mark.parametrize("scope", ["project", "user"])
def test_all_is_put_in_once_and_taken_out_without_a_trace(house: House, client: KnownClient, scope: str) -> None:
    """Beside what was there; run again, it changes nothing."""
    base = (house.project if scope == "project" else house.program.home) / client.directory
    settings = base / client.settings[0]
    memory = (house.project if scope == "project" else base) / client.memory
    _, stop = prompt_and_stop(client)
    theirs = {"hooks": {stop: [{"hooks": [FOREIGN]}], "Other": [{"hooks": [FOREIGN]}]}, "theme": "dark"}
    before = house.write(theirs, settings)
    house.write(b"# Ours\n", memory)
    where = ["--project", house.project] if scope == "project" else ["--user"]

    def tree() -> dict[str, bytes]:
        return {str(p): p.read_bytes() if p.is_file() else b"/" for p in sorted(base.rglob("*"))}

    first = tree()

    def say(word: str, *words: object) -> Any:
        result = house.program.call(word, client.name, *where, *words, "--json")
        assert (result.rc, result.warnings) == (0, []), result
        return result.json

    assert say("install", "--dry-run")["diff"]
    assert tree() == first
    assert say("install")["next"] == client.after
    assert say("install") == {"changed": [], "left": [], "dry_run": False, "diff": ""}
    wanted = {
        str(base / name) for name in client.files(texts.make_wording("agent-mailbox", is_for_user=scope == "user"))
    }
    assert wanted <= set(tree())
    loaded = json.loads(settings.read_text())
    assert set(loaded) == {"hooks", "theme"}
    assert {wanted.on for wanted in client.hooks()} == EVENTS[client.name]
    for wanted in client.hooks():
        every = [h for g in loaded["hooks"][wanted.on] for h in g["hooks"] if hook_entries.calls_us(h)]
        found = [h for h in every if hook_entries.part_called(h) == wanted.part]
        assert len(found) == 1
        assert found[0]["command"].endswith(f"/agent-mailbox-hook {wanted.event} {client.word}")
        assert found[0]["timeout"] == wanted.timeout
    assert loaded["hooks"][stop][0] == theirs["hooks"][stop][0]
    assert loaded["hooks"]["Other"] == theirs["hooks"]["Other"]
    assert texts.SECTION in memory.read_text()
    say("uninstall")
    assert (settings.read_bytes(), memory.read_bytes()) == (before, b"# Ours\n")
    assert tree() == first


@pytest.mark.parametrize("client", OTHERS, ids=NAMES)
def test_a_hook_of_ours_from_elsewhere_becomes_this_one(house: House, client: KnownClient) -> None:
    """``install`` replaces an older hook of this program in its place, and keeps its timeout."""
    _, stop = prompt_and_stop(client)
    settings = house.project / client.directory / client.settings[0]
    for command in (f"/gone/agent-mailbox-hook Stop {client.word}", "agent-mailbox hook Stop"):
        old = {"type": "command", "command": command, "timeout": 42}
        house.write({"hooks": {stop: [{"hooks": [FOREIGN, old]}]}}, settings)
        result = house.program.call("install", client.name, "--project", house.project)
        assert result.rc == 0, result
        (group,) = json.loads(settings.read_text())["hooks"][stop]
        assert (group["hooks"][0], group["hooks"][1]["timeout"]) == (FOREIGN, 42)
        assert group["hooks"][1]["command"].endswith(f"agent-mailbox-hook Stop {client.word}")
        assert "/gone/" not in group["hooks"][1]["command"]


def test_one_file_of_a_project_has_the_section_for_codex_and_copilot(house: House) -> None:
    """Copilot CLI reads Codex's ``AGENTS.md``, too. In every order of two installations and two removals one of the
    files has the section while Copilot is installed, and nothing is left at the end."""
    own, memory = house.project / ".github/instructions/agent-mailbox.instructions.md", house.project / "AGENTS.md"
    before = sorted(house.project.rglob("*"))
    for installed in permutations(("codex", "copilot")):
        for removed in permutations(installed):
            for word, clients in (("install", (*installed, *installed)), ("uninstall", removed)):
                there = set(installed if word == "uninstall" else ())
                for client in clients:
                    there ^= {client} - (there if word == "install" else set())
                    result = house.program.call(word, client, "--project", house.project)
                    assert result.rc == 0, result
                    told = [path for path in (own, memory) if path.exists() and texts.SECTION in path.read_text()]
                    assert told == ([memory] if "codex" in there else [own] if "copilot" in there else []), (
                        word,
                        client,
                    )
            assert sorted(house.project.rglob("*")) == before
    memory.write_text("")
    assert house.program.call("install", "copilot", "--project", house.project).rc == 0
    own.write_text(f"{own.read_text()}edited\n")
    assert house.program.call("install", "codex", "--project", house.project).rc == 0
    assert own.read_text().endswith("edited\n")


def test_the_clients_directories_may_be_elsewhere(house: House) -> None:
    """``CODEX_HOME`` names Codex's own, ``GEMINI_CLI_HOME`` the one that it is in; any may be the root."""
    assert GEMINI_CLI.find_home({"HOME": "/home/ann", "GEMINI_CLI_HOME": "/"}) == "/.gemini"
    assert OPENCODE.find_home({"HOME": "/home/ann", "XDG_CONFIG_HOME": "/"}) == "/opencode"
    assert OPENCODE.find_home({"HOME": "/"}) == "/.config/opencode"
    for client, env, path in (
        (CODEX, {"CODEX_HOME": str(house.project / "c")}, house.project / "c/hooks.json"),
        (GEMINI_CLI, {"GEMINI_CLI_HOME": str(house.project)}, house.project / ".gemini/settings.json"),
    ):
        result = house.program.call("install", client.name, "--user", "--json", env=env)
        assert result.rc == 0, result
        assert str(path) in result.json["changed"]


GUARDED = (
    *("roster retire", "roster retire bob", "roster register --lead user", "roster update", "roster freeze bob"),
    *("control mode bob default", "control policy bob --allow Bash", "control report-all", "steward run"),
    *("init", "install claude-code", "uninstall codex", "backup x", "restore x", "export", "doctor --repair"),
    *("hook Stop", "console", "teams bridge", "swarm leave", "mute bob", "sendmail", "checkout"),
)
"""What no pattern of plain mail may let through."""


def opened(command: str, prefixes: list[str]) -> bool:
    """Does one of the patterns let the command run unasked? A client compares word by word."""
    words = command.split()
    return any(words[: len(prefix.split())] == prefix.split() for prefix in prefixes)


def test_the_rules_open_plain_mail_only() -> None:
    """A pattern lets through whatever begins with it: no command that could be told to retire somebody else."""
    lines = CODEX.files(texts.make_wording("agent-mailbox"))["rules/agent-mailbox.rules"].splitlines()
    patterns = [json.loads(line.partition("pattern=")[2].partition(", decision")[0]) for line in lines]
    policies = GEMINI_CLI.files(texts.make_wording("agent-mailbox", is_for_user=True))["policies/agent-mailbox.toml"]
    prefixes = json.loads(policies.partition("commandPrefix = ")[2].splitlines()[0])
    assert [" ".join(words) for words in patterns] == prefixes
    for command in ("check", "send --to bob", "reply 3f9a2c", "ack 3f9a2c", "roster list"):
        assert opened(f"agent-mailbox {command}", prefixes), command
    for command in GUARDED:
        assert not opened(f"agent-mailbox {command}", prefixes), command


def test_the_doctor_looks_at_every_client_s_hooks(house: House) -> None:
    """The doctor reports a client's hook that cannot run as a problem, and a missing one as a note. It accepts comments
    in the settings of Gemini CLI."""
    program = house.program
    program.env["AGENT_MAILBOX_DIR"] = str(program.box)
    assert program.call("init", program.box).rc == 0
    for client in OTHERS:
        _, stop = prompt_and_stop(client)
        settings = house.project / client.directory / client.settings[0]
        gone = {"type": "command", "command": f"/gone/agent-mailbox-hook Stop {client.word}"}
        house.write({"hooks": {stop: [{"hooks": [gone]}]}}, settings)
        result = program.call("doctor", "--json", cwd=house.project)
        assert result.rc == 3, result
        (problem,) = result.json["problems"]
        assert (problem["file"], "/gone/agent-mailbox-hook is not there" in problem["what"]) == (str(settings), True)
        assert f"the hook of {stop} " in problem["what"]
        missing = [n["what"] for n in result.json["notes"] if "but not" in n["what"]]
        assert [f"agent-mailbox install {client.name}" in what for what in missing] == [True]
        settings.unlink()
    house.write(b'{ // mine\n "hooks": {}}', house.project / ".gemini/settings.json")
    assert program.call("doctor", "--json", cwd=house.project).json == {"ok": True, "problems": []}


# -- Cursor, into which earlier versions installed hooks --------------------------------------------------------------


ID = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff"
OLD_HOOKS = {"sessionStart": "SessionStart", "preToolUse": BEFORE_TOOL, "stop": "Stop", "sessionEnd": "SessionEnd"}
"""The hooks that an earlier version installed: Cursor's event, and ours."""


def call_hook(shim: Shim, *words: str, **fields: Any) -> str:
    """Return what a hook of ours writes when Cursor runs it."""
    said = {"conversation_id": ID, "session_id": ID, **fields, "cursor_version": "2026.07.17-3e2a980"}
    command = [str(shim.checkout / "hooks/agent-mailbox-hook"), *words]
    env = shim.post.environ({"PYTHONPATH": None, "PATH": "/usr/bin:/bin"})
    call = json.dumps(said, separators=(",", ":")).encode()
    done = subprocess.run(command, input=call, env=env, capture_output=True, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, b""), done
    return done.stdout.decode()


def test_hooks_that_cursor_runs_show_no_mail(post: Post) -> None:
    """Neither an earlier version's own hook nor one of Claude Code's shows it: Cursor may drop what they say."""
    post.ok("roster", "register", "--session-id", ID)
    post.send("x", ID, "MAIL")
    shim = Shim(post)
    for event in ("SessionStart", "Stop"):
        assert call_hook(shim, event, "cursor") == ""
    for event in ("SessionStart", "UserPromptSubmit", "PostToolUse", "Stop"):
        assert call_hook(shim, event) == ""
    assert len(post.unread(ID)) == 1


def install_old(house: House, target: places.Target) -> None:
    """Install what an earlier version did: hooks in the settings file, beside the person's, and files of ours."""
    made = CURSOR_CLI.replace(
        hooks=lambda: [Wanted(on, event) for on, event in OLD_HOOKS.items()],
        files=lambda _: dict.fromkeys(OLD_FILES[:3], "a text of ours\n"),
    )
    environ = house.program.environ()
    plan = installation.plan_installation(target.replace(client=made), environ, "agent-mailbox")
    assert installation.carry_out(plan, environ)


def tree(base: Path) -> dict[str, bytes]:
    """Return the files below a directory."""
    return {str(path.relative_to(base)): path.read_bytes() for path in base.rglob("*") if path.is_file()}


@pytest.mark.parametrize("scope", ["project", "user"])
@pytest.mark.parametrize("how", ["by name", "all", "edited"])
def test_what_an_earlier_version_installed_is_removed(house: House, scope: str, how: str) -> None:
    """A person's own hooks stay: an unedited file is what it was to the byte, an edited one loses only ours."""
    base = (house.project if scope == "project" else house.program.home) / ".cursor"
    before = house.write({"version": 1, "hooks": {"stop": [{"command": "./audit.sh"}]}}, base / "hooks.json")
    target = (
        places.project_target(CURSOR_CLI, str(house.project))
        if scope == "project"
        else places.user_target(CURSOR_CLI, house.program.environ())
    )
    install_old(house, target)
    assert len(tree(base)) == 4
    if how == "edited":
        path = base / "hooks.json"
        path.write_text(path.read_text().replace("audit.sh", "other.sh"))
        before = before.replace(b"audit.sh", b"other.sh")
    words = ["--all"] if how == "all" else ["cursor", *(["--user"] if scope == "user" else [])]
    assert house.program.call("uninstall", *words, cwd=house.project).rc == 0
    assert {name: json.loads(text) for name, text in tree(base).items()} == {"hooks.json": json.loads(before)}
    if how != "edited":
        assert tree(base) == {"hooks.json": before}


def test_the_doctor_names_each_event_once_that_codex_skips(house: House) -> None:
    """Several of our hooks may be of one event."""
    assert house.program.call("init", house.project / "data").rc == 0
    assert house.program.call("install", "codex", "--project", house.project).rc == 0
    found = house.program.call("doctor", "--json", cwd=house.project).json["notes"]
    (note,) = [one["what"] for one in found if "Codex skips the hooks of " in one["what"]]
    events = note.removeprefix("Codex skips the hooks of ").partition(" until ")[0].split(", ")
    assert sorted(events) == sorted({*CODEX.events})


def test_the_doctor_names_the_hooks_that_do_nothing(house: House) -> None:
    """The note has the command that removes them."""
    house.program.call("init", str(house.project / "data"))
    install_old(house, places.project_target(CURSOR_CLI, str(house.project)))
    told = house.program.call("doctor", "--dir", str(house.project / "data"), cwd=house.project).stdout
    assert "our hooks of Cursor CLI do nothing: remove them with `agent-mailbox uninstall cursor" in told


def test_nothing_is_installed_into_cursor(house: House) -> None:
    """The command says so, with the way that is left; help and list do not name it."""
    before = house.tree()
    result = house.program.call("install", "cursor", "--project", str(house.project))
    assert result.rc == 1
    assert result.stderr.startswith("error: nothing is installed into Cursor CLI: ")
    assert "`agent-mailbox mcp`" in result.stderr
    for word in ("--list", "--help"):
        assert "ursor" not in house.program.call("install", word, cwd=house.project).stdout
    assert house.tree() == before


# -- ``install --list`` -----------------------------------------------------------------------------------------------


EVERY = [client.name for client in INSTALLED]


@pytest.fixture
def bare(program: Program) -> House:
    """A project without any settings."""
    return House(program)


def listed(bare: House) -> dict[str, dict[str, Any]]:
    """The list as JSON, by client."""
    result = bare.program.run("install", "--list", "--json", cwd=bare.project)
    assert (result.rc, result.stderr) == (0, ""), result
    return {row["client"]: row for row in result.json}


@pytest.mark.parametrize("name", EVERY)
def test_a_client_is_listed_as_installed_only_while_it_is(bare: House, name: str) -> None:
    """Its settings file is named after ``install``, no other client's is, and none after ``uninstall``."""
    assert [row["installed"] for row in listed(bare).values()] == [[]] * len(EVERY)
    before = bare.tree()
    for word in ("install", "uninstall"):
        assert bare.program.call(word, name, "--project", bare.project, "--json").rc == 0
        found = {row["client"]: row["installed"] for row in listed(bare).values() if row["installed"]}
        assert [*found] == ([name] if word == "install" else [])
    assert bare.tree() == before


def test_the_list_tells_the_clients_apart(bare: House) -> None:
    """Claude Code and Codex have everything. Gemini CLI has no hook at the start, and nothing wakes it. A limit is that
    of an ability which the client has."""
    rows = listed(bare)
    lacking = {name: set(known.ABILITIES) - {"tools", *row["abilities"]} for name, row in rows.items()}
    assert [*rows] == EVERY
    assert lacking["claude-code"] == set()
    assert lacking["codex"] == set()
    assert lacking["opencode"] == {"seen"}
    assert lacking["gemini"] == {"start", "wake when idle"}
    assert known.abilities_of(MCP_CLIENT) == ("tools",)
    for client in INSTALLED:
        assert set(rows[client.name]["limits"]) <= set(rows[client.name]["abilities"])
        assert rows[client.name]["seen_with"] == (client.seen_with[-1] if client.seen_with else None)


def test_a_hook_that_only_speaks_of_us_is_no_installation(bare: House) -> None:
    """Neither is a settings file that is not JSON; the list is text on one screen and changes nothing."""
    bare.write({"hooks": {"Stop": [{"hooks": [FOREIGN]}]}})
    bare.write(b"{", bare.project / ".gemini/settings.json")
    before = bare.tree()
    result = bare.program.run("install", "--list", cwd=bare.project)
    assert (result.rc, result.stderr) == (0, ""), result
    assert result.stdout.count("not installed here") == len(INSTALLED)
    assert result.stdout.count("(not run)") == sum(not client.seen_with for client in INSTALLED)
    assert bare.tree() == before
