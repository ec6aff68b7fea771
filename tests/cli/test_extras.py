"""How to add an extra: a command for this installation, which never fetches a stranger's package."""

from __future__ import annotations

import shlex
import sys
from typing import Any

import pytest

from agent_mailbox.upkeep import extras
from tests.helpers import ROOT, Post, refused

COMMIT = "5" * 40
ORIGINS: list[tuple[dict[str, Any] | None, str | None, list[str]]] = [
    (
        {"url": "file:///home/me/my%20code", "dir_info": {"editable": True}},
        "0.1.0",
        ["--editable", "/home/me/my code[swarm]"],
    ),
    ({"url": "file:///home/me/code", "dir_info": {}}, "0.1.0", ["/home/me/code[swarm]"]),
    (
        {"url": "https://example.org/me/x.git", "vcs_info": {"vcs": "git", "commit_id": COMMIT}},
        "0.1.0",
        [f"agent-mailbox-protocol[swarm] @ git+https://example.org/me/x.git@{COMMIT}"],
    ),
    (
        {"url": "file:///tmp/agent_mailbox_protocol-0.1.0-py3-none-any.whl", "archive_info": {}},
        "0.1.0",
        ["agent-mailbox-protocol[swarm] @ file:///tmp/agent_mailbox_protocol-0.1.0-py3-none-any.whl"],
    ),
    (None, "0.1.0", [".[swarm]"]),
    (None, None, [f"{ROOT}[swarm]"]),
]


@pytest.mark.parametrize(("origin", "version", "wanted"), ORIGINS)
def test_a_hint_names_where_this_installation_came_from(
    origin: dict[str, Any] | None, version: str | None, wanted: list[str]
) -> None:
    """The hint for a missing extra names the directory, repository or file of this installation, or the index."""
    assert shlex.split(extras.quoted_requirement("swarm", origin, version), comments=True) == wanted


def test_the_hint_is_a_command_for_this_environment() -> None:
    """Its own interpreter's installer, for the directory that it was installed from."""
    words = shlex.split(extras.command_to_add("console"))
    assert words[1:4] == ["-m", "pip", "install"]
    assert words[-1] == f"{ROOT}[console]"


@pytest.mark.parametrize(
    ("words", "library", "extra"),
    [
        (("console", "--port", "0"), "nh3", "console"),
        (("console", "--phone"), "segno", "console"),
        (("swarm", "status"), "h2", "swarm"),
        (("engine", "join", "postgresql://127.0.0.1:1/x", "--space", "s"), "psycopg2", "postgresql"),
        (("engine", "join", "nats://127.0.0.1:1", "--space", "s", "--speaks", "b=all"), "cryptography", "engine"),
        (("engine", "config", "--machine", "a", "--into", "here"), "cryptography", "engine"),
        (("engine", "config", "--machine", "a", "--into", "here", "--postgresql", "x"), "psycopg2", "postgresql"),
    ],
)
def test_a_command_whose_packages_are_missing_names_them(
    post: Post, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], library: str, extra: str
) -> None:
    """A command refuses ahead of all that it would do, and tells how to add the extra."""
    monkeypatch.setitem(sys.modules, library, None)
    told = refused(post.call(*words, "--json", cwd=post.scratch), 1, f"are missing: {library}", f"[{extra}]")
    assert told.json["error"]["code"] == "no_extra"
    assert not (post.scratch / "here").exists()


@pytest.mark.parametrize(
    ("prefix", "begins"),
    [
        ("/home/me/.local/share/pipx/venvs/agent-mailbox-protocol", "pipx install --force "),
        ("/home/me/.local/share/uv/tools/agent-mailbox-protocol", "uv tool install --force "),
    ],
)
def test_an_installer_of_programs_is_asked_itself(monkeypatch: pytest.MonkeyPatch, prefix: str, begins: str) -> None:
    """Their environments have no pip of their own."""
    monkeypatch.setattr("sys.prefix", prefix)
    assert extras.command_to_add("swarm").startswith(begins)


def test_uv_is_told_all_extras_that_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """``uv tool`` makes the environment again, of what is named alone: an extra that lacks a package is not there."""
    said = ["click>=8", "click>=8; extra == 'console'", "click; extra == 'mcp'", "no-such-one>=1; extra == 'mcp'"]
    monkeypatch.setattr("agent_mailbox.upkeep.extras.metadata.requires", lambda _name: said)
    for prefix, wanted in (("uv/tools", "console,swarm"), ("pipx/venvs", "swarm")):
        monkeypatch.setattr("sys.prefix", f"/home/me/.local/share/{prefix}/agent-mailbox-protocol")
        assert extras.command_to_add("swarm").endswith(f"[{wanted}]'"), prefix
