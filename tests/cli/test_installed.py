"""The installed command, ``start/agent-mailbox``: which interpreter it starts, and when the entry point's script.

The scripts of a checkout that is not installed, and how to add an extra to this installation.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.upkeep import extras
from tests.helpers import PATIENCE, ROOT, Post, refused

if TYPE_CHECKING:
    from pathlib import Path

    from tests.helpers import Post

COMMAND = ROOT / "agent_mailbox/start/agent-mailbox"
SHELLS = [shell for shell in ("dash", "bash", "busybox") if shutil.which(shell)]
HOSTILE = dict.fromkeys(("line", "file", "bin", "main", "python", "place", "packages", "to"), "/gone/x")
"""Variables of the caller that have the names of the script's own."""


def told(path: Path) -> None:
    """Put a program there that prints its own name and its arguments."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('#!/bin/sh\nprintf "%s\\n" "${0##*/}" "$@"\n')
    path.chmod(0o755)


def environment(place: Path, *versions: str, at: str = "agent_mailbox") -> Path:
    """An environment with our command; return the directory of its commands."""
    for version in versions or ("python3.11",):
        told(place / "bin" / version)
        package = place / "lib" / version / "site-packages" / at
        package.mkdir(parents=True)
        (package / "__main__.py").touch()
    told(place / "bin/agent-mailbox-python")
    entry = place / "bin/agent-mailbox-python"
    entry.write_text(entry.read_text().replace("#!/bin/sh", f"#!{place}/bin/python -E\n:", 1))
    told(place / "bin/python")
    (place / "bin/python").write_text('#!/bin/sh\nshift\nexec /bin/sh "$@"\n')
    shutil.copy(COMMAND, place / "bin")
    return place / "bin"


def called(command: object, shell: str = "sh", **how: object) -> list[str]:
    """Call a command as a shell's script with an option and two words; return what it says."""
    words = [shell, "sh"] if shell == "busybox" else [shell]
    said = subprocess.run(
        [*words, str(command), "check", "--session", "a b"],
        env={"PATH": os.environ["PATH"], **HOSTILE, **how.pop("env", {})},  # type: ignore[dict-item]
        capture_output=True,
        text=True,
        check=True,
        **how,  # type: ignore[call-overload]
    )
    assert not said.stderr
    return said.stdout.splitlines()


def fast(place: Path, *flags: str) -> list[str]:
    """The answer of an environment's interpreter, without site."""
    main = place / "lib/python3.11/site-packages/agent_mailbox/__main__.py"
    return ["python3.11", "-I", "-S", *flags, str(main), "check", "--session", "a b"]


SLOW = ["agent-mailbox-python", "check", "--session", "a b"]


@pytest.mark.parametrize("shell", SHELLS)
def test_the_command_starts_its_own_environment_s_python_without_site(tmp_path: Path, shell: str) -> None:
    """The installed command starts the Python of its own environment without ``site``, by any path or link. The
    caller's variables change nothing."""
    place = tmp_path / "with space"
    commands = environment(place)
    links = tmp_path / "links"
    links.mkdir()
    for name in ("agent-mailbox", "agent-mailbox-python"):
        (links / name).symlink_to(commands / name)
    (links / "own").symlink_to("agent-mailbox")
    for way in (commands / "agent-mailbox", links / "agent-mailbox", links / "own", f"{commands}/../bin/agent-mailbox"):
        assert called(way, shell) == fast(place), way
    assert called("./agent-mailbox", shell, cwd=commands) == fast(place)
    assert called("bin/agent-mailbox", shell, cwd=place, env={"CDPATH": "/"}) == fast(place)
    assert called(commands / "agent-mailbox", shell, env={"PYTHONDONTWRITEBYTECODE": "1"}) == fast(place, "-B")


def test_a_link_is_read_where_the_other_command_beside_it_is_of_another_environment(tmp_path: Path) -> None:
    """Only a command that is the same file tells where this one is."""
    mine, other = (environment(tmp_path / name) for name in ("mine", "other"))
    links = tmp_path / "links"
    links.mkdir()
    (links / "agent-mailbox").symlink_to(mine / "agent-mailbox")
    (links / "agent-mailbox-python").symlink_to(other / "agent-mailbox-python")
    assert called(links / "agent-mailbox") == fast(tmp_path / "mine")


def test_an_editable_installation_starts_from_its_checkout(tmp_path: Path) -> None:
    """The path file that the installation left names the checkout."""
    commands = environment(tmp_path / "env", at="other")
    checkout = tmp_path / "checkout/agent_mailbox/__main__.py"
    checkout.parent.mkdir(parents=True)
    checkout.touch()
    packages = tmp_path / "env/lib/python3.11/site-packages"
    (packages / "_editable_impl_agent_mailbox_protocol.pth").write_text(str(checkout.parent.parent))
    assert called(commands / "agent-mailbox")[:4] == ["python3.11", "-I", "-S", str(checkout)]


def test_the_entry_point_takes_over_where_the_interpreter_is_not_certain(tmp_path: Path) -> None:
    """No package in the environment, two with one, or no interpreter of the directory's name."""
    bare = environment(tmp_path / "bare", at="other")
    two = environment(tmp_path / "two", "python3.11", "python3.12")
    gone = environment(tmp_path / "gone")
    (gone / "python3.11").unlink()
    for commands in (bare, two, gone):
        assert called(commands / "agent-mailbox") == SLOW, commands
    link = tmp_path / "link"
    link.symlink_to(bare / "agent-mailbox")
    assert called(link) == SLOW


# -- a checkout that is not installed ---------------------------------------------------------------------------------


def test_a_python_without_click_is_told_what_to_install(post: Post) -> None:
    """The plain form goes without; any other says which package is missing, and how to have it."""
    script = str(ROOT / "scripts/agent_mailbox.py")
    code = f"import runpy, sys; sys.modules['click'] = None; runpy.run_path({script!r}, run_name='__main__')"
    words = ("--from", "ann", "--to", "bob", "--body", "hi")
    assert post.python(code, "send", *words).rc == 0
    found = post.python(code, "--dir", post.box, "send", *words)
    refused(found, 5, "click", "-m pip install click orjson portalocker")


def test_the_demo_shows_where_its_session_comes_from_and_that_a_hook_offers(tmp_path: Path) -> None:
    """Its standard input; *offered* of what the hook showed; why mail stays out of the archive."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = {"PATH": path, "PYTHON": sys.executable, "TMPDIR": str(tmp_path), "HOME": str(tmp_path)}
    words = [str(ROOT / "scripts/demo"), str(ROOT / "tests/door/bin")]
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert '$ cat stdin.json\n{"session_id": "b1134fc7-' in done.stdout
    (name,) = re.findall(r"you are (\w+) \(librarian\)", done.stdout)
    assert f"offered to {name}\n" in done.stdout
    assert re.search(rf"^alive +{name} +b1134fc7 ", done.stdout, re.MULTILINE)
    assert "until it expires" in done.stdout
    assert "no problems found" in done.stdout


# -- how to add an extra ----------------------------------------------------------------------------------------------


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
