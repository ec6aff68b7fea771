"""Installing the wheel as people do, and the demo's main job with the command that came of it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from .archives import ROOT
from .steps import UV, Failed, online, run

PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")
PYTHON = ("--python", sys.executable)


def by_pip(wheel: Path, place: Path) -> Path:
    """Install by pip into an empty virtual environment; return the directory of its commands."""
    run(*UV, "venv", "--quiet", *PYTHON, place)
    online(*PIP, "--python", place / "bin/python", "install", "--quiet", "--no-compile", wheel)
    return place / "bin"


def by_pipx(wheel: Path, place: Path) -> Path:
    """Install by pipx; return the directory of its commands."""
    commands = place / "bin"
    where = {"PIPX_HOME": str(place / "home"), "PIPX_BIN_DIR": str(commands), "PIPX_MAN_DIR": str(place / "man")}
    online(sys.executable, "-m", "pipx", "install", *PYTHON, wheel, environ=where)
    return commands


def by_uv_tool(wheel: Path, place: Path) -> Path:
    """Install by ``uv tool``; return the directory of its commands."""
    commands = place / "bin"
    where = {"UV_TOOL_DIR": str(place / "tools"), "UV_TOOL_BIN_DIR": str(commands)}
    online(*UV, "tool", "install", "--quiet", *PYTHON, wheel, environ=where)
    return commands


WAYS = {"pip": by_pip, "pipx": by_pipx, "uv tool": by_uv_tool}


def works(wheel: Path, commands: Path) -> None:
    """Check that the installed command is this version, starts fast, finds none of the checkout, and does the demo's
    main job."""
    version = wheel.name.split("-")[1]
    said = run("sh", "-c", 'sh -x "$0" --version 2>&1', commands / "agent-mailbox")
    if version not in said or " -I -S " not in said:
        raise Failed(f"installed is another version than {version}, or starts in the ordinary way: {said}")
    outside = {name: "" for name in ("PYTHONPATH", "VIRTUAL_ENV") if name in os.environ}
    said = run(ROOT / "scripts/demo", commands, environ={**outside, "PYTHON": sys.executable})
    if "no problems found" not in said:
        raise Failed(f"the demo ended otherwise:\n{said}")
