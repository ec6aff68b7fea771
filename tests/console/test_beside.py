"""References and attachments in the console: linked, shown as pictures or plain text, never run."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.console import beside
from agent_mailbox.core.attachments import DIRECTORY
from agent_mailbox.core.records import Message
from tests.helpers import MESSAGES, record

if TYPE_CHECKING:
    from pathlib import Path

    from tests.console.conftest import Running

PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(64)
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'


def stored(data: bytes, suffix: str) -> str:
    """The address of a file in the console."""
    return f"{beside.PATH}?file={hashlib.sha256(data).hexdigest()}.{suffix}"


def test_files_are_shown_as_what_they_are(running: Running, tmp_path: Path) -> None:
    """A picture by its bytes, text as text whatever it is called, all else to be saved; only with its digest."""
    running.post.register("ada")
    files = {"plan.png": PICTURE, "page.svg": SVG, "page.html": b"<script>alert(2)</script>", "tool.bin": b"\0\1\2"}
    words = []
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
        words += ["--attach", tmp_path / name]
    message_id = running.post.send("ada", "user", "see these", *words)
    page = running.ask(f"/timeline?open={message_id}").text
    assert f'<img src="{stored(PICTURE, "png")}&amp;name=plan.png" alt="plan.png"' in page
    assert page.count("<img") == page.count('alt="plan.png"')
    types = {name: running.ask(stored(data, name.rpartition(".")[2])) for name, data in files.items() if name[0] != "t"}
    assert {types[name].headers["content-type"] for name in ("page.svg", "page.html")} == {"text/plain; charset=utf-8"}
    assert all(answer.headers["x-content-type-options"] == "nosniff" for answer in types.values())
    saved = running.ask(f"{stored(files['tool.bin'], 'bin')}&name=a%22%0d%0ab.bin")
    assert saved.headers["content-disposition"] == "attachment; filename*=UTF-8''a%22%0D%0Ab.bin"
    for wrong in ("../agent-roster.jsonl", "0" * 64, "", f"{hashlib.sha256(PICTURE).hexdigest()}.jpg"):
        assert running.ask(f"{beside.PATH}?file={wrong}").status == 404
    path = running.post.file(DIRECTORY, f"{hashlib.sha256(PICTURE).hexdigest()}.png")
    path.write_bytes(PICTURE + b"x")
    assert running.ask(stored(PICTURE, "png")).status == 404


@pytest.mark.parametrize(
    ("reference", "address"),
    [
        ({"type": "github_issue", "repo": "o/r", "number": 3}, "https://github.com/o/r/issues/3"),
        ({"type": "github_pr", "repo": "o/r", "number": 3}, "https://github.com/o/r/pull/3"),
        ({"type": "github_commit", "repo": "o/r", "sha": "abcdef1"}, "https://github.com/o/r/commit/abcdef1"),
        ({"type": "github_repo", "repo": "o/r"}, "https://github.com/o/r"),
        ({"type": "url", "url": "https://x.example/?a=1"}, "https://x.example/?a=1"),
        ({"type": "url", "url": "javascript:alert(1)"}, ""),
        ({"type": "url", "url": 3}, ""),
        ({"type": "github_issue", "repo": "o/r/../../login", "number": 3}, ""),
        ({"type": "github_commit", "repo": "o/r", "sha": "../x"}, ""),
        ({"type": "file", "path": "/etc/passwd"}, ""),
    ],
)
def test_a_reference_leads_to_the_web_or_nowhere(reference: dict[str, Any], address: str) -> None:
    """Each of the protocol's types; nothing that runs, and no path upwards."""
    assert beside.web_address(reference) == address


def test_references_and_what_a_peer_attached_are_shown(running: Running) -> None:
    """A message's page shows its references, conflicts and a peer's attachment. The peer's address is no link."""
    running.post.register("ada")
    words = ("--ref", "claimed:issue:o/r#3", "--ref", "url:https://x.example/")
    own = running.post.send("ada", "user", "mine", *words)
    far = {"type": "url", "mime_type": "text/html", "content": "https://evil.example/"}
    told = {"swarm": {"conflicts": ["o/r#3 is claimed by ada"]}}
    yours = record("swarm:x/bo", "user", "yours", references=[], attachments=[far], **told)
    running.post.append(MESSAGES, yours)
    page = running.ask(f"/timeline?open={own}").text
    assert (
        '<a href="https://github.com/o/r/issues/3" target="_blank" rel="noopener noreferrer">claimed o/r#3</a>' in page
    )
    page = running.ask(f"/timeline?open={yours['id']}").text
    assert "Conflict: &#34;o/r#3 is claimed by ada&#34;" in page
    assert "https://evil.example/ (text/html)" in page
    assert 'href="https://evil.example/' not in page


def test_a_message_without_references_has_no_links() -> None:
    """Whatever shape the members have."""
    for odd in (None, "x", [1], {"a": 1}, [{}], [{"type": "file"}]):
        assert beside.links_of(Message("m", "x", ("y",), 0, "c", references=odd, attachments=odd)) == ()
