"""Installing the wheel as people do, and the demo's main job with the command that came of it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests import shell_blocks

from .archives import ROOT
from .steps import UV, Failed, online, run

PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")
PYTHON = ("--python", sys.executable)


def by_pip(wheel: Path, place: Path) -> Path:
    """Install by pip into an empty virtual environment; return the directory of its commands."""
    run(*UV, "venv", "--quiet", *PYTHON, place)
    online(*PIP, "--python", place / "bin/python", "install", "--quiet", "--no-compile", wheel)
    return place / "bin"


def by_uv_tool(wheel: Path, place: Path) -> Path:
    """Install the sdist by ``uv tool``; return the directory of its commands."""
    commands = place / "bin"
    where = {"UV_TOOL_DIR": str(place / "tools"), "UV_TOOL_BIN_DIR": str(commands)}
    (source,) = wheel.parent.glob("*.tar.gz")
    online(*UV, "tool", "install", "--quiet", *PYTHON, source, environ=where)
    return commands


WAYS = {"pip": by_pip, "uv tool": by_uv_tool}


def lines_of_pages() -> list[str]:
    """Return the lines of the pages that install or remove the program, in the order in which a person runs them."""
    pages = (ROOT / "README.md", ROOT / "docs/installing.md", ROOT / "docs/removing.md")
    return [line for page in pages for block in shell_blocks.blocks(page) for line in block.installs]


def as_the_pages_say(wheel: Path, place: Path) -> None:
    """Run these lines in the checkout as they are written, with a home of their own, and the demo before the last."""
    commands = place / "bin"
    where = {"PIPX_HOME": str(place / "home"), "PIPX_BIN_DIR": str(commands), "PIPX_MAN_DIR": str(place / "man")}
    where["PIPX_DEFAULT_PYTHON"] = sys.executable
    where["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    *installing, removing = lines_of_pages()
    for line in installing:
        online("sh", "-c", line, environ=where, directory=ROOT)
    works(wheel, commands)
    run("sh", "-c", removing, environ=where, directory=ROOT)
    if list(commands.iterdir()):
        raise Failed(f"not removed: {sorted(commands.iterdir())}")


STRANGER = {
    "pyproject.toml": """[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "agent-mailbox"
version = "1.2.3"
[project.scripts]
agent-mailbox = "agent_mailbox:main"
""",
    "agent_mailbox/__init__.py": "def main() -> None:\n    print('another project')\n",
}
"""Another project of our command's name, with a module of ours' name."""


def beside_a_stranger(wheel: Path, place: Path) -> None:
    """Check that our command, in one environment with another project of its name, says so and does nothing. The one
    that was installed last has the command; without the other, in an environment of its own, ours works."""
    for name, text in STRANGER.items():
        file = place / "source" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    build = (*UV, "build", "--quiet", "--no-build-isolation", "--offline", *PYTHON, "--wheel")
    run(*build, "--out-dir", place / "dist", place / "source")
    (stranger,) = (place / "dist").glob("*.whl")
    for name, order in (("ours last", (stranger, wheel)), ("theirs last", (wheel, stranger))):
        venv = place / name.replace(" ", "-")
        run(*UV, "venv", "--quiet", *PYTHON, venv)
        for one in order:
            run(*UV, "pip", "install", "--quiet", "--python", venv, "--offline", "--no-deps", one)
        said = run("sh", "-c", '"$0" --version 2>&1; echo "ended with $?"', venv / "bin/agent-mailbox")
        wanted = ("error: agent-mailbox cannot start: another project of that name is in its environment", "with 5")
        if name == "ours last" and not all(word in said for word in wanted):
            raise Failed(f"beside another project of its name, the command says: {said}")
        if name == "theirs last" and "another project\n" not in said:
            raise Failed(f"the command is neither's: {said}")


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
