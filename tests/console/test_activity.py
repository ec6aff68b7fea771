"""An agent's activity and transcript, never another file's content; and what mail costs its readers, in tokens."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from agent_mailbox.console import spending
from agent_mailbox.console.spending import Spending
from agent_mailbox.core import codec
from agent_mailbox.core.records import Read
from agent_mailbox.mailbox.mailbox import Mailbox
from agent_mailbox.store.attachments import conversation_files
from tests.claude.test_hooks import ME, Client
from tests.console.conftest import Running, Window

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from playwright.sync_api import Browser

    from tests.console.conftest import Running
    from tests.helpers import Post


AT = "2026-03-16T14:30:00.000Z"
HOSTILE = "<script>alert(1)</script> \u202edlrow"


class Keeper:
    """A session whose client keeps a transcript."""

    def __init__(self, console: Running, path: Path) -> None:
        self.path = path
        self.client = Client(console.post)
        self.client.hook("SessionStart", transcript_path=str(path))

    def write(self, *events: dict[str, Any]) -> None:
        """Add lines as Claude Code writes them."""
        with self.path.open("a") as file:
            file.writelines(json.dumps({"timestamp": AT, "isSidechain": False, **event}) + "\n" for event in events)


def said(kind: str, *blocks: object) -> dict[str, Any]:
    """A line with a message."""
    return {"type": kind, "message": {"role": kind, "content": blocks[0] if isinstance(blocks[0], str) else blocks}}


CALL = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": f"npm test {HOSTILE}"}}


@pytest.fixture
def keeper(running: Running, tmp_path: Path) -> Keeper:
    """A session that was prompted, saw mail, and runs a tool."""
    found = Keeper(running, tmp_path / f"{ME}.jsonl")
    told = {"type": "hook_additional_context", "hookEvent": "UserPromptSubmit", "content": ["Agent mail 1a2b3c"]}
    found.write(
        said("user", f"Begin. {HOSTILE}"),
        {"type": "attachment", "attachment": told},
        {"type": "summary", "summary": "not a step"},
        said("assistant", {"type": "text", "text": "I **begin**."}, CALL),
        {**said("assistant", {"type": "text", "text": "from below"}), "isSidechain": True},
    )
    return found


def test_a_page_tells_the_present_step_and_the_last_ones(running: Running, keeper: Keeper) -> None:
    """A call that goes on is told as such; its outcome is with it; a subagent's step is called so."""
    page = running.ask(f"/agent?id={ME}").text
    assert "runs Bash npm test &lt;script&gt;" in page
    assert f'href="/transcript?id={ME}"' in page
    page = running.ask(f"/transcript?id={ME}").text
    assert page.count('class="step entry') == 5
    assert "<strong>begin</strong>" in page
    assert "Agent mail 1a2b3c" in page
    assert ("by a subagent" in page, "goes on" in page) == (True, True)
    assert "<script>alert" not in page
    assert "\u202e" not in page
    keeper.write(said("user", {"type": "tool_result", "tool_use_id": "t1", "is_error": True, "content": "1 failed"}))
    page = running.ask(f"/transcript?id={ME}").text
    assert page.count('class="step entry') == 5
    assert ("1 failed" in page, "goes on" in page, ">failed<" in page) == (True, False, True)
    assert "works, <time" in running.ask(f"/agent?id={ME}").text
    keeper.write(said("assistant", {"type": "text", "text": "Done."}))
    assert "has spoken, <time" in running.ask(f"/agent?id={ME}").text


def test_an_open_page_follows_and_leaves_open_what_one_reads(
    running: Running, keeper: Keeper, browser: Browser
) -> None:
    """New steps come by themselves; details that the person opened stay open."""
    window = Window(browser, running)
    page = window.go(f"/transcript?id={ME}")
    page.locator(".step.by-told summary").click()
    keeper.write(said("assistant", {"type": "text", "text": "Something new."}))
    expect(page.get_by_text("Something new.")).to_be_visible()
    expect(page.locator(".step.by-told pre")).to_be_visible()
    assert window.problems == []


@pytest.mark.parametrize("wrong", ["name", "link", "pipe", "directory"])
def test_activity_reads_only_the_session_s_own_file(running: Running, tmp_path: Path, wrong: str) -> None:
    """It tells the path itself: only a plain file under its own id is read, and no page waits for a pipe."""
    import os

    secret = tmp_path / "secret.jsonl"
    secret.write_text(json.dumps(said("user", "the secret")) + "\n")
    path = tmp_path / f"{ME}.jsonl"
    if wrong == "name":
        path = secret
    elif wrong == "link":
        path.symlink_to(secret)
    elif wrong == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    Keeper(running, path)
    page = running.ask(f"/transcript?id={ME}").text
    assert "no conversation that can be read here" in page
    assert "the secret" not in page


def test_a_malformed_conversation_line_hides_no_other_step(tmp_path: Path) -> None:
    """Whatever is in the file, the other steps are told."""
    path = tmp_path / f"{ME}.jsonl"
    odd: tuple[Any, ...] = (None, 1, "x", [], {}, [None, 1, [], {"type": "text"}, {"type": "tool_use"}], {"role": 1})
    lines = [json.dumps({"type": kind, "message": {"content": o}}) for o in odd for kind in ("user", "assistant")]
    lines += [json.dumps({"type": "attachment", "attachment": o}) for o in odd]
    lines += [json.dumps(o) for o in odd] + ["[" * 9000, "{", "\udcff", json.dumps(said("user", "still here"))]
    path.write_bytes("\n".join(lines).encode("utf-8", "surrogateescape") + b'\n{"type":"user","mess')
    steps = conversation_files.latest(str(path), ME)
    assert steps is not None
    assert steps[-1].text == "still here"


def test_a_step_that_no_log_of_ours_could_hold_is_told(tmp_path: Path) -> None:
    """A client writes half a pair of surrogates where it cut a text, and nests as deep as a tool does."""
    path = tmp_path / f"{ME}.jsonl"
    deep: dict[str, Any] = {}
    for _ in range(2 * codec.MAX_DEPTH):
        deep = {"in": deep}
    call = {**CALL, "input": {"deep": deep}}
    path.write_text("".join(f"{json.dumps(line)}\n" for line in (said("user", "cut \ud83d"), said("assistant", call))))
    assert [s.kind for s in conversation_files.latest(str(path), ME) or ()] == ["prompt", "call"]


def test_only_what_a_hook_told_is_shown_of_attachments(tmp_path: Path) -> None:
    """Claude Code keeps other attachments in the conversation, too: nobody told the model these."""
    path = tmp_path / f"{ME}.jsonl"
    kinds = ("file", "hook_additional_context", "todo")
    parts = [{"type": kind, "content": f"of {kind}"} for kind in kinds]
    lines = [{"timestamp": AT, "type": "attachment", "sessionId": ME, "attachment": part} for part in parts]
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))
    found = [(s.kind, s.text) for s in conversation_files.latest(str(path), ME) or ()]
    assert found == [("told", "of hook_additional_context")]


def test_codex_s_rollout_is_shown_as_activity(tmp_path: Path) -> None:
    """Codex's items by their roles; a call's input by its fields, its output with it."""
    path = tmp_path / f"rollout-2026-03-16T14-30-00-{ME}.jsonl"
    items: list[dict[str, Any]] = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "# AGENTS.md instructions"}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]},
        {"type": "function_call", "name": "exec_command", "arguments": '{"cmd":"ls"}', "call_id": "c"},
        {"type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin Patch", "call_id": "d"},
        {"type": "function_call_output", "call_id": "c", "output": "a.py"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "DONE"}]},
    ]
    kinds = [*(("response_item", item) for item in [*items, None, "x"]), ("event_msg", items[-1])]
    lines = [json.dumps({"timestamp": AT, "type": kind, "payload": item}) for kind, item in kinds]
    path.write_text("\n".join(lines) + "\n")
    found = [(s.kind, s.tool, s.given, s.text) for s in conversation_files.latest(str(path), ME) or ()]
    assert found == [
        ("told", "", None, "# AGENTS.md instructions"),
        ("prompt", "", None, "hello"),
        ("call", "exec_command", {"cmd": "ls"}, "a.py"),
        ("call", "apply_patch", {"input": "*** Begin Patch"}, None),
        ("said", "", None, "DONE"),
    ]
    for other in (f"1{ME[1:]}", ME[:-1]):
        assert conversation_files.latest(str(path), other) is None, "it is another session's"


T0 = 1_795_000_000_000


def shown(reader: str, tokens: int | None, via: str | None = None, at: int = T0, number: int = 0) -> bytes:
    """A line of the reads log: a delivery to that reader."""
    return codec.spell_read(Read(f"00000000-0000-4000-8000-{number:012x}", reader, at, via=via, tokens=tokens))


def rows(box: Mailbox, found: Spending) -> dict[str, list[tuple[str, int, int]]]:
    """The tables of one look, by their titles."""
    told = found.describe_spending(box.logs.read_roster())
    return dict(told["spending"])


def test_tokens_are_added_up_by_agent_day_and_project(post: Post) -> None:
    """Mail by a project's address counts there, other mail for its reader's only project. A plain read is free."""
    post.register("ada", "--name", "Ada", "--tags", "project:x")
    post.register("bo", "--tags", "project:x,project:y")
    box = Mailbox(str(post.box))
    day = 24 * 60 * 60 * 1000
    box.logs.reads.append(
        [
            shown("ada", 40),
            shown("ada", 20, "project:y", T0 + day, 1),
            shown("bo", 7, "role:dev", number=2),
            shown("bo", None, number=3),
        ]
    )
    days = [time.strftime("%Y-%m-%d", time.localtime(at / 1000)) for at in (T0 + day, T0)]
    assert rows(box, Spending(box)) == {
        "Agent": [("Ada", 2, 60), ("bo", 1, 7)],
        "Day": [(days[0], 1, 20), (days[1], 2, 47)],
        "Project": [("#x", 1, 40), ("#y", 1, 20), ("no project", 1, 7)],
    }


def test_a_look_is_bounded_and_the_next_goes_on(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """One look reads so many lines, the live ones first; what is archived later is counted once, and where it is."""
    monkeypatch.setattr(spending, "MOST_READ", 3)
    box = Mailbox(str(post.box))
    box.logs.reads.append([shown("ada", 10, number=number) for number in range(5)])
    found = Spending(box)
    looks = [found.describe_spending(box.logs.read_roster()) for _ in range(2)]
    assert [(look["spent"], look["spending_goes_on"]) for look in looks] == [(30, True), (50, False)]
    lines = post.lines("agent-mailbox-reads.jsonl")
    archive = Path(box.archive.directory)
    archive.mkdir(exist_ok=True)
    (archive / "2026-11.jsonl").touch()
    (archive / "2026-11-reads.jsonl").write_bytes(b"".join(line + b"\n" for line in lines[:4]))
    fresh = post.box / "agent-mailbox-reads.jsonl.new"
    fresh.write_bytes(lines[4] + b"\n")
    fresh.replace(post.box / "agent-mailbox-reads.jsonl")
    looks = [found.describe_spending(box.logs.read_roster()) for _ in range(3)]
    assert [(look["spent"], look["spending_goes_on"]) for look in looks] == [(30, True), (50, False), (50, False)]


def test_many_agents_are_few_rows(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """The most expensive have rows of their own, and the rest has one, so that a table's sum is the sum of all."""
    monkeypatch.setattr(spending, "MOST_AGENTS", 2)
    box = Mailbox(str(post.box))
    box.logs.reads.append([shown(f"agent-{number}", number + 1, number=number) for number in range(5)])
    assert rows(box, Spending(box))["Agent"] == [("agent-4", 1, 5), ("agent-3", 1, 4), ("3 others", 3, 6)]


def test_the_timeline_has_the_tokens_of_all_mail(post: Post) -> None:
    """The page says what all deliveries cost, though none of that mail is of the hours it shows."""
    Mailbox(str(post.box)).logs.reads.append([shown("ada", 1234)])
    with Running(post) as console:
        text = " ".join(console.enter().ask("/timeline").text.split())
    assert "Hooks showed mail for 1,234 tokens." in text
    assert '<th scope="row">ada</th><td class="num">1</td><td class="num">1,234</td>' in text
