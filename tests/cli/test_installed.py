"""The installed command, ``start/agent-mailbox``: which interpreter it starts, and when the entry point's script."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.helpers import ROOT

if TYPE_CHECKING:
    from pathlib import Path

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
