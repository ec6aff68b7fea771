"""Sessions in one work tree: each is told of the other, and of whom a command of git would disturb."""

from __future__ import annotations

import json
import re
import shlex
from typing import TYPE_CHECKING

import pytest

from agent_mailbox.mailbox import neighbours
from agent_mailbox.mailbox.open_mailbox import OpenMailbox
from agent_mailbox.permissions.tree_commands import find_tree_commands
from tests.claude.shim import ME, Shim
from tests.claude.test_leases import Desk, git
from tests.helpers import each

if TYPE_CHECKING:
    from pathlib import Path

ADA = "ada"
FILES = {"/t/a.py"}
ALL = "git checkout main|git checkout -b x|git checkout .|git checkout -- .|git switch main|git reset --hard"
ALL += "|git stash|git stash pop|git rebase main|git clean -fd|git restore .|git pull --rebase|git bisect start"
ALL += "|\"git\" 'reset' --hard|/usr/bin/git -c a=b --no-pager stash|echo $(git stash)|sudo -u x git reset --hard"
ALL += "|if true; then git  switch main; fi|git -c alias.x='reset --hard' x|xargs git checkout <x"
ALL += "|cd $X && git co y|git reset"
NONE = "git checkout a.py|git checkout HEAD -- a.py|git reset HEAD a.py|git stash list|git clean -nd|git status"
NONE += "|git commit -m 'git reset'|echo 'git stash'|git stash push a.py|git restore a.py|git worktree add x"
NONE += "|git stash -h|git pull"
ELSEWHERE = "git -C /o reset --hard|git -C /o/x -C .. stash|cd /o && git stash|git --work-tree=/o checkout x"
ELSEWHERE += "|git worktree remove --force /o|git log; cd ~/../o; git switch y"


def at_start(desk: Desk, who: str, where: Path, source: str = "startup") -> str:
    """A session starts in a directory: what its model is told."""
    call = {"session_id": who, "hook_event_name": "SessionStart", "source": source, "cwd": str(where)}
    result = desk.post.call("hook", "SessionStart", stdin=json.dumps(call), env=desk.shim.env)
    assert result.rc == 0, result
    return str(result.json["hookSpecificOutput"]["additionalContext"]) if result.stdout else ""


def at_prompt(desk: Desk, who: str) -> str:
    """A turn of a session begins: what its model is told."""
    call = {"session_id": who, "hook_event_name": "UserPromptSubmit", "prompt": "go on"}
    result = desk.post.call("hook", "UserPromptSubmit", stdin=json.dumps(call), env=desk.shim.env)
    return str(result.json["hookSpecificOutput"]["additionalContext"]) if result.stdout else ""


@pytest.fixture
def desk(shim: Shim) -> Desk:
    """Ada works in a tree, and nobody else yet."""
    made = Desk(shim)
    made.shim.env |= {"AGENT_MAILBOX_DIR": None}
    made.shim.env |= {"AGENT_MAILBOX_DIR": str(made.post.box)}
    git("-C", str(made.top), "checkout", "-q", "-b", "dates")
    assert "this tree" not in at_start(made, ADA, made.top)
    return made


@each("command", [*ALL.split("|"), *NONE.split("|"), *ELSEWHERE.split("|")])
def test_what_a_command_of_git_changes(command: str) -> None:
    """A command that changes a whole tree is found in any form, with its tree; one that names its files is not."""
    found = find_tree_commands(command, "/t", "/o/home", FILES.__contains__)
    places = {"/o" if one.directory.startswith("/o") else one.directory for one in found}
    wanted = {"/t"} if command in ALL.split("|") else {"/o"} if command in ELSEWHERE.split("|") else set()
    assert places == wanted


def test_a_command_in_many_subshells_acts_in_the_tree_that_they_left() -> None:
    """Each counts with the ones before and without them; not all of these ways are gone, which would take days."""
    command = "".join(f"(cd p{number} && make);" for number in range(60)) + "git stash"
    found = [one.directory for one in find_tree_commands(command, "/t", "/o/home", FILES.__contains__)]
    assert {"/t", "/t/p0"} <= {*found}


def test_two_sessions_in_one_tree_are_told_of_each_other(desk: Desk) -> None:
    """The second hears as it starts, in a subdirectory, too; the first as its next turn begins, once. A session in
    another worktree hears nothing. The command that makes a tree of its own works as it is."""
    stamp = desk.post.file(f".cache/quiet/{ADA}")
    assert at_prompt(desk, ADA) == ""
    assert stamp.exists()
    told = at_start(desk, ME, desk.top / "src")
    assert not stamp.exists()  # else the shim would not ask as that turn begins
    assert "agent-mailbox: Ada also works in this tree, on branch dates. A tree of your own: `git -C" in told
    assert "also works in this tree, on branch dates" in at_prompt(desk, ADA)
    assert "this tree" not in at_prompt(desk, ADA)
    at_start(desk, ME, desk.top, "resume")
    assert "this tree" not in at_prompt(desk, ADA)
    (command,) = re.findall("`(git [^`]+)`", told)
    git(*shlex.split(command)[1:])
    (other,) = re.findall("`(git [^`]+)`", at_start(desk, ME, desk.top, "resume"))
    assert shlex.split(other)[-1] == f"{shlex.split(command)[-1]}-2", "the first one is there now"
    assert "this tree" not in at_start(desk, "cat", desk.other)


def test_a_session_in_a_tree_whose_path_begins_with_this_one_s_is_no_neighbour(desk: Desk) -> None:
    """Two clones of one project often lie beside each other."""
    beside = desk.top.with_name(f"{desk.top.name}-2")
    git("init", "-q", str(beside))
    at_start(desk, ME, desk.top)
    at_start(desk, "cat", beside)
    desk.post.ok("roster", "update", "--session-id", "cat", "--tags", "")
    box = OpenMailbox(str(desk.post.box))
    assert [neighbours.find_in(box, ME, str(tree)) for tree in (desk.top, beside)] == [[ADA], ["cat"]]


@pytest.mark.parametrize(
    ("mine", "theirs", "is_near"),
    [("", "", True), ("", "p", True), ("p", "", True), ("p,q", "q,r", True), ("p", "q", False)],
)
def test_only_sessions_of_other_projects_are_no_neighbours(desk: Desk, mine: str, theirs: str, is_near: bool) -> None:
    """One without a project may be of this one, and a tree may be of two."""
    at_start(desk, ME, desk.top)
    for who, tags in ((ME, mine), (ADA, theirs)):
        named = ",".join(f"project:{tag}" for tag in tags.split(",") if tag)
        desk.post.ok("roster", "update", "--session-id", who, "--tags", named)
    found = neighbours.find_in(OpenMailbox(str(desk.post.box)), ME, str(desk.top))
    assert found == ([ADA] if is_near else [])


def test_who_left_before_the_next_turn_is_not_told_of(desk: Desk) -> None:
    """Its coming was noted, and disturbs nobody now."""
    at_start(desk, ME, desk.top)
    desk.post.ok("roster", "retire", ME)
    assert "this tree" not in at_prompt(desk, ADA)


def test_before_git_changes_a_tree_the_session_is_told_whom_it_disturbs(desk: Desk) -> None:
    """Once for each command, in the shell guard, too; with how to write to them. Alone it is told nothing, and the
    guard asks nobody. ``[leases] enforce`` refuses, each time."""
    mark = desk.post.user_state / "beside"
    (mark / ME).unlink(missing_ok=True)
    assert desk.runs("git reset --hard") == ""
    at_start(desk, ME, desk.top)
    assert desk.runs("git status") == ""
    told = json.loads(desk.runs("cd src && git reset --hard"))["hookSpecificOutput"]["additionalContext"]
    assert "Ada also works in this tree, on branch dates: `git reset` changes files under them." in told
    assert 'send --to Ada --body "…".' in told
    assert desk.runs("git reset --hard") == ""
    away = f"git worktree remove {shlex.quote(str(desk.other))}"
    assert desk.runs(away) == ""
    at_start(desk, ADA, desk.other, "resume")
    assert "Ada works in " in desk.runs(away)
    desk.enforce()
    for _ in range(2):
        assert json.loads(desk.runs(away))["hookSpecificOutput"]["permissionDecision"] == "deny"
    desk.post.ok("roster", "retire", ADA)
    assert desk.runs(away) == ""
    assert not (mark / ME).exists()


def test_a_note_that_names_a_file_is_pointed_to_once(desk: Desk) -> None:
    """A session that is about to edit that file, by a tool or a command, hears of the note, and so for one below a
    directory that it names. A file whose name only begins so is another. Once dropped, it is silent."""
    (desk.top / "src/dates.py").write_text("x")
    (desk.top / "src/deep").mkdir()
    words = ("--on", "project:x", "--title", "src/dates.py is generated", "--body", "by src/deep, not http://x/y.py")
    note = desk.post.ok("note", "add", *words, "--session", ADA, cwd=desk.top)["note"]["id"]
    line = f'{note} "src/dates.py is generated" is about src/dates.py: `'
    assert desk.writes(desk.top / "src/dates.pyi") == desk.writes(desk.top / "src/deeper/new.py") == ""
    assert line in desk.writes(desk.top / "src/dates.py")
    assert desk.writes(desk.top / "src/dates.py") == ""
    assert line in json.loads(desk.runs("sed -i s/a/b/ src/dates.py", ADA))["hookSpecificOutput"]["additionalContext"]
    assert desk.writes(desk.other / "src/other.py") == ""
    assert "is about src/deep/new.py" in desk.writes(desk.top / "src/deep/new.py", "cat")
    desk.post.ok("note", "drop", note, "--session", ADA)
    assert note not in desk.writes(desk.top / "src/dates.py", "dan")


def test_a_claimed_task_leases_the_files_that_it_names(desk: Desk) -> None:
    """The lease ends with the task. If another leases the file, that is said, and the task is claimed all the same."""
    (desk.top / "src/dates.py").write_text("x")
    for number in (1, 2):
        words = ("--title", "Mend src/dates.py", "--body", "not src/none.py", "--task-id", f"task-{number}")
        desk.post.ok("task", "add", "--to", "role:w", *words, "--session", "user")
    for who in ("ann", "ben"):
        desk.post.register(who, "--role", "w")
    answer = desk.post.ok("task", "claim", "task-1", "--session", "ann", cwd=desk.top / "src")
    assert answer["leased"] == ["src/dates.py"]
    again = desk.post.ok("task", "claim", "task-1", "--session", "ann", cwd=desk.top / "src")
    assert (again["leased"], len(desk.post.ok("lease", "list")["leases"])) == ([], 1)
    told = desk.post.call("task", "claim", "task-2", "--session", "ben", cwd=desk.top)
    assert "src/dates.py is leased by ann until" in told.stdout
    assert told.rc == 0
    desk.post.ok("task", "done", "task-1", "--summary", "s", "--session", "ann")
    assert desk.post.ok("lease", "list")["leases"] == []


@pytest.mark.parametrize(
    ("end", "by"), [("done", "ann"), ("drop", "ann"), *((end, "lee") for end in ("drop", "cancel", "claim"))]
)
def test_the_end_of_a_task_ends_its_own_lease_alone(desk: Desk, end: str, by: str) -> None:
    """However it ends, or goes to another holder. The lease of a task whose id begins with its own stays, one that its
    holder took by hand, one that nothing proves, and one that another noted so, whoever ends the task."""
    for n, number in enumerate((1, 10, 11)):
        (desk.top / f"src/ü{n}.py").write_text("x")
        words = ("--title", f"Mend src/ü{n}.py", "--task-id", f"task-{number}")
        desk.post.ok("task", "add", "--to", "role:w", *words, "--session", "user")
    for who in ("ann", "ben"):
        desk.post.register(who, "--role", "w", "--lead", "lee")
    desk.lease("src/ben", "--note", "task-1", who="ben")
    for number in (10, 1, 11):
        desk.post.ok("task", "claim", f"task-{number}", "--session", "ann", cwd=desk.top)
    desk.lease("src/ann", "--note", "task-1 and more", who="ann")

    nobody = {"AGENT_MAILBOX_TEST_CALLER": ""}
    words = ("src/nobody", "--note", "task-1", "--session", "ann")
    assert desk.post.call("lease", *words, cwd=desk.top, env=nobody).rc == 0

    def leased() -> set[str]:
        return {path for lease in desk.post.ok("lease", "list")["leases"] for path in lease["paths"]}

    left = {"src/ben", "src/ann", "src/nobody", "src/ü0.py", "src/ü1.py", "src/ü2.py"}
    assert leased() == left
    how = {"done": ("--summary", "s"), "drop": ("--reason", "r"), "cancel": (), "claim": ("--for", "ben")}[end]
    for number, path in ((1, "src/ü0.py"), (11, "src/ü2.py")):
        desk.post.ok("task", end, f"task-{number}", *how, "--session", by)
        left -= {path}
        assert leased() == left
