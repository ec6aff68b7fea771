"""Sessions in containers: process numbers of their own, real namespaces, ``kill -9``, the installed command."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from agent_mailbox.store.user_state.processes import ProcessRecords
from tests.cli.test_gone import DEAD, OTHER, Killed, pair, state
from tests.helpers import DOOR, until
from tests.surroundings import at_terminal, can_run, kind, who

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.helpers import Post, Result

__all__ = ["pair"]
ELSEWHERE = ("unshare", "-Urpf", "--kill-child", "--mount-proc")
pytestmark = pytest.mark.skipif(not can_run(*ELSEWHERE, "true"), reason="no namespaces of one's own")


@pytest.fixture
def containers(post: Post) -> Iterator[tuple[Killed, Killed]]:
    """Two clients, each the first process of a container. The first one runs a session."""
    with ExitStack() as stack:
        first, second = (stack.enter_context(Killed(post, under=ELSEWHERE)) for _ in range(2))
        assert first.hook(DEAD).rc == 0
        assert second.hook(OTHER).rc == 0  # each has its own record, though their numbers are the same
        assert kind(first.bash(who(), DEAD)) == ["session", DEAD]
        yield first, second


def sees_all(post: Post) -> bool:
    """Whether these tests see each process of the machine: they may run in a container themselves."""
    return ProcessRecords(str(post.user_state)).sees_all()


def go_on(client: Killed) -> Result:
    """Resume the session with another client."""
    return client.hook(DEAD, source="resume")


def test_a_session_whose_client_ended_goes_on_in_another_container(
    post: Post, containers: tuple[Killed, Killed]
) -> None:
    """Its last hook said so. Nobody in the other container could see it."""
    first, second = containers
    assert first.hook(DEAD, "SessionEnd", reason="prompt_input_exit").rc == 0
    first.kill()
    post.send("bob", DEAD, "WORK")
    assert "WORK" in go_on(second).stdout
    assert kind(second.bash(who(), DEAD)) == ["session", DEAD]
    assert state(post, DEAD) == ("alive", False)


@pytest.mark.parametrize("reason", ["clear", "resume"])
def test_a_client_that_has_another_session_now_has_not_ended(containers: tuple[Killed, Killed], reason: str) -> None:
    """Another container does not get what it runs."""
    first, second = containers
    assert first.hook(DEAD, "SessionEnd", reason=reason).rc == 0
    assert go_on(second).rc == 1


def test_a_client_that_said_its_end_and_runs_on_is_believed_no_more(containers: tuple[Killed, Killed]) -> None:
    """Its next hook says that it lives."""
    first, second = containers
    assert first.hook(DEAD, "SessionEnd", reason="other").rc == 0
    assert first.hook(DEAD, "UserPromptSubmit").rc == 0
    assert go_on(second).rc == 1


def test_a_record_under_an_earlier_version_s_name_counts(post: Post, containers: tuple[Killed, Killed]) -> None:
    """A session that an earlier version recorded in a container acts as itself after the upgrade. That named the file
    by the process's number alone; what it says of the container tells whose it is."""
    first, second = containers
    for path in (post.user_state / "clients").iterdir():
        if DEAD in path.read_text():
            path.rename(path.with_name(path.name.partition("-")[0]))
    assert kind(first.bash(who(), DEAD)) == ["session", DEAD]
    assert kind(second.bash(who(), OTHER)) == ["session", OTHER]


def test_a_session_of_a_living_container_is_not_taken_over(containers: tuple[Killed, Killed]) -> None:
    """The refusal names both ways out, and each works when pasted."""
    first, second = containers
    refused = go_on(second)
    assert refused.rc == 1
    assert "runs in another container" in refused.stderr
    assert "agent-mailbox roster list" in refused.stderr
    first.kill()
    assert go_on(second).rc == 1  # nobody here saw its end
    removing = refused.stderr.partition("`rm ")[2].partition("`")[0]
    assert second.bash(f"rm {removing}").rc == 0
    assert go_on(second).rc == 0


def test_who_sees_all_processes_sees_the_end_of_a_container(post: Post, containers: tuple[Killed, Killed]) -> None:
    """Its session goes on in another container. It is not gone: only processes beside it are judged."""
    first, second = containers
    first.kill()

    def goes_on() -> bool:
        assert state(post, DEAD) == state(post, OTHER) == ("alive", False)
        return go_on(second).rc == 0

    assert until(goes_on) if sees_all(post) else not goes_on()


def test_a_living_container_is_no_doubt_about_the_person(post: Post, containers: tuple[Killed, Killed]) -> None:
    """A terminal that sees each process of the machine has none above it unseen."""
    del containers
    caller = kind(at_terminal(post, who()))
    assert (caller[0] == "person") == sees_all(post), caller


def test_a_container_judges_no_session_outside(post: Post, pair: tuple[Killed, Killed]) -> None:
    """It sees none of the host's processes, the living ones neither, and says of none that it is gone."""
    pair[0].kill()
    code = (
        f"import sys; sys.path.insert(0, {str(DOOR)!r}); from agent_mailbox.mailbox.open_mailbox import OpenMailbox;"
        f"print(sorted(OpenMailbox({str(post.box)!r}).gone([{DEAD!r}, {OTHER!r}])))"
    )
    for under, found in (((), [DEAD]), (ELSEWHERE, []), (ELSEWHERE[:-1], [])):
        done = subprocess.run(
            [*under, sys.executable, "-c", code], env=post.environ(), capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == str(found), under
