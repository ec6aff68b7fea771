"""``setup``: one command from nothing to sessions that have mail, and back to the byte."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.helpers import MESSAGES
from tests.surroundings import at_terminal, line

if TYPE_CHECKING:
    from pathlib import Path

    from tests.helpers import Post, Program

CLIENTS = {"claude": ".claude/settings.json", "codex": ".codex/hooks.json", "gemini": ".gemini/settings.json"}
"""The programs of three clients, and where each has its hooks."""


@pytest.fixture
def found(program: Program) -> Program:
    """The program beside three clients on the PATH: ``setup`` looks for them, and starts none."""
    (tools := program.scratch / "tools").mkdir()
    for name in CLIENTS:
        (tools / name).touch(0o755)
    program.env["PATH"] = f"{tools}:{program.env['PATH']}"
    return program


def files(scratch: Path) -> dict[str, bytes]:
    """Every file below a directory."""
    return {str(path): path.read_bytes() for path in scratch.rglob("*") if path.is_file()}


def test_one_command_makes_the_mailbox_and_sets_up_each_client_found(found: Program) -> None:
    """The answer names all that changed and what to type next; a second time nothing changes, and it is no error."""
    done = found.call("setup", "--yes", "--json")
    assert done.rc == 0, done
    assert done.json["dir"] == str(found.cwd / "data")
    assert [one["client"] for one in done.json["clients"]] == ["claude-code", "codex", "gemini"]
    for settings in CLIENTS.values():
        assert str(found.home / settings) in done.json["changed"]
    assert "*" not in (found.cwd / "data/.gitignore").read_text().split()
    before = files(found.home)
    again = found.call("setup", "--yes")
    assert "start `claude` in two terminals" in again.stdout
    assert "AGENT_MAILBOX_" not in again.stdout
    assert "set up already" in again.stdout
    assert files(found.home) == before


def test_remove_takes_all_of_it_back_to_the_byte(found: Program) -> None:
    """Settings that were there are what they were; the records go too, for no mailbox is left that needs them."""
    (settings := found.home / ".claude/settings.json").parent.mkdir()
    settings.write_text('{"model": "opus"}\n')
    before = files(found.scratch)
    assert found.call("setup", "--yes").rc == 0
    told = found.call("setup", "--remove", "--dry-run")
    assert settings.read_text() != '{"model": "opus"}\n'
    done = found.call("setup", "--remove")
    assert done.rc == 0, done
    assert files(found.scratch) == before
    assert not (found.cwd / "data").exists()
    assert sorted(row.split()[-1] for row in told.stdout.splitlines() if row.startswith("would")) == sorted(
        row.split()[-1] for row in done.stdout.splitlines() if row.startswith(("changed", "removed", "deleted"))
    )


def test_a_used_mailbox_whose_path_does_not_print_stays_and_all_else_is_told(found: Program) -> None:
    """No file of services holds such a path. So there is no service to name, and that is no error."""
    (project := found.cwd / "a\tb\u2028").mkdir()
    assert found.call("setup", "--yes", cwd=project).rc == 0
    assert found.call("send", "--from", "a-session", "--to", "all", "--body", "x", cwd=project).rc == 0
    done = found.call("setup", "--remove", "--json", cwd=project)
    assert done.rc == 0, done
    assert str(found.home / ".claude/settings.json") in done.json["changed"]
    assert str(project / "data") in [one["path"] for one in done.json["stays"]]


def test_a_status_line_is_put_in_beside_no_other_and_taken_out_again(found: Program) -> None:
    """A person's own stays, also where ours would hide it; `--no-statusline` and a later `install` change nothing."""
    own = '{"statusLine": {"type": "command", "command": "mine"}}'
    (settings := found.home / ".claude/settings.json").parent.mkdir()

    def line_in(path: Path) -> Any:
        return json.loads(path.read_text()).get("statusLine") if path.exists() else None

    for before, words, kept in (
        *(("{}", (), "new"), ("{}", ("--no-statusline",), None), (own, (), "kept")),
        (own, ("--project",), "kept"),
    ):
        settings.write_text(before)
        done = found.call("setup", "--yes", "--json", *words)
        assert done.json["clients"][0]["statusline"] == kept, done
        there = found.cwd / ".claude/settings.local.json" if "--project" in words else settings
        assert (line_in(there) or {}).get("refreshInterval") == (10 if kept == "new" else None)
        if kept == "new":
            assert found.call("install", "claude-code", "--user").rc == 0
            assert "nothing to change" in found.call("install", "claude-code", "--user", "--dry-run").stdout
            assert line_in(settings)["command"].endswith("agent-mailbox-hook StatusLine")
            changed = {**json.loads(settings.read_text()), "model": "opus"}
            settings.write_text(json.dumps(changed))  # edited since: only ours goes
            assert found.call("setup", "--remove").rc == 0
            assert json.loads(settings.read_text()) == {"model": "opus"}
            continue
        assert found.call("setup", "--remove").rc == 0
        assert settings.read_text() == before


def test_a_mailbox_that_was_used_stays_with_its_records(found: Program) -> None:
    """One message, or one registered session, and `--remove` deletes neither the mailbox nor the key of its seals."""
    for words in (("send", "--from", "a", "--to", "b", "--body", "x"), ("roster", "register", "--session-id", "a")):
        assert found.call("setup", "--yes").rc == 0
        assert found.call(*words).rc == 0
        done = found.call("setup", "--remove", "--json")
        assert (found.cwd / "data" / MESSAGES).exists()
        assert (found.user_state / "key").exists()
        assert str(found.cwd / "data") in [one["path"] for one in done.json["stays"]]
        assert not (found.home / ".codex/hooks.json").exists()


@pytest.mark.parametrize("how", ["--dry-run", "--diff"])
def test_a_look_changes_nothing(found: Program, how: str) -> None:
    """A dry run names the files of each client, a diff has every line; nothing is made."""
    before = files(found.scratch)
    shown = found.call("setup", how).stdout
    assert files(found.scratch) == before
    assert ("settings.json in" in shown) == (how == "--dry-run")
    guard = next(path for path in found.call("setup", "--yes", "--json").json["changed"] if path.endswith("-hook"))
    assert (f", {guard}\n" in shown) == (how == "--dry-run"), "it is outside of the client's directory"
    assert (f"+++ {found.home / CLIENTS['codex']}" in shown) == (how == "--diff")


def test_a_client_whose_files_cannot_be_merged_is_told_and_left(found: Program) -> None:
    """The others are set up, and the file keeps every byte."""
    (settings := found.home / ".claude/settings.json").parent.mkdir()
    settings.write_text('{"model": "opus", // mine\n}')
    done = found.call("setup", "--yes", "--json")
    assert done.rc == found.call("setup", "--dry-run").rc == 3
    broken, *others = done.json["clients"]
    assert str(settings) in broken["covered"]
    assert settings.read_text() == '{"model": "opus", // mine\n}'
    assert all(one["files"] for one in others)
    told = found.call("setup", "--yes").stdout
    assert ("start `claude`" in told, "start `codex`" in told) == (False, True)


@pytest.mark.parametrize("in_the_way", [".codex", ".codex/.hooks.json.agent-mailbox/"])
def test_a_client_whose_directory_takes_no_files_stops_no_other(found: Program, in_the_way: str) -> None:
    """A file in its place, or one that cannot be written: the client is told with what to do, and the code is that of
    the failure. The one behind it is set up."""
    path = found.home / in_the_way
    path.mkdir(parents=True) if in_the_way.endswith("/") else path.touch()
    done = found.call("setup", "--yes", "--json")
    claude, codex, gemini = done.json["clients"]
    assert done.rc == 5, done
    assert codex["covered"].startswith(
        f"left alone: cannot {'write' if path.is_dir() else 'open'} {found.home}/.codex/"
    )
    assert "move " in codex["covered"]
    assert (claude["files"] != [], codex["files"], gemini["files"] != []) == (True, [], True)
    assert (found.home / CLIENTS["gemini"]).exists()


def test_hooks_of_the_project_alone_are_renewed_where_they_are(found: Program) -> None:
    """Setup brings a project's old hooks up to date. Beside the user's, each would run twice in it."""
    projects = {"codex": ".codex/hooks.json", "claude": ".claude/settings.local.json"}
    for client in projects:
        words = ("install", client.replace("claude", "claude-code"), "--project", found.cwd)
        assert found.call(*words).rc == 0
    for client, file in projects.items():
        installed = (settings := found.cwd / file).read_text()
        old = json.loads(installed)
        del old["hooks"]["SessionEnd"]  # as of an earlier version
        settings.write_text(json.dumps(old))
        assert found.call("setup", "--yes").rc == 0
        assert json.loads(settings.read_text())["hooks"].keys() == json.loads(installed)["hooks"].keys()
        assert not (found.home / CLIENTS[client]).exists()


def test_a_client_that_calls_us_elsewhere_is_left(found: Program) -> None:
    """Setup adds no project's hooks beside the user's: each would run twice in this project."""
    assert found.call("install", "codex", "--user").rc == 0
    clients = {one["client"]: one for one in found.call("setup", "--yes", "--json", "--project").json["clients"]}
    assert str(found.home / ".codex/hooks.json") in clients["codex"]["covered"]
    assert not (found.cwd / ".codex/hooks.json").exists()


def test_the_mailbox_in_use_is_used(found: Program) -> None:
    """A directory of a project uses the project's mailbox; `--project` keeps the hooks in that directory."""
    assert found.call("init").rc == 0
    (below := found.cwd / "below").mkdir()
    done = found.call("setup", "--yes", "--project", "--json", cwd=below)
    assert (done.json["dir"], done.json["new"]) == (str(found.cwd / "data"), False)
    assert not (found.home / ".codex").exists()
    assert (below / ".codex/hooks.json").exists()


def test_without_a_client_the_mailbox_is_made_and_the_way_on_is_said(program: Program) -> None:
    """Somebody may install the client afterwards."""
    (empty := program.scratch / "empty").mkdir()
    assert program.call("setup", "--diff", env={"PATH": str(empty)}).stdout.startswith("mailbox: ")
    done = program.call("setup", "--yes", env={"PATH": str(empty)})
    assert done.rc == 0, done
    assert "no client is found on your PATH" in done.stdout
    assert "`agent-mailbox roster register --session-id ID --role ROLE` for a shell" in done.stdout
    assert (program.cwd / "data" / MESSAGES).exists()


def test_the_question_is_asked_once_and_no_changes_nothing(found: Program) -> None:
    """A person at a terminal is shown the files and asked, and not again where nothing is
    left to do; where nobody can be asked, the error names `--yes`."""
    found.env.pop("AGENT_MAILBOX_TEST_CALLER")
    before = files(found.scratch)
    assert "hint: pass --yes" in found.run("setup").stderr
    assert files(found.scratch) == before
    for answer, makes in (("n\n", False), ("y\n", True)):
        done = at_terminal(found, line("setup"), answer=answer)
        assert done.stdout.count("Set it up?") == 1, done
        assert "was started by" not in done.stdout, done
        assert (found.cwd / "data").exists() == makes, done
    again = at_terminal(found, line("setup"), answer="")
    assert (again.rc, again.stdout.count("Set it up?"), again.stdout.count("set up already")) == (0, 0, 3), again


def test_remove_leaves_what_else_is_in_the_mailbox_s_directory(found: Program) -> None:
    """A project whose root or ``data/`` became a mailbox keeps each file of its own, empty ones and links too."""
    (data := found.cwd / "data").mkdir()
    (found.cwd / "code").mkdir()
    for place in (data, found.cwd):
        (place / ".gitignore").write_text("*.log\n")
        (place / "empty").touch()
        (place / "agent-mailbox.service").touch()
        (place / "latest").symlink_to("nowhere")
        (place / ".cache/tool").mkdir(parents=True)
        (place / "attachments").mkdir()
        (place / "attachments/picture").write_text("x")
        (place / "config.toml").write_text("[tool]\n")
        before = sorted(found.cwd.rglob("*"))
        assert found.call("init", place).rc == 0
        assert found.call("steward", "run", "--dir", place).rc == 0
        assert str(place) in found.call("setup", "--remove", place, "--json").json["deleted"]
        assert sorted(found.cwd.rglob("*")) == before


def test_the_directory_in_which_remove_runs_stays(found: Program) -> None:
    """``init .`` in an empty directory, and back: no shell is left in one that is gone."""
    assert found.call("init", ".").rc == 0
    assert found.call("setup", "--remove", ".").rc == 0
    assert list(found.cwd.iterdir()) == []


def test_the_command_that_deletes_a_mailbox_deletes_nothing_of_its_project(found: Program) -> None:
    """A mailbox in use that shares a project's directory: the command names the mailbox's own files alone."""
    subprocess.run(["git", "init", "-q"], cwd=found.cwd, check=True)
    for name in ("code", ".cache/tool", "attachments/picture"):
        (found.cwd / name).mkdir(parents=True)
        (found.cwd / name / "file").write_text("x")
    before = sorted(found.cwd.rglob("*"))
    assert found.call("init", ".").rc == 0
    assert found.call("send", "--from", "a", "--to", "b", "--body", "x", "--attach", __file__).rc == 0
    done = found.call("uninstall", "--all", "--json")
    assert done.rc == 0, done
    (told,) = (one["what"] for one in done.json["stays"] if one["path"] == str(found.cwd))
    subprocess.run(told.split("`")[1], shell=True, check=True)
    assert sorted(found.cwd.rglob("*")) == before


def test_git_sees_a_project_s_files_that_come_after_the_mailbox(found: Program) -> None:
    """A mailbox in an empty ``data/``, or in a directory that becomes a repository: only its own files are hidden."""
    for place in (found.cwd, found.cwd / "data"):
        assert found.call("init", place, "--here").rc == 0
        assert (
            found.call("send", "--from", "a", "--to", "b", "--body", "x", "--dir", place, "--attach", __file__).rc == 0
        )
        assert found.call("doctor", "--dir", place).rc == 0
        (place / "table.csv").touch()
    subprocess.run(["git", "init", "-q"], cwd=found.cwd, check=True)
    words = ["git", "status", "--porcelain", "--untracked-files=all"]
    seen = subprocess.run(words, cwd=found.cwd, check=True, capture_output=True).stdout
    assert seen == b"?? data/table.csv\n?? table.csv\n"


def test_a_gitignore_of_the_project_s_that_lacks_the_rules_is_told(found: Program) -> None:
    """It stays as it is, and the command that is named adds the rules: git then sees no mail."""
    subprocess.run(["git", "init", "-q"], cwd=found.cwd, check=True)
    (found.cwd / ".gitignore").write_text("*.pyc")
    assert "left out of git" not in found.call("setup", ".", "--dry-run").stdout
    (told,) = found.call("init", ".").warnings
    assert (found.cwd / ".gitignore").read_text() == "*.pyc"
    subprocess.run(told.split("`")[1], shell=True, check=True)
    assert found.call("send", "--from", "a", "--to", "b", "--body", "x").rc == 0
    seen = subprocess.run(["git", "status", "--porcelain"], cwd=found.cwd, check=True, capture_output=True).stdout
    assert seen == b"?? .gitignore\n"


def test_remove_leaves_a_file_and_a_link_in_the_place_of_the_mailbox_s_directories(found: Program) -> None:
    """The mailbox never made them. Its directory stays with them, and the answer says that the mailbox alone went."""
    (data := found.cwd / "data").mkdir()
    (data / ".cache").symlink_to("nowhere")
    (data / "attachments").write_text("x")
    assert found.call("init").rc == 0
    assert f"deleted the mailbox at {data}\n" in found.call("setup", "--remove").stdout
    assert sorted(data.iterdir()) == [data / ".cache", data / "attachments"]


def test_a_clone_s_mailbox_is_told_as_such_before_and_as_it_becomes_one_s_own(post: Post) -> None:
    """It was told as any that is there, and the person let a stranger's mail to their agents. Of one's own nothing is
    said."""
    stranger = post.scratch / "clone/data"
    shutil.copytree(post.box, stranger)
    project = stranger.parent
    said = "there already, and not known as yours: if it came with a clone, your agents are shown a stranger's mail"
    assert said in post.call("setup", "--dry-run", stranger, cwd=project).stdout
    assert f"warning: {stranger} was {said}; look at it: " in post.call("init", stranger, cwd=project).stderr
    assert post.call("init", stranger, cwd=project).stderr == ""
    assert said not in post.call("setup", "--dry-run", stranger, cwd=project).stdout
