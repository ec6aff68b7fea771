"""``uninstall --all``: out of every client that we were put into, and what it says of all that stays."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.clients.install import installation
from agent_mailbox.errors import StorageFailed
from agent_mailbox.known_clients.every_client import CLIENTS
from agent_mailbox.space import space as spaces
from agent_mailbox.store.locks.lock import WAIT, FileLock
from agent_mailbox.store.log.logs import of_mailbox
from tests.claude.house import House
from tests.cli.test_doctor import hook, script, settle
from tests.helpers import Post, Program, refused, refused_both

if TYPE_CHECKING:
    from pathlib import Path

NAMES = [client.name for client in CLIENTS if client.is_installed]
STATE = ("uninstall", "--all", "--state")


def everything(scratch: Path) -> dict[str, bytes]:
    """Every file and directory but the user's own records, and the directories above those."""
    found = sorted(path for path in scratch.rglob("*") if "state" not in path.parts)
    return {str(path): path.read_bytes() if path.is_file() else b"/" for path in found}


def test_a_project_that_was_moved_is_named_with_the_way_out_of_it(copied: House) -> None:
    """Its hooks are where nobody knows. The command is run there as it is printed; a second one has nothing to say."""
    program, project = copied.program, copied.program.scratch / "first"
    project.mkdir()
    assert program.call("install", "gemini", "--project", project).rc == 0
    moved = project.rename(program.scratch / "moved")
    done = program.call("uninstall", "--all", "--json")
    (left,) = done.json["left"]
    assert left["path"] == str(project)
    assert "if it was moved, run `agent-mailbox uninstall --all` in it" in left["why"]
    assert program.call("uninstall", "--all", "--json", cwd=moved).json["left"] == []
    assert not [path for path in moved.rglob("*") if path.is_file() and b"agent-mailbox" in path.read_bytes()]


def test_every_client_everywhere_is_what_it_was(copied: House) -> None:
    """The user's settings, two projects, another place of a client's: to the byte, and an edited file loses only ours.
    A dry run changes nothing. What stays is named, each with the command that deletes it."""
    program, other = copied.program, copied.program.scratch / "other project"
    other.mkdir()
    elsewhere = program.scratch / "elsewhere"
    copied.write(b'{"model": "opus"}\n', program.home / ".claude/settings.json")
    copied.write(b"mine\n", program.home / ".claude/CLAUDE.md")
    copied.write(b'{"hooks": {}}', other / ".codex/hooks.json")
    box = program.scratch / "box"
    assert program.call("init", box).rc == 0
    before = everything(program.scratch)
    for name in NAMES:
        assert program.call("install", name, "--user").rc == 0
        force = ["--force"] if name == "claude-code" else []
        assert program.call("install", name, "--project", other, *force).rc == 0
    assert program.call("install", "claude-code", "--user", env={"CLAUDE_CONFIG_DIR": str(elsewhere)}).rc == 0
    edited = other / ".gemini/settings.json"
    edited.write_text(json.dumps({**json.loads(edited.read_text()), "theme": "dark"}, indent=2))
    full = everything(program.scratch)
    told = program.call("uninstall", "--all", "--dry-run", "--json").json
    assert everything(program.scratch) == full
    done = program.call("uninstall", "--all", "--json")
    assert done.rc == 0, done
    assert {*done.json["changed"]} >= {*told["changed"]}
    after = everything(program.scratch)
    assert json.loads(after.pop(str(edited))) == {"theme": "dark"}
    assert after.pop(str(edited.parent)) == b"/"
    assert after == before
    stays = {one["path"]: one["what"] for one in done.json["stays"]}
    assert f"rm -r {box}" in stays[str(box)]
    assert "uninstall --all --state" in stays[str(program.user_state)]
    assert done.json["left"] == done.json["deleted"] == []
    again = program.call("uninstall", "--all", "--json").json
    assert again["changed"] == []
    assert program.call(*STATE, "--dry-run", "--json").json["deleted"] == [str(program.user_state)]
    assert program.user_state.exists()
    last = program.call(*STATE, "--json").json
    assert last["deleted"] == [str(program.user_state)]
    assert [one["path"] for one in last["stays"]] == [str(box)]
    assert not program.user_state.exists()


def test_settings_that_still_name_us_are_named(copied: House) -> None:
    """``uninstall --all`` leaves what somebody else wrote, and lists each settings file that still calls this
    program."""
    program, project = copied.program, copied.program.scratch / "first"
    project.mkdir()
    assert program.call("install", "claude-code", "--project", project).rc == 0
    own = project / ".claude/settings.local.json"
    settings = json.loads(own.read_text())
    command = settings["hooks"]["Stop"][0]["hooks"][0]["command"]
    settings["hooks"]["Notification"] = [{"hooks": [{"type": "command", "command": f"touch x; {command}"}]}]
    settings["permissions"]["allow"].append("Bash(agent-mailbox:*)")
    own.write_text(json.dumps(settings))
    (shared := project / ".claude/settings.json").write_text(json.dumps({"hooks": settings["hooks"]}))
    (servers := project / ".mcp.json").write_text('{"mcpServers": {"x": {"command": "agent-mailbox"}}}')
    done = program.call("uninstall", "--all", "--json", cwd=project)
    named = [one["path"] for one in done.json["stays"] if "take them out by hand" in one["what"]]
    assert sorted(named) == sorted(map(str, (own, shared, servers)))
    for path in (own, shared, servers):
        path.unlink()
    again = program.call("uninstall", "--all", "--json", cwd=project).json["stays"]
    assert [one for one in again if "take them out by hand" in one["what"]] == []


def test_one_file_that_cannot_be_read_stops_no_other_and_keeps_the_records(copied: House) -> None:
    """The error names it, and ends with its exit code; what was before us is in the records, which stay."""
    program = copied.program
    for name in ("claude-code", "codex"):
        assert program.call("install", name, "--user").rc == 0
    broken = copied.write(b"{broken", program.home / ".claude/settings.json")
    done = program.call(*STATE, "--json")
    assert done.rc == 3
    assert any(one["path"].endswith(".claude/settings.json") for one in done.json["left"])
    assert done.json["deleted"] == []
    assert not (program.home / ".codex").exists()
    assert (program.home / ".claude/settings.json").read_bytes() == broken


def test_a_file_that_a_later_try_could_change_is_not_told_as_left(
    copied: House,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The disk was full, until the other files were removed. It was told as left and as changed, with an error."""
    program = copied.program
    assert program.call("install", "claude-code", "--user").rc == 0
    carry_out, tries = installation.carry_out, []

    def fail_once(*given: Any) -> list[str]:
        tries.append(given)
        if len(tries) == 1:
            raise StorageFailed("cannot write it: No space left on device", "free some space")
        return carry_out(*given)

    monkeypatch.setattr(installation, "carry_out", fail_once)
    done = program.call("uninstall", "--all", "--json")
    assert (done.rc, done.json["left"], done.warnings) == (0, [], [])
    assert str(program.home / ".claude/settings.json") in done.json["changed"]


def test_a_broken_file_that_never_held_ours_keeps_no_records(copied: House) -> None:
    """A client's settings that are not JSON, name us nowhere and have no record are none of the uninstallation's."""
    program = copied.program
    broken = copied.write(b"{broken", program.home / ".claude/settings.json")
    assert program.call("install", "codex", "--user").rc == 0
    done = program.call(*STATE, "--json")
    assert (done.rc, done.json["left"], done.json["deleted"]) == (0, [], [str(program.user_state)])
    assert (program.home / ".claude/settings.json").read_bytes() == broken


def test_uninstall_wants_either_a_client_or_all(house: House) -> None:
    """``uninstall`` refuses to run with neither a client nor ``--all``, and with a client beside an option of
    ``--all``."""
    for words in (("uninstall", "--state"), ("uninstall", "--all", "codex"), ("uninstall", "--dry-run", "codex")):
        refused(house.program.call(*words), 2, "--all")


def plug_in(post: Post, **entry: Any) -> None:
    """A plugin of ours that the user's settings enable, as the client notes it."""
    root = post.home / ".claude/plugins/cache/m/agent-mailbox/1"
    script(root / "hooks/agent-mailbox-hook")
    (root / "hooks/hooks.json").write_text(json.dumps(hook('"${CLAUDE_PLUGIN_ROOT}"/hooks/agent-mailbox-hook Stop')))
    listed = {"version": 2, "plugins": {"agent-mailbox@m": [{"scope": "user", "installPath": str(root), **entry}]}}
    (post.home / ".claude/plugins/installed_plugins.json").write_text(json.dumps(listed))
    settle(post.home, {"enabledPlugins": {"agent-mailbox@m": True}})


@pytest.mark.parametrize("scope", [("--user",), ()])
def test_beside_a_plugin_for_all_sessions_nothing_is_installed(post: Post, scope: tuple[str, ...]) -> None:
    """Every hook would run twice: refused with the plugin's name and the way out, nothing written; --force warns."""
    plug_in(post)
    before = (post.home / ".claude/settings.json").read_bytes()
    words = ("install", "claude-code", *scope)
    refused_both(post.call, 1, *words, said=("the plugin agent-mailbox@m", "`claude plugin uninstall agent-mailbox@m`"))
    assert (post.home / ".claude/settings.json").read_bytes() == before
    forced = post.call(*words, "--force")
    assert forced.rc == 0
    assert any("every hook runs twice" in one for one in forced.warnings)
    stays = post.ok("uninstall", "--all")["stays"]
    assert any("claude plugin uninstall agent-mailbox@m" in one["what"] for one in stays)


def test_beside_a_plugin_of_one_project_all_sessions_may_have_hooks(post: Post) -> None:
    """It covers only that project's; the doubling there is said."""
    plug_in(post, projectPath=str(post.cwd))
    done = post.call("install", "claude-code", "--user")
    assert done.rc == 0
    assert any("every hook runs twice" in one for one in done.warnings)


def test_other_clients_say_that_every_hook_runs_twice(house: House) -> None:
    """A project's beside the user's, and the other way round."""
    for words, way in ((("--user",), ""), (("--project", house.project), "uninstall codex --user")):
        done = house.program.call("install", "codex", *words)
        assert done.rc == 0
        assert any(way in one for one in done.warnings) == bool(way)


@pytest.mark.parametrize("words", [("claude-code", "--user"), ("--all",)], ids=" ".join)
def test_a_file_that_is_gone_was_removed_and_not_changed(copied: House, words: tuple[str, ...]) -> None:
    """Each line tells what became of its file, the shim too; a dry run of all says what would."""
    program = copied.program
    settings = program.home / ".claude/settings.json"
    copied.write(b'{"model": "opus"}\n', settings)
    assert program.call("install", "claude-code", "--user").rc == 0
    there = {path for path in program.home.rglob("*") if path.is_file() and "state" not in path.parts}
    would = program.call("uninstall", *words, "--dry-run").stdout
    told = program.call("uninstall", *words).stdout.splitlines()
    gone = {path for path in there if not path.exists()}
    assert len(gone) > 2
    assert {line for line in told if line.startswith("removed ")} == {f"removed {path}" for path in gone}
    assert [line for line in told if line.startswith("changed ")] == [f"changed {settings}"]
    if words == ("--all",):
        assert f"would change {settings}\n" in would
        assert f"would remove {program.home}/.claude/commands/bye.md\n" in would


def test_a_space_that_goes_with_the_records_is_named(program: Program) -> None:
    """Deleting the records ends a mailbox's place in its space: both the dry run and the command say so, and that its
    replicator still runs."""
    box = program.scratch / "north"
    assert program.call("init", box).rc == 0
    logs = of_mailbox(str(box), WAIT, program.env)
    spaces.save_space(logs, spaces.Space("nats://127.0.0.1:1", "team", "north"))
    assert program.call("uninstall", "--all", "--json").json["spaces"] == []
    with FileLock(spaces.record_of(logs).path(spaces.PLACE, spaces.SERVING), 0):
        told = program.call(*STATE, "--dry-run").stdout
        assert "would leave space team as north (its `engine serve` still runs: end it): " in told
    told = program.call(*STATE).stdout
    assert f"left space team as north: {box} and other machines share no mail then" in told


def test_deleted_records_do_not_make_a_mailbox_a_strangers(post: Post) -> None:
    """Its person's own init may have made it: said is what the records name, and no backup is blamed for old seals."""
    post.register("ann")
    assert post.call(*STATE).rc == 0
    told = post.call("doctor", "--dir", post.box).stdout
    assert "your records name no init of it" in told
    assert "no init of yours made it" not in told
    assert post.call("init", post.box).rc == 0
    assert "backup" not in post.call("doctor", "--dir", post.box).stdout
