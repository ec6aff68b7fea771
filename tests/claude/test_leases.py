"""Before a tool that writes files: who leases the file, and who wrote it a moment ago."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agent_mailbox.control.leasing import Leasing
from agent_mailbox.core import given_names
from agent_mailbox.mailbox.mailbox import Mailbox
from agent_mailbox.mailbox.open_mailbox import OpenMailbox
from agent_mailbox.mailbox.sending import Sending
from agent_mailbox.store.files import edits as edits_module
from agent_mailbox.store.files import system
from agent_mailbox.store.files.edits import EDITS, RECENT, Edit, Edits
from agent_mailbox.store.user_state.project_paths import is_blind
from tests.claude.shim import ME, SHELLS, Shim
from tests.claude.test_files import by_shim, call_of, writing
from tests.helpers import MESSAGES, PATIENCE, Post, record, refused
from tests.surroundings import Client

ADA = "ada"

NAMED = next(given_names._candidates(ME))
"""The name that the session gets."""


class Desk:
    """A project in git with two worktrees, a session that a shim guards, and another."""

    def __init__(self, shim: Shim) -> None:
        self.shim, self.post = shim, shim.post
        self.top, self.other = self.post.cwd / "project", self.post.cwd / "worktree"
        git("init", "-q", str(self.top))
        git(
            "-C", str(self.top), "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q", "--allow-empty", "-m", "x"
        )
        git("-C", str(self.top), "worktree", "add", "-q", str(self.other))
        for top in (self.top, self.other):
            (top / "src").mkdir()
        self.post.register(ADA, "--name", "Ada")

    def lease(self, *words: object, cwd: Path | None = None, who: str = ADA) -> dict[str, Any]:
        """A session leases; its lease."""
        done = self.post.call("lease", *words, "--session", who, "--json", cwd=cwd or self.top)
        assert done.rc == 0, done
        return dict(done.json["leases"][0])

    def writes(self, path: object, who: str = ME, *words: str) -> str:
        """A session writes a file: what it is told before; a refusal has ``deny:`` before it."""
        data = writing(path).replace(ME.encode(), who.encode())
        answer = by_shim(self.shim, data, *words, CLAUDE_CODE_SESSION_ID=who)
        if not answer:
            return ""
        told = json.loads(answer)["hookSpecificOutput"]
        assert told["hookEventName"] == "PreToolUse"
        if "additionalContext" in told:
            assert "permissionDecision" not in told
            return str(told["additionalContext"])
        return f"{told['permissionDecision']}: {told['permissionDecisionReason']}"

    def runs(self, command: str, who: str = ME, *words: str) -> str:
        """A session runs a command in its shell: what it is told before."""
        data = call_of("Bash", {"command": command}, self.top).replace(ME.encode(), who.encode())
        done = subprocess.run(
            [*words, str(self.shim.checkout / "hooks/agent-mailbox-hook"), "PreToolUse"],
            input=data, env=self.post.environ({**self.shim.env, "CLAUDE_CODE_SESSION_ID": who}), cwd=self.top,
            capture_output=True, timeout=PATIENCE,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, b""), done
        return done.stdout.decode()

    def mail(self, who: str) -> list[str]:
        """The texts that wait for a session."""
        return [one["content"] for one in self.post.ok("check", "--session", who)["messages"]]

    def enforce(self) -> None:
        """The person has leases enforced."""
        path = self.post.user_state / "config.toml"
        path.write_text("[leases]\nenforce = true\n")


def git(*words: str) -> None:
    """Run git, without anybody's configuration."""
    subprocess.run(
        ["git", *words], check=True, capture_output=True, env={**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null"}
    )


def die(*_: object) -> None:
    """End the program here, as a kill does: nothing behind it runs."""
    raise KeyboardInterrupt


@pytest.fixture
def desk(shim: Shim) -> Desk:
    """Two sessions on one project."""
    return Desk(shim)


@pytest.mark.parametrize("shell", SHELLS)
def test_who_writes_what_another_leases_is_warned_once_and_the_holder_hears_of_it_once(
    desk: Desk, shell: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever worktree and whatever name the path has; the tool runs. What nobody leases is nobody's concern. A hook
    that is killed as it tells the holder has told nobody."""
    words = (shutil.which(shell) or shell, *(("sh",) if shell == "busybox" else ()))
    desk.lease("src/a.py", "src/deep", "--note", 'new "grammar"')
    (desk.top / "link.py").symlink_to("src/a.py")
    (desk.top / "to-src").symlink_to("src")
    env = {**desk.shim.env, "CLAUDE_CODE_SESSION_ID": ME}
    with monkeypatch.context() as patch:
        patch.setattr(Sending, "send", die)
        with pytest.raises(KeyboardInterrupt):
            desk.post.call("hook", "Files", stdin=writing(desk.other / "src/a.py"), env=env)
    told = desk.writes(desk.other / "src/a.py", ME, *words)
    assert "src/a.py is leased by Ada until" in told
    assert "new 'grammar'" in told
    assert "send --to Ada" in told
    for same in (desk.top / "src/a.py", desk.top / "link.py", desk.top / "to-src/a.py", desk.top / "docs/../src/a.py"):
        assert desk.writes(same, ME, *words) == "", same
    (mail,) = desk.mail(ADA)
    assert f"{NAMED} edits src/a.py, which you lease" in mail
    assert desk.writes(desk.top / "src/b.py", ME, *words) == ""
    assert desk.writes(desk.post.cwd / "src/a.py", ME, *words) == ""
    assert desk.writes(desk.top / "src/a.py", ADA, *words) == ""
    assert desk.mail(ADA) == []


@pytest.mark.parametrize("way", ["link.py", "to-src/a.py", "docs/../src/a.py", "./src//a.py"])
def test_no_name_of_a_leased_file_escapes_a_refusal(desk: Desk, way: str) -> None:
    """Enforced by the person, a lease refuses every time; the holder writes."""
    desk.enforce()
    desk.lease("src/a.py")
    (desk.top / "link.py").symlink_to("src/a.py")
    (desk.top / "to-src").symlink_to("src")
    (desk.top / "docs").mkdir()
    for _ in range(2):
        assert desk.writes(f"{desk.top}/{way}").startswith("deny: agent-mailbox: src/a.py is leased by Ada")
    assert desk.writes(f"{desk.top}/{way}", ADA) == ""
    assert len(desk.mail(ADA)) == 1


@pytest.mark.parametrize("shell", SHELLS)
def test_a_command_that_names_a_leased_file_is_told_as_well(desk: Desk, shell: str) -> None:
    """Once, and its holder once; enforced it is refused each time. No Python starts for what names no file, nor for any
    command while nothing is leased."""
    words = (shutil.which(shell) or shell, *(("sh",) if shell == "busybox" else ()))
    desk.shim.starts()
    assert desk.runs("echo x > src/a.py", ME, *words) == ""
    assert desk.shim.starts() == 0
    lease = desk.lease("src/a.py")
    (desk.top / "link.py").symlink_to("src/a.py")
    for harmless in ("python3 -m pytest -q", "grep -n x src/a.py"):
        assert desk.runs(harmless, ME, *words) == ""
    assert desk.shim.starts() == 0
    assert desk.runs("echo x > src/b.py", ME, *words) == ""
    assert desk.runs("cd src; sed -i s/x/y/ a.py", ADA, *words) == ""
    assert "src/a.py is leased by Ada" in desk.runs("cd src && sed -i s/x/y/ a.py", ME, *words)
    assert desk.runs("cd src && sed -i s/x/y/ a.py", ME, *words) == ""
    assert len(desk.mail(ADA)) == 1
    desk.enforce()
    for command in ("mv x link.py", f"tee {desk.other}/src/a.py", "bash -c 'echo > src/a.py'"):
        assert '"deny"' in desk.runs(command, ME, *words), command
    desk.post.ok("lease", "release", lease["id"], "--session", ADA)
    assert desk.runs("echo x > src/a.py", ME, *words) == ""
    desk.shim.starts()
    assert desk.runs("echo x > src/a.py", ME, *words) == ""
    assert desk.shim.starts() == 0


def test_a_mailbox_s_own_file_enforces_nothing(desk: Desk) -> None:
    """It comes with a checkout, and any agent may write it."""
    desk.post.file("config.toml").write_text("[leases]\nenforce = true\n")
    desk.lease("src/a.py")
    assert not desk.writes(desk.top / "src/a.py").startswith("deny")


def test_a_line_that_proves_nothing_stops_nobody(desk: Desk) -> None:
    """A lease that nothing proves stops no write. It gives one hint, and the named holder gets no mail."""
    desk.enforce()
    lease = {"type": "lease", "requestId": "l-1", "project": str(desk.top), "paths": ["src/a.py"]}
    text = json.dumps({**lease, "expiresAt": "2999-01-01T00:00:00.000Z"})
    desk.writes(desk.top / "src/b.py")
    desk.post.append(MESSAGES, record(ADA, ADA, text, type="control"))
    assert desk.writes(desk.top / "src/c.py") == ""
    assert desk.shim.starts() == 1  # for the first write: no such line starts Python before a tool
    desk.lease("src/b.py")
    told = desk.writes(desk.top / "src/a.py")
    assert "is leased by Ada (unverified)" in told
    assert desk.writes(desk.top / "src/a.py") == ""
    assert desk.mail(ADA) == []


def test_without_leases_no_python_starts_and_a_lease_that_ended_costs_one_look(desk: Desk) -> None:
    """The first write makes the notes; after that the shim decides alone."""
    path = desk.top / "src/a.py"
    desk.writes(path)
    desk.shim.starts()
    for _ in range(3):
        assert desk.writes(path) == ""
    assert desk.shim.starts() == 0
    lease = desk.lease("src/b.py")
    desk.writes(path)
    assert desk.shim.starts() == 1
    desk.post.ok("lease", "release", lease["id"], "--session", ADA)
    desk.writes(path)
    assert desk.shim.starts() == 1
    desk.writes(path)
    assert desk.shim.starts() == 0


def test_without_its_derived_files_a_lease_counts_all_the_same(desk: Desk) -> None:
    """Deleting ``.cache`` costs time, and no refusal."""
    desk.enforce()
    desk.lease("src/a.py")
    shutil.rmtree(desk.post.box / ".cache")
    for _ in range(2):
        assert desk.writes(desk.top / "src/a.py").startswith("deny")


def test_a_lease_ends_with_its_holder(desk: Desk) -> None:
    """An agent's leases end when it is retired, and do not return when it registers again."""
    desk.lease("src/a.py")
    desk.post.ok("roster", "retire", "--session-id", ADA)
    assert desk.writes(desk.top / "src/a.py") == ""
    assert desk.post.ok("lease", "list")["leases"] == []
    desk.post.ok("roster", "register", "--session-id", ADA)  # it leases again what it still needs
    assert desk.post.ok("lease", "list")["leases"] == []


@pytest.mark.parametrize("shell", SHELLS)
def test_two_who_write_one_file_within_minutes_are_told_of_each_other(desk: Desk, shell: str) -> None:
    """Once, without any lease; not after a while, and not of another file."""
    words = (shutil.which(shell) or shell, *(("sh",) if shell == "busybox" else ()))
    path = desk.top / "src" / "a: *.py"
    assert desk.writes(path, ADA, *words) == ""
    assert desk.writes(desk.top / "src/b.py", ME, *words) == ""
    told = desk.writes(path, ME, *words)
    assert "Ada edited src/a: *.py 0 min ago" in told
    (mail,) = desk.mail(ADA)
    assert f"{NAMED} edits src/a: *.py now" in mail
    for who in (ADA, ME, ADA):
        assert desk.writes(path, who, *words) == ""
    assert desk.mail(ADA) == desk.mail(ME) == []
    later = desk.top / "src/later.py"
    desk.writes(later, ADA, *words)
    (note,) = (desk.post.box / ".cache/edits").glob("*/*later.py")
    old = note.stat().st_mtime - RECENT / 1000
    os.utime(note, (old, old))
    desk.shim.starts()
    for starts in (1, 0):  # the old note goes
        assert desk.writes(later, ME, *words) == ""
        assert desk.shim.starts() == starts


@pytest.mark.parametrize("shell", SHELLS)
def test_what_stands_in_a_note_s_place_is_not_written_to(desk: Desk, shell: str) -> None:
    """A link, a FIFO, a directory: nothing blocks, no file elsewhere changes."""
    words = (shutil.which(shell) or shell, *(("sh",) if shell == "busybox" else ()))
    desk.writes(desk.top / "src/a.py")
    notes, precious = desk.post.box / ".cache/edits" / ME, desk.post.scratch / "precious"
    precious.write_text("precious")
    for name, make in (
        ("l", lambda at: at.symlink_to(precious)),
        ("h", lambda at: at.hardlink_to(precious)),
        ("f", os.mkfifo),
        ("d", os.mkdir),
    ):
        make(notes / str(desk.top / "src" / name).replace("/", ":"))
        assert desk.writes(desk.top / "src" / name, ME, *words) == ""
    assert precious.read_text() == "precious"


@pytest.mark.parametrize("shell", SHELLS)
def test_a_note_that_the_shell_makes_is_its_user_s_alone(desk: Desk, shell: str) -> None:
    """Whatever the umask of the client: else the steward would report it."""
    words = (shutil.which(shell) or shell, *(("sh",) if shell == "busybox" else ()))
    desk.writes(desk.top / "src/a.py")
    desk.shim.starts()
    before = os.umask(0o022)
    try:
        assert desk.writes(desk.top / "src/b.py", ME, *words) == ""
    finally:
        os.umask(before)
    assert desk.shim.starts() == 0
    (note,) = (desk.post.box / ".cache/edits").glob("*/*b.py")
    assert note.stat().st_mode & 0o077 == 0


def test_a_note_in_another_s_name_says_nothing_of_strangers(desk: Desk) -> None:
    """A note of an edit that names a dead agent, or nobody in the roster, warns nobody."""
    path = desk.top / "src/a.py"
    desk.writes(path)
    desk.post.register("gone")
    desk.post.ok("roster", "retire", "--session-id", "gone")
    for name in ("nobody", "run\x1b[2Jrm", "gone", "a b", ".leased2"):
        there = desk.post.box / ".cache/edits" / name
        there.mkdir()
        (there / str(path).replace("/", ":")).touch()
        assert desk.writes(path) == "", name


def test_below_a_client_a_session_s_writes_are_noted_and_no_command_notes_another_s(shim: Shim) -> None:
    """The client's JSON comes through a socket, which the guard reads: the process it runs below tells whose it is."""
    post = shim.post
    guard = str(shim.checkout / "hooks/agent-mailbox-hook")
    notes = post.file(".cache", "edits")
    with Client(post) as client:
        assert client.hook(ME).rc == 0
        told = writing(post.cwd / "x").decode()
        assert client.bash(f"printf %s {shlex.quote(told.replace(ME, ADA))} | {shlex.quote(guard)} Files", ME).rc == 0
        assert not notes.exists()
        done = client.run([guard, "Files"], {"CLAUDE_CODE_SESSION_ID": ME, "CLAUDECODE": "1"}, json=told)
        assert (done.rc, done.stdout, done.stderr) == (0, "", "")
        assert [path.name for path in notes.iterdir()] == [ME]


def test_at_one_instant_one_of_many_gets_a_lease(post: Post) -> None:
    """Log order decides; every other gets exit 1 and holds nothing."""
    top = post.cwd
    for n in range(6):
        post.register(f"w{n}")
    children = [post.start("lease", "x/y/z.py", "--session", f"w{n}", "--json", cwd=top) for n in range(6)]
    outcomes = [child.communicate() and child.returncode for child in children]
    assert outcomes.count(0) <= 1
    assert set(outcomes) <= {0, 1}
    held = post.ok("lease", "list")["leases"]
    assert len(held) == outcomes.count(0)


def test_a_directory_is_leased_with_all_below_it(desk: Desk) -> None:
    """Its name means that, with a slash or without."""
    for words in ("src", "src/"):
        made = desk.lease(words)
        assert made["paths"] == ["src/**"]
        asked = desk.post.call("lease", "check", "src/deep/new.py", "--session", ME, cwd=desk.top)
        assert (asked.rc, "src/deep/new.py is leased by Ada" in asked.stdout) == (1, True), asked
        desk.post.ok("lease", "release", made["id"], "--session", ADA)


def test_before_a_commit_git_asks(desk: Desk) -> None:
    """``lease check --staged`` fails for what others lease, and passes for the holder."""
    (desk.top / "src/a.py").touch()
    git("-C", str(desk.top), "add", "src/a.py")
    desk.lease("src/**")
    for cwd in (desk.top, desk.top / "src"):
        asked = desk.post.call("lease", "check", "--staged", "--session", ME, cwd=cwd)
        assert (asked.rc, "src/a.py is leased by Ada" in asked.stdout) == (1, True), asked
    assert desk.post.call("lease", "check", "--staged", "--session", ADA, cwd=desk.top).rc == 0
    assert desk.post.call("lease", "check", "src/b.py", "--session", ME, cwd=desk.other).rc == 1
    assert desk.post.call("lease", "check", "b.py", "--session", ME, cwd=desk.other).rc == 0


def test_files_of_no_repository_are_shown_by_their_whole_path(desk: Desk, tmp_path: Path) -> None:
    """A leased file outside every repository is shown by its whole path. ``lease check --staged`` gives git's own error
    there."""
    desk.lease("notes.md", cwd=tmp_path)
    path = str(tmp_path / "notes.md")
    assert f"  {path} is leased by Ada" in desk.post.call("lease", "list").stdout
    assert f": {path}; until" in desk.post.call("control", "log").stdout
    refused(desk.post.call("lease", "notes.md", "--session", ME, cwd=tmp_path), 1, f"error: {path} is leased by Ada")
    asked = desk.post.call("lease", "check", "--staged", "--session", ME, cwd=tmp_path)
    refused(asked, 1, "git does not tell what is staged: fatal: not a git repository")


@pytest.mark.parametrize(
    "words",
    [
        ("**",),
        (".",),
        ("src/a\nb",),
        ("src/a", "/etc/passwd"),
        ("src/a", "--for", "25h"),
        [f"src/{n}" for n in range(21)],
    ],
    ids=range(6),
)
def test_nobody_leases_everything_or_what_cannot_be_shown(desk: Desk, words: tuple[str, ...]) -> None:
    """Malformed, with what to do, and nothing is written."""
    before = desk.post.file(MESSAGES).read_bytes()
    refused(desk.post.call("lease", *words, "--session", ADA, cwd=desk.top), 2, "hint: ")
    assert desk.post.file(MESSAGES).read_bytes() == before


def test_a_lease_costs_no_other_agent_a_word(desk: Desk) -> None:
    """It is in nobody's mail, and no dead letter when it is over."""
    lease = desk.lease("src/a.py", "--for", "1s")
    assert desk.mail(ME) == desk.mail(ADA) == []
    desk.post.ok("lease", "release", lease["id"], "--session", ADA)
    assert desk.post.ok("dead-letters", "--all")["messages"] == []


def test_a_lease_of_the_same_paths_takes_the_place_of_the_earlier_one(desk: Desk) -> None:
    """One release frees them then. A lease that has another path, too, stays."""
    wide = desk.lease("src/a.py", "docs/**")
    desk.lease("src/a.py")
    again = desk.lease("src/a.py", "--for", "2h")
    assert [one["id"] for one in desk.post.ok("lease", "list")["leases"]] == [wide["id"], again["id"]]


def test_a_lease_s_path_in_the_place_of_its_id_is_answered_with_the_id(desk: Desk) -> None:
    """The command that is named works as it is; a word that is no path of a lease is sent to the list."""
    held = desk.lease("docs/**", "src")["id"]
    told = refused(desk.post.call("lease", "release", held, "--session", ME, "--json"), 1, f"{held} is Ada's lease")
    assert told.json["error"]["code"] == "not_yours"
    hint = f"`agent-mailbox lease release {held} --session {ADA}`"
    for word in ("src", "src/", "docs"):
        done = refused(desk.post.call("lease", "release", word, "--session", ADA), 1, f"no lease '{word}'")
        assert hint.split(" --")[0] in done.stderr, done
    refused(desk.post.call("lease", "release", "rc", "--session", ADA), 1, "`agent-mailbox lease list` lists them")
    assert desk.post.call(*hint.strip("`").split()[1:]).rc == 0


def test_what_is_not_there_is_said_to_be_leased_as_a_file(desk: Desk) -> None:
    """It may be meant as a directory, and would keep nobody out of it. What is there, and a pattern, need no word."""
    done = desk.post.call("lease", "new", "--session", ADA, cwd=desk.top)
    assert "new is not there: leased as a file; a directory would be new/**" in done.stderr
    (desk.top / "src/a.py").touch()
    assert desk.post.call("lease", "src/a.py", "new/**", "src", "--session", ADA, cwd=desk.top).stderr == ""


def test_who_leases_what_another_may_hold_is_told(desk: Desk) -> None:
    """Nothing proves either of two programs, so neither keeps the other out: the second hears of the first."""
    nobody = {"AGENT_MAILBOX_TEST_CALLER": ""}
    first = desk.post.call("lease", "mine.*", "--session", ADA, cwd=desk.top, env=nobody)
    assert (first.rc, first.stderr) == (0, ""), first
    second = desk.post.call("lease", "mine.py", "--session", "other", cwd=desk.top, env=nobody)
    assert second.rc == 0, second
    assert "mine.* is leased by Ada (unverified) until" in second.stderr


def test_a_lease_is_noted_again_once_the_derived_files_are_gone(desk: Desk) -> None:
    """The shim asks Python before each call until the note is there. The first call that asks makes it."""
    desk.lease("src/a.py", who="bob")
    edits = Edits(Mailbox(str(desk.post.box)).logs)
    shutil.rmtree(desk.post.file(".cache"))
    assert not edits.is_ready()
    assert "src/a.py is leased by bob" in desk.writes(desk.top / "src/a.py")
    assert (edits.is_ready(), edits.is_leased()) == (True, True)
    shutil.rmtree(desk.post.file(".cache"))
    assert [lease.owner for lease in Leasing(OpenMailbox(str(desk.post.box))).settle_leases()] == ["bob"]
    assert (edits.is_ready(), edits.is_leased()) == (True, True)


def test_the_notes_of_leases_follow_what_holds_and_what_was_told(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the directory a lease may hold, and no write is noted. What a session was told is kept up to a limit."""
    edits = Edits(Mailbox(str(post.box)).logs)
    edits.note("/x/a", ADA, 1)
    assert (edits.is_ready(), edits.is_leased()) == (False, True)
    edits.leased()
    assert (edits.is_ready(), edits.is_leased()) == (True, True)
    for holds in (False, True, False):
        edits.settle(holds=holds)
        assert edits.is_leased() is holds
    for what in ("one", "two"):
        edits.tell(ADA, what)
    assert [edits.was_told(ADA, what) for what in ("one", "two", "on")] == [True, True, False]
    monkeypatch.setattr(edits_module, "_MOST", 8)
    edits.tell(ADA, "three")
    assert [edits.was_told(ADA, what) for what in ("one", "two", "three")] == [False, False, True]


def test_a_note_of_a_write_goes_when_it_counts_no_more(post: Post) -> None:
    """The steward drops it, and so does whoever looks for others; it counts until then."""
    post.register(ADA)
    edits, now = Edits(Mailbox(str(post.box)).logs), 1_773_662_400_000
    edits.settle(holds=False)
    for clean in (lambda when: edits.others("/x/a", ME, when), edits.sweep):
        edits.note("/x/a", ADA, now)
        (note,) = post.box.glob(f".cache/{EDITS}/{ADA}/*")
        clean(now + RECENT - 1)
        assert edits.others("/x/a", ME, now + RECENT - 1) == [Edit(ADA, now)]
        assert edits.others("/x/a", ADA, now) == []
        clean(now + RECENT)
        assert not note.exists()


def test_a_link_among_the_notes_of_writes_is_not_followed(post: Post, tmp_path: Path) -> None:
    """The mailbox may be another one's work. What a link leads to is no session's note, and nothing of it is removed;
    the notes of sessions beside it are found, and go in time."""
    edits, now = Edits(Mailbox(str(post.box)).logs), 1_773_662_400_000
    edits.settle(holds=True)
    notes, sessions = post.file(".cache", EDITS), ("w-1", "w-10", "w-2")
    for n, who in enumerate(sessions):
        edits.note("/x/ü", who, now + n)
    precious = [tmp_path / name / ":x:ü" for name in ("elsewhere", "other")]
    for n, path in enumerate(precious):
        path.parent.mkdir()
        path.touch()
        os.utime(path, (now // 1000, now // 1000))
        (notes / f"w{n}").symlink_to(path.parent)
    for when in (now, now + RECENT + 2):
        found = edits.others("/x/ü", "w-1", when)
        assert found == ([Edit("w-2", now + 2), Edit("w-10", now + 1)] if when == now else [])
        edits.sweep(when)
        assert [path.exists() for path in precious] == [True, True]
        assert {path.name for path in notes.iterdir()} == {".leased", "w0", "w1", *(sessions if when == now else ())}


def test_a_file_system_that_is_blind_for_case_is_told_by_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next directory above that is there, and whose name has letters, is looked for by its other name."""
    (tmp_path / "src/12").mkdir(parents=True)
    paths = [str(tmp_path / name) for name in ("src", "src/new", "src/12", "src/12/new/34")]
    assert [is_blind(path) for path in paths] == [False] * 4
    lower = {str(path).lower(): str(path) for path in (tmp_path, *tmp_path.rglob("*"))}
    for name in ("exists", "lstat"):
        real = getattr(system, name)
        monkeypatch.setattr(system, name, lambda path, real=real: real(lower.get(path.lower(), path)))
    assert [is_blind(path) for path in paths] == [True] * 4
    assert not is_blind("/12/34")
