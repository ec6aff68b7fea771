"""What the console tells when a file of the mailbox, or of the person, cannot be written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.console.conftest import Running

if TYPE_CHECKING:
    from pathlib import Path

ASKS = ("control", "request", "permission", "--tool", "Bash", "--input", '{"command": "make"}', "--session", "ada")


def block(path: Path) -> None:
    """Have a directory with something in it where a file is."""
    path.unlink()
    (path / "in the way").mkdir(parents=True)


def test_a_mark_that_cannot_be_kept_is_no_success(running: Running) -> None:
    """Putting off, muting and marking as seen are refused where their file cannot be written; pages still come."""
    post = running.post
    post.register("ada", "--name", "Ada")
    made = post.send("ada", "user", "two")
    assert running.ask("/").status == 200
    (marks,) = post.home.rglob("seen.json")
    block(marks)
    for path, fields in (
        ("/put-off", {"id": made}),
        ("/put-off", {}),
        ("/place", {"place": "all", "kind": "muted", "on": "1"}),
        ("/seen", {"to": "all", "until": "1000"}),
    ):
        told = running.does(path, **fields)
        assert (told["kind"], str(marks) in told["said"]) == ("problem", True), told
    assert "two" in running.ask("/").text


def test_a_decision_counts_though_its_request_stays_unread(running: Running) -> None:
    """The answer says that it was decided, with what failed behind it."""
    post = running.post
    post.register("ada", "--name", "Ada")
    ids = [post.ok(*ASKS)["request"]["id"] for _ in range(3)]
    beats = post.file("agent-heartbeats")
    beats.rename(beats.with_name("away"))
    beats.write_text("")
    one = running.does("/decide", request=ids[0], decision="approve")
    rest = running.does("/decide-chosen", decision="deny", **{f"chosen:{each}": "1" for each in ids[1:]})
    for told, said in ((one, "approved. Ada was told. But it stays unread: "), (rest, "2 denied: ")):
        assert (told["kind"], said in told["said"], str(beats) in told["said"]) == ("done", True, True), told
    assert "approved before" in running.does("/decide", request=ids[0], decision="approve")["said"]
