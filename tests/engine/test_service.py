"""The replicator as a service: its file is systemd's or launchd's own, and commands start it and take it away."""

from __future__ import annotations

import os
import plistlib
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agent_mailbox.errors import Refused
from agent_mailbox.upkeep import replicator_service
from tests.helpers import PATIENCE

from .pair import MACHINES, Pair

CONTROL = """#!/bin/sh
echo "$*" >> {said}
[ "$2" != enable ] || exit {code}
"""


def test_a_unit_is_valid_and_runs_the_replicator_of_its_mailbox(tmp_path: Path) -> None:
    """Systemd finds no fault in it, for a path that has its signs in it, too."""
    analyze = shutil.which("systemd-analyze")
    if analyze is None or sys.platform == "darwin":
        pytest.skip("systemd-analyze is not installed")
    directory = str(tmp_path / 'a "b" $c %d \\e')
    service = replicator_service.service_of(directory, {"XDG_CONFIG_HOME": str(tmp_path)})
    there = tmp_path / Path(service.path).name
    text = replicator_service.service_text(service)
    there.write_bytes(text)
    judged = subprocess.run([analyze, "verify", "--man=no", there], capture_output=True, text=True, timeout=PATIENCE)
    assert (judged.returncode, judged.stderr) == (0, "")
    (line,) = [line for line in text.decode().splitlines() if line.startswith("ExecStart=")]
    words = shlex.split(line.removeprefix("ExecStart=").replace("$$", "$").replace("%%", "%"))
    assert words[1:] == ["-m", "agent_mailbox", "--dir", directory, "engine", "serve"]
    with pytest.raises(Refused, match="a service cannot hold a path that does not print"):
        replicator_service.service_text(replicator_service.service_of("/a\nb", {}))


def test_macos_has_an_agent_that_is_kept_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its file has the form of launchd, and the commands name it."""
    monkeypatch.setattr(sys, "platform", "darwin")
    service = replicator_service.service_of("/m", {"HOME": "/Users/ann"})
    told = plistlib.loads(replicator_service.service_text(service))
    assert service.path == f"/Users/ann/Library/LaunchAgents/{told['Label']}.plist"
    assert (told["ProgramArguments"][-4:], told["KeepAlive"]) == (["--dir", "/m", "engine", "serve"], True)
    target = f"gui/{os.getuid()}"
    assert service.start == (("launchctl", "bootstrap", target, service.path),)
    assert service.stop == ("launchctl", "bootout", f"{target}/{told['Label']}")


@pytest.mark.skipif(sys.platform == "darwin", reason="launchd has another program")
def test_it_is_installed_and_removed_by_a_command(pair: Pair) -> None:
    """A stand-in for `systemctl` notes what it is asked; without that program the person is told what is left to do.

    Who leaves the space, or removes everything, is rid of it."""
    program, place = pair.program, pair.program.scratch
    pair.fails("north", 1, "mailbox is in no space", "engine", "serve", "--install")
    pair.join("north")
    said, control = place / "said", place / "bin/systemctl"
    control.parent.mkdir()
    program.env |= {
        "PATH": f"{control.parent}{os.pathsep}{program.env['PATH']}",
        "XDG_CONFIG_HOME": str(place / "config"),
    }

    def stand_in(code: int) -> None:
        control.write_text(CONTROL.format(said=said, code=code))
        control.chmod(0o755)

    stand_in(1)
    pair.fails("north", 1, "the service is written, and does not run", "engine", "serve", "--install")
    stand_in(0)
    said.unlink()
    path = Path(pair.ok("north", "engine", "serve", "--install")["service"])
    assert said.read_text().splitlines() == ["--user daemon-reload", f"--user enable --now {path.name}"]
    assert str(place / MACHINES[0]) in path.read_text()
    assert path.parent.parent.stat().st_mode & 0o777 == 0o755, "as other programs make it"
    kept = program.call("uninstall", "--all", "--dry-run").stdout
    assert f"engine serve --remove --dir {place / 'north'}" in kept
    assert pair.ok("north", "engine", "serve", "--remove")["runs"] is False
    assert not path.exists()
    assert said.read_text().splitlines()[2:] == [f"--user disable --now {path.name}"]
    assert "there is none" in program.run("engine", "serve", "--remove", "--dir", place / "north").stdout
    pair.ok("north", "engine", "serve", "--install")
    pair.ok("north", "engine", "leave")
    assert not path.exists()
    assert said.read_text().splitlines()[-1] == f"--user disable --now {path.name}"


def test_without_the_program_that_starts_services_the_person_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its name is told, and what to run instead; the file is written all the same."""
    monkeypatch.setenv("PATH", str(tmp_path))
    service = replicator_service.service_of(str(tmp_path), {"XDG_CONFIG_HOME": str(tmp_path / "config")})
    with pytest.raises(Refused, match=f"there is no {service.start[0][0]} here"):
        replicator_service.install_service(service)
    assert Path(service.path).read_bytes() == replicator_service.service_text(service)
