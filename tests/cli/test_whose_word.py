"""``--session`` of another at the person's terminal, decisions taken again, requests that nobody can answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_mailbox.core.control import messages, summary
from agent_mailbox.core.control.leases import Leases
from agent_mailbox.core.control.verdicts import UNPROVEN
from agent_mailbox.core.control.watches import Watches
from tests.helpers import MESSAGES, Result, record, refused
from tests.surroundings import Client, at_terminal, line, results_of, several

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_mailbox.core.control.messages import Payload
    from tests.helpers import Post

REFUSED = (
    ("control", "request", "permission", "--tool", "Bash"),
    ("control", "request", "plan", "--body", "x"),
    ("control", "request", "sandbox", "--host", "example.org"),
    ("control", "request", "shutdown", "w"),
    ("control", "request", "task", "w", "--title", "t"),
    ("control", "deny", "perm-1"),
    ("control", "report", "task-1", "--phase", "done"),
    ("control", "wait", "perm-1", "--timeout", "0"),
    ("control", "mode", "w", "safe"),
    ("control", "policy", "w", "--deny", "Bash"),
    ("control", "policy", "w", "--clear"),
    ("watch", "w", "--idle"),
    ("watch", "cancel", "watch-1"),
    ("lease", "x"),
    ("lease", "release", "lease-1"),
)
APPROVALS = (("control", "approve", "perm-1"), ("control", "answer", "perm-1", "approve"))
"""They ask where the person sees them, and have to be shown at the terminal."""
LOOKS = (
    ("control", "pending"),
    ("control", "log"),
    ("control", "mode"),
    ("control", "policy", "w"),
    ("control", "wait", "perm-1"),
    ("watch", "list"),
    ("lease", "check", "x"),
)


@pytest.fixture
def worker(post: Post) -> Iterator[Client]:
    """A client that runs ``w``, and two agents without a client: ``lee`` leads ``sam``."""
    with Client(post) as client:
        assert client.hook("w").rc == 0
        post.register("lee", "--name", "Lee")
        post.register("sam", "--name", "Sam", "--lead", "lee")
        yield client


def told(post: Post) -> list[Result]:
    """How each of several commands ended whose results went to the file."""
    return results_of(Result(0, (post.cwd / "told").read_bytes(), b""))


@pytest.mark.usefixtures("worker")
def test_at_the_person_s_terminal_nothing_is_decided_or_asked_in_another_s_name(post: Post) -> None:
    """Refused, with where to run it; nothing is written. A variable that names another is no other case."""
    before = post.file(MESSAGES).read_bytes()
    name = post.ok("status", "--session", "w")["name"]
    why = "this is the person's terminal: nothing proves that "
    named = f"hint: run it in {name}'s own session, or leave --session out to act as yourself"
    for more, env, hint in (
        (("--session", "w"), {}, named),
        (("--session", "Lee"), {}, "hint: leave --session out to act as yourself"),
        ((), {"AGENT_MAILBOX_SESSION": "w"}, "unset AGENT_MAILBOX_SESSION"),
    ):
        shown = "; ".join(line(*words, *more) for words in APPROVALS)
        done = at_terminal(post, f"{several([(*words, *more) for words in REFUSED])} >told; {shown}", env=env)
        assert (done.stdout.count(f"error: {why}"), done.stdout.count(hint)) == (2, 2), done
        for _, ended in zip(REFUSED, told(post), strict=True):
            refused(ended, 1, why, hint)
    assert post.file(MESSAGES).read_bytes() == before


@pytest.mark.usefixtures("worker")
def test_at_the_person_s_terminal_one_may_look_in_another_s_name(post: Post) -> None:
    """Each look answers; ``user`` is the person, who may say so."""
    asked = post.ok("control", "request", "permission", "--tool", "Bash", "--request-id", "perm-1", "--session", "sam")
    assert at_terminal(post, line("control", "deny", asked["request"]["id"], "--session", "user")).rc == 0
    at_terminal(post, f"{several([(*words, '--session', 'w') for words in LOOKS])} >told")
    for words, done in zip(LOOKS, told(post), strict=True):
        assert "the person's terminal" not in done.stderr, (words, done)


def said(post: Post, *words: str) -> Result:
    """The command at the person's terminal."""
    return at_terminal(post, line(*words))


@pytest.mark.usefixtures("worker")
def test_a_decision_that_is_taken_again_says_so(post: Post) -> None:
    """A repeated decision says who decided before and when, and changes nothing. Another decision is refused."""
    ask = ("control", "request", "permission", "--tool", "Bash", "--session", "sam", "--request-id")
    post.ok(*ask, "perm-1")
    first = said(post, "control", "deny", "perm-1")
    assert (first.rc, "already" in first.stdout) == (0, False), first
    again = said(post, "control", "deny", "perm-1")
    assert again.rc == 0
    assert "already denied by user, 20" in again.stdout
    assert "nothing changed" in again.stdout
    refused = said(post, "control", "approve", "perm-1")
    assert refused.rc == 1
    assert "perm-1 is decided: denied, by the person, 20" in refused.stdout


@pytest.mark.usefixtures("worker")
def test_the_end_of_a_lease_or_a_watch_that_is_over_says_so(post: Post) -> None:
    """A second release of a lease, or cancelling of a watch, says that it was over already. A program ends neither."""
    made = post.ok("lease", "src/x", "--session", "sam")["leases"][0]["id"]
    watch = post.ok("watch", "lee", "--idle", "--session", "sam")["watches"][0]["id"]
    for words, ended in ((("lease", "release", made), "released"), (("watch", "cancel", watch), "cancelled")):
        programs = post.call(*words, "--session", "sam", env={"AGENT_MAILBOX_TEST_CALLER": ""})
        refused(programs, 1, f"the {words[0]} is sam's", "a program may not")
        first, again = (post.call(*words, "--session", "sam") for _ in range(2))
        assert (first.rc, first.stdout.split()[0]) == (0, ended)
        assert (again.rc, again.stdout.startswith("was over already: ")) == (0, True)
        assert post.ok(*words, "--session", "sam")["already"] is True


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize(
    ("notices", "words"), [(Leases, ("lease", "src/x")), (Watches, ("watch", "lee", "--idle"))], ids=["lease", "watch"]
)
def test_who_has_too_many_leases_or_watches_is_told_so(
    post: Post, monkeypatch: pytest.MonkeyPatch, notices: type[Leases | Watches], words: tuple[str, ...]
) -> None:
    """It is told where it finds one to end, too."""
    monkeypatch.setattr(notices, "MOST_HELD", 1)
    post.ok(*words, "--session", "sam")
    told = refused(post.call(*words, "--session", "sam"), 1, f"too many {words[0]}", "1 at an instant")
    assert f"one of yours: `agent-mailbox {words[0]} list" in told.stderr


@pytest.mark.usefixtures("worker")
def test_a_task_that_is_reported_done_again_says_so(post: Post) -> None:
    """Another text of the second report goes to nobody."""
    assert said(post, "control", "request", "task", "sam", "--title", "t", "--request-id", "task-1").rc == 0
    done = ("control", "report", "task-1", "--phase", "done", "--session", "sam")
    assert "already" not in post.call(*done, "--body", "first").stdout
    before = post.file(MESSAGES).read_bytes()
    again = post.call(*done, "--body", "second")
    assert (again.rc, post.file(MESSAGES).read_bytes()) == (0, before)
    assert "already done by Sam, 20" in again.stdout
    assert "nothing changed" in again.stdout


@pytest.mark.usefixtures("worker")
def test_a_request_that_its_lead_cannot_answer_is_told_to_the_person(post: Post) -> None:
    """The person sees a request that its lead cannot answer, with the command that decides it."""
    assert "nothing waits for you" in said(post, "control", "pending").stdout
    assert "no open requests" in said(post, "control", "pending", "--all").stdout
    post.ok("control", "request", "permission", "--tool", "Bash", "--session", "sam", "--request-id", "perm-1")
    pending = said(post, "control", "pending").stdout
    assert "nothing waits" not in pending
    assert "Sam, waits for Lee, who cannot answer: no client proves who that is; you can" in pending
    assert "agent-mailbox approve perm-1" in pending
    assert said(post, "control", "deny", "perm-1").rc == 0
    assert said(post, "control", "request", "shutdown", "sam", "--request-id", "shutdown-1").rc == 0
    pending = said(post, "control", "pending").stdout
    assert "agent-mailbox roster retire sam" in pending
    assert said(post, "roster", "retire", "sam").rc == 0


@pytest.mark.usefixtures("worker")
def test_a_request_that_nothing_proves_can_only_be_denied(post: Post) -> None:
    """``control pending`` and ``show`` offer only the denial of a request that nothing proves; ``check`` says so."""
    text = '{"type":"permission_request","requestId":"perm-x","tool":{"name":"Bash","input":{"command":"ls"}}}'
    asked = record("sam", ["lee", "user"], text, type="control")
    post.append(MESSAGES, asked)
    offered = 'agent-mailbox deny perm-x --reason "…"'
    for words in (("control", "pending"), ("show", asked["id"])):
        shown = said(post, *words).stdout
        assert offered in shown, words
        assert "approve perm-x" not in shown
        assert "--always" not in shown
    assert "you can only" in said(post, "control", "pending").stdout
    assert "nothing proves who asks, so it can only be denied" in said(post, "control", "pending", "--all").stdout
    assert UNPROVEN in said(post, "check", "--peek").stdout
    assert said(post, *offered.replace('"…"', "no").split()[1:]).rc == 0
    assert "nothing waits for you" in said(post, "control", "pending").stdout


@pytest.mark.parametrize("kind", messages.TYPES.values(), ids=messages.TYPES)
def test_every_control_message_has_a_text(kind: type[Payload]) -> None:
    """Behind its name and id, whatever fields it leaves out."""
    told = summary.line(kind(request_id="r-1"))
    assert told.partition(": ")[2].strip(), told


@pytest.mark.usefixtures("worker")
def test_the_removal_of_all_rules_reads_so_at_every_door(post: Post) -> None:
    """Each command that shows the message says that it removes all rules and hosts."""
    assert said(post, "control", "policy", "sam", "--clear").rc == 0
    sent = post.objects(MESSAGES)[-1]["id"]
    told = "team_permission_update: removes all rules and hosts"
    for words in (("check", "--session", "sam", "--peek"), ("show", sent), ("thread", sent), ("control", "log")):
        assert told in post.call(*words).stdout, words


def test_who_is_bound_is_named_to_a_program_that_may_not(post: Post) -> None:
    """Else nobody finds the session that has it refused."""
    (post.user_state / "bound").mkdir(exist_ok=True)
    (post.user_state / "bound/gus").touch()
    done = post.call("backup", post.scratch.parent / "out.tar", env={"AGENT_MAILBOX_TEST_CALLER": ""})
    refused(done, 1, "sessions are bound (gus", "wherever that is, and a program calls")


def test_a_backup_without_leads_and_rules_is_restored_without_a_word_of_them(post: Post) -> None:
    """``restore`` names the command that makes leads count only if the backup has leads or rules."""
    post.register("lee")
    post.send("lee", "all")
    for n, has_lead in enumerate((False, True)):
        if has_lead:
            post.register("sam", "--lead", "lee")
        assert post.call("backup", "--force", post.box.parent / "b.tar").rc == 0
        done = post.call("restore", post.box.parent / "b.tar", post.scratch / f"again{n}")
        assert done.rc == 0, done
        assert ("init --adopt" in done.stdout) == ("leads and rules" in done.stdout) == has_lead
