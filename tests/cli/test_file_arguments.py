"""A file that a command sends: an agent's from its project alone, and by whatever name; the person's from anywhere.

What an editor writes at its beginning, and numbers and keys that a program could change in silence.
"""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.clients.permission.own_commands_hook import CommandPlace
from agent_mailbox.permissions import own_questions
from agent_mailbox.space.nats.connection import NatsConnection
from agent_mailbox.swarm.local import secret_in
from tests.helpers import FRAME, MESSAGES, READS, ROSTER, Post, begin_again, record, refused
from tests.surroundings import NOBODY_SAID, at_terminal, line

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

AGENT = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "worker"}
SECRET = "TOP SECRET"


@pytest.fixture
def project(post: Post) -> Path:
    """A project with its mailbox, and a secret beside it."""
    place = post.scratch / "project"
    place.mkdir()
    post.env.pop("AGENT_MAILBOX_DIR")
    assert post.call("init", cwd=place).rc == 0
    (post.home / "secret.key").write_text(SECRET)
    post.call("roster", "register", "--session-id", "worker", cwd=place)
    return place


def send(post: Post, cwd: Path, *words: object, env: dict[str, Any] = AGENT, **how: Any) -> Any:
    """A message of the agent's."""
    return post.run("send", "--from", "worker", "--to", "all", *words, cwd=cwd, env=env, **how)


def sent(project: Path) -> str:
    """All that the log holds."""
    return (project / "data" / MESSAGES).read_text()


def test_an_agent_sends_no_file_from_outside_its_project(post: Post, project: Path) -> None:
    """An agent cannot send a file whose real place is outside its project, not even by a link or descriptor."""
    secret = post.home / "secret.key"
    (project / "link").symlink_to(secret)
    (project / "out").symlink_to(post.home)
    batch = post.home / "batch.jsonl"
    batch.write_text(json.dumps({"recipient": "all", "content": SECRET}))
    os.mkfifo(post.home / "pipe")
    for body in (f"@{secret}", "@link", "@out/secret.key", "@../home/secret.key", "@/etc/passwd", "@data/../../home/x"):
        result = send(post, project, "--body", body)
        refused(result, 2 if body.endswith("/x") else 1)
    refused(post.run("send", "--jsonl", batch, cwd=project, env=AGENT), 1, "outside its project", "--body -")
    asked = ("control", "request", "permission", "--tool", "Bash", "--input", f"@{secret}")
    refused(post.run(*asked, cwd=project, env=AGENT), 1, "outside its project")
    with open(secret, "rb") as file:
        for name in (f"/proc/self/fd/{file.fileno()}", f"/dev/fd/{file.fileno()}"):
            refused(send(post, project, "--body", f"@{name}", pass_fds=(file.fileno(),)), 1, "outside its project")
    with subprocess.Popen(["sh", "-c", 'echo "$0" >"$1"', SECRET, post.home / "pipe"]) as writer:
        refused(send(post, project, "--body", f"@{post.home / 'pipe'}"), 1, "outside its project")
    assert writer.returncode is not None
    for cwd in (post.home, post.scratch):  # a directory one goes to is no project for that
        env = {**AGENT, "AGENT_MAILBOX_DIR": str(project / "data")}
        refused(send(post, cwd, "--body", f"@{secret}", env=env), 1, "outside its project")
    assert SECRET not in sent(project)


def test_an_agent_sends_files_of_its_project_and_what_it_is_handed(post: Post, project: Path) -> None:
    """Those of the mailbox's project and of the repository it works in; standard input by each of its names."""
    (project / "notes.md").write_text("NOTES")
    (project / "sub").mkdir()
    other = post.scratch / "other"
    (other / ".git").mkdir(parents=True)
    (other / "here.md").write_text("HERE")
    env = {**AGENT, "AGENT_MAILBOX_DIR": str(project / "data")}
    assert send(post, project / "sub", "--body", "@../notes.md").rc == 0
    assert send(post, other, "--body", "@here.md", env=env).rc == 0
    for name in ("-", "@-", "@/dev/stdin"):
        assert send(post, project, "--body", name, stdin=f"STDIN {name}").rc == 0
    assert all(word in sent(project) for word in ("NOTES", "HERE", "STDIN -", "STDIN @-", "STDIN @/dev/stdin"))


def test_the_person_and_a_program_send_any_file(post: Post, project: Path) -> None:
    """Their own rules are the system's."""
    assert send(post, project, "--body", f"@{post.home / 'secret.key'}", env={}).rc == 0
    assert SECRET in sent(project)


def test_told_by_their_processes_the_person_and_a_program_send_any_file(post: Post, project: Path) -> None:
    """Attached, too; and the person has themselves told elsewhere. A client's variable marks an agent."""
    post.env["AGENT_MAILBOX_DIR"] = str(project / "data")
    secret = post.home / "secret.key"
    said = ("send", "--to", "all", "--body", f"@{secret}", "--attach", secret)
    for command in (said, ("notify",)):
        done = at_terminal(post, line(*command))
        assert done.rc == 0, done
    assert post.run(*said, "--from", "cron", env=NOBODY_SAID).rc == 0
    assert [json.loads(one)["content"] for one in sent(project).splitlines()] == [SECRET, SECRET]
    marked = {**NOBODY_SAID, "CLAUDECODE": "1"}
    refused(post.run(*said, "--from", "cron", env=marked), 1, "outside its project")


def test_a_home_directory_under_git_is_no_project(post: Post) -> None:
    """People keep their settings so; their keys are there as well."""
    (post.home / ".git").mkdir()
    (post.home / "secret.key").write_text(SECRET)
    result = send(post, post.home, "--body", "@secret.key", env={**AGENT, "HOME": str(post.home)})
    refused(result, 1, "outside its project")


ASKED = (
    *(
        "agent-mailbox send --to all --body @~/secret.key",
        "agent-mailbox send --body=@x",
        "agent-mailbox send --jsonl x",
    ),
    *("cd x && agent-mailbox reply 1 --body '@/etc/passwd'", "bash -c 'agent-mailbox send --to a --body @x'"),
    *("agent-mailbox control request permission --tool Bash --input @x", "agent-mailbox send --to a --body - <~/x"),
    *("python3 -m agent_mailbox send --to a --jsonl=y", "scripts/agent_mailbox.py send --to a --body @x"),
)
NOT_ASKED = (
    *("agent-mailbox send --to all --body hello@example.org", "agent-mailbox send --to a --body -", "cat @x"),
    *(
        "agent-mailbox send --to a --body - <<E\n@x\nE",
        "agent-mailbox send --jsonl -",
        "agent-mailbox check </dev/null",
    ),
    *("agent-mailbox send --to a --body @/dev/stdin", "agent-mailbox send --to a --body @-"),
)


def asked(text: str) -> str | None:
    """Why the client must ask about a command, for an agent that has no mailbox."""
    return own_questions.question_about(text, CommandPlace("/", lambda: None))


@pytest.mark.parametrize("text", ASKED)
def test_the_client_asks_about_a_command_that_sends_a_file(text: str) -> None:
    """The client asks its person about each command that sends a file, however it is written."""
    assert asked(text)


@pytest.mark.parametrize("text", NOT_ASKED)
def test_the_client_does_not_ask_about_plain_mail(text: str) -> None:
    """The client does not ask about plain mail, even if its text looks like a file."""
    assert asked(text) is None


def test_an_agent_attaches_files_of_its_project_alone(post: Post, project: Path) -> None:
    """An agent can attach only files whose real place is in its project. The person can attach any file."""
    secret = post.home / "secret.key"
    (project / "link").symlink_to(secret)
    (project / "note.md").write_text("NOTE")
    for name in (secret, "link", "../home/secret.key"):
        refused(send(post, project, "--body", "x", "--attach", name), 1, "outside its project")
    assert send(post, project, "--body", "x", "--attach", "note.md").rc == 0
    assert send(post, project, "--body", "x", "--attach", secret, env={}).rc == 0
    for text in ("--attach .env", "--attach=.env", "--body x --attach notes --attach .env"):
        assert asked(f"agent-mailbox send --to all {text}")


def test_a_call_without_words_hides_no_file() -> None:
    """The program by its bare name sends nothing; a call behind it is still looked at."""
    assert asked("agent-mailbox") is None
    assert asked("agent-mailbox; agent-mailbox send --to bob --body @/etc/passwd") is not None


# -- what an editor writes at a file's beginning, and numbers ---------------------------------------------------------


BOM = b"\xef\xbb\xbf"
DIGITS = (
    "12345678901234567890123",
    "-9223372036854775809",
    "3.14159265358979323846264338",
    "1e-400",
    "18446744073709551616",
)
"""Numbers that neither a float nor 64 bits hold."""


def test_a_byte_order_mark_is_no_part_of_a_text_that_is_sent(post: Post) -> None:
    """Commands drop a byte order mark before a body, a batch and a tool's input."""
    post.register("bob")
    post.register("ann", "--lead", "user")
    file = post.cwd / "text"
    for data, words in ((b"hi", ("--body", f"@{file}")), (b'{"recipient":"bob","content":"hi"}', ("--jsonl", file))):
        file.write_bytes(BOM + data)
        to = () if "--jsonl" in words else ("--to", "bob")
        assert post.call("send", "--from", "ann", *to, *words).rc == 0
        assert post.objects(MESSAGES)[-1]["content"] == "hi"
    assert post.call("send", "--from", "ann", "--to", "bob", "--body", "-", stdin=BOM + b"in").rc == 0
    assert post.objects(MESSAGES)[-1]["content"] == "in"
    asked = ("control", "request", "permission", "--session", "ann", "--tool", "Bash", "--input", "-")
    assert post.call(*asked, stdin=BOM + b'{"command":"ls"}').rc == 0


@pytest.mark.parametrize("log", [MESSAGES, READS, ROSTER])
def test_a_byte_order_mark_hides_no_line(post: Post, log: str) -> None:
    """Commands read the first line of a log after a byte order mark like any other line."""
    post.register("bob")
    shown = post.send("ann", "bob", "first")
    post.check("bob")
    if log == MESSAGES:
        post.file(log).write_bytes(b"")
        mail = record(recipient="bob", content="marked")
        shown = mail["id"]
        post.append(log, BOM + json.dumps(mail).encode() + b"\n", record(recipient="bob", content="plain"))
    else:
        post.file(log).write_bytes(BOM + post.file(log).read_bytes())
    begin_again(post.box, post.environ())
    if log == MESSAGES:
        assert len(post.check("bob")) == 2
        assert [m["id"] for m in post.ok("search", "marked")["messages"]] == [shown]
    assert post.unread("bob") == []
    assert post.ok("show", shown)["message"]["read_by"] == ["bob"]
    assert [p for p in post.doctor() if "not a record" in p["what"] or "torn" in p["what"]] == []
    assert post.call("export").stdout.count(shown) == 1


@pytest.mark.parametrize("own", [False, True], ids=["mailbox", "person"])
def test_a_byte_order_mark_ends_no_configuration(post: Post, own: bool) -> None:
    """A setting in a file with a byte order mark counts, and nobody is warned."""
    file = post.user_state / "config.toml" if own else post.file("config.toml")
    post.register("bob")
    file.write_bytes(BOM + (b"[notify]\ncontent = true\n" if own else b"[limits]\ncontent_bytes = 5\n"))
    file.chmod(0o600)
    assert [p for p in post.doctor() if "TOML" in p["what"]] == []
    if not own:
        refused(post.call("send", "--from", "ann", "--to", "bob", "--body", "longer"), 3, "5 bytes")


def test_a_byte_order_mark_before_a_hook_s_json_is_passed(post: Post) -> None:
    """The mail is shown."""
    post.register("bob")
    post.send("ann", "bob")
    assert FRAME in post.call("hook", "UserPromptSubmit", stdin=BOM + b'{"session_id":"bob"}').stdout


def by_batch(post: Post, line: str) -> None:
    """Have a batch send it."""
    assert post.call("send", "--from", "ann", "--jsonl", "-", stdin=line).rc == 0


def by_another(post: Post, line: str) -> None:
    """Have a foreign program write it."""
    text = json.dumps(record(recipient="bob"), separators=(",", ":"))
    more = line[line.index('"n"') :]
    post.append(MESSAGES, f"{text[:-1]},{more}\n".encode())


@pytest.mark.parametrize("write", [by_batch, by_another])
@pytest.mark.parametrize("number", DIGITS)
def test_a_number_keeps_its_digits(post: Post, number: str, write: Callable[[Post, str], Any]) -> None:
    """The log, the JSON output and the export keep all digits of a number in an unknown key."""
    post.register("bob")
    write(post, f'{{"recipient":"bob","content":"x","n":{number},"metadata":{{"m":[{number}]}}}}')
    assert f'"n":{number}' in post.file(MESSAGES).read_text()
    for words in (("check", "--session", "bob", "--json"), ("history", "--all", "--json"), ("export",)):
        said = post.call(*words)
        assert (said.rc, said.stdout.count(number)) == (0, 2), said


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"recipient":"bob","content":"a","content":"b"}', "'content' occurs twice"),
        ('{"recipient":"bob","content":"a","metadata":{"k":1,"k":2}}', "'k' occurs twice"),
        ('{"recipient":"bob","content":"a","n":1e400}', "out of range"),
        ('{"recipient":"bob","content":"a","n":NaN}', "NaN is not JSON"),
        ('{"recipient":"bob","content":"a","n":-Infinity}', "not JSON"),
        ('{"recipient":"bob","content":"a\\ud800"}', "half of a surrogate pair"),
        ('{"recipient":"bob","content":"a","n":' + "9" * 5000 + "}", "not JSON"),
    ],
)
def test_what_cannot_be_kept_is_refused_with_its_line(post: Post, line: str, said: str) -> None:
    """Nothing of the batch is sent, and nothing is changed in silence."""
    post.register("bob")
    given = '{"recipient":"bob","content":"fine"}\n' + line
    refused(post.call("send", "--from", "ann", "--jsonl", "-", stdin=given), 3, "line 2", said, "nothing was sent")
    assert post.objects(MESSAGES) == []
    tool = line.replace('"recipient":"bob",', "")
    asked = ("control", "request", "permission", "--session", "ann", "--tool", "Bash", "--input", "-")
    refused(post.call(*asked, stdin=tool), 3 if "surrogate" in said else 2)
    assert post.objects(MESSAGES) == []


def test_a_tool_s_input_keeps_its_digits(post: Post) -> None:
    """A permission request shows the lead all digits of a number in the tool's input."""
    post.register("ann", "--lead", "user")
    asked = (
        "control",
        "request",
        "permission",
        "--session",
        "ann",
        "--tool",
        "mcp__x",
        "--input",
        '{"id":' + DIGITS[0] + "}",
    )
    assert post.call(*asked).rc == 0
    assert f'"id":{DIGITS[0]}' in post.call("control", "pending", "--session", "user", "--json").stdout.replace(" ", "")


def test_a_byte_order_mark_is_no_part_of_a_secret(post: Post) -> None:
    """The program drops a byte order mark before an engine's credential and before a wake token."""
    file = post.cwd / "secret"
    file.write_bytes(BOM + b"token\n")
    file.chmod(0o600)
    assert NatsConnection("nats://127.0.0.1:1", str(file), None)._login_fields() == {"auth_token": "token"}
    assert secret_in(str(file), "wake_secret_file") == "token"
