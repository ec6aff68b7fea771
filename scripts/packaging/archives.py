"""Wheel and sdist: building them, and what must be in them.

Belongs here: the archives' contents. The wheel has every file of the package's directory and nothing else.
"""

from __future__ import annotations

import sys
import tarfile
import zipfile
from configparser import ConfigParser
from pathlib import Path

from .steps import UV, Failed, run

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "agent_mailbox"
NEEDED = (
    *("py.typed", "clients/agent-mailbox-hook", "clients/agent-mailbox.js"),
    *("console/templates/base.html", "console/static/console.js"),
)
"""Files that the program needs beside its modules, one of each kind."""
DERIVED = ("__pycache__", ".mypy_cache", ".ruff_cache")
EPOCH = {"SOURCE_DATE_EPOCH": "1577836800"}
"""One time for every file, so that two builds of the same sources are the same bytes."""


def build(directory: Path) -> None:
    """Build the sdist, the wheel from it, and into ``tree`` the wheel from the checkout itself."""
    words = (*UV, "build", "--quiet", "--no-build-isolation", "--offline", "--python", sys.executable)
    run(*words, "--out-dir", directory, ROOT, environ=EPOCH)
    run(*words, "--wheel", "--out-dir", directory / "tree", ROOT, environ=EPOCH)


def wheel(directory: Path) -> Path:
    """Return the one wheel of a directory."""
    (found,) = directory.glob("*.whl")
    return found


def check_metadata(directory: Path) -> None:
    """Check what a package index would: the metadata, and that the README renders."""
    run(sys.executable, "-m", "twine", "check", "--strict", wheel(directory), *directory.glob("*.tar.gz"))


def check_wheel(directory: Path) -> None:
    """Check that the wheel has every file of the package, executable where it was, its licence, its command, and
    nothing else."""
    with zipfile.ZipFile(wheel(directory)) as archive:
        about = next(name.split("/")[0] for name in archive.namelist() if ".dist-info/" in name)
        command = f"{about.removesuffix('.dist-info')}.data/scripts/agent-mailbox"
        inside = {name for name in archive.namelist() if not name.startswith((f"{about}/", command))}
        missing = expected() - inside | ({f"{PACKAGE}/{name}" for name in NEEDED} - inside)
        if missing or inside - expected():
            raise Failed(f"wheel: missing {sorted(missing)}, not of the package {sorted(inside - expected())}")
        modes = {info.filename: info.external_attr >> 16 & 0o111 for info in archive.infolist()}
        lost = [name for name in inside if bool(modes[name]) != bool((ROOT / name).stat().st_mode & 0o111)]
        if lost:
            raise Failed(f"wheel: another executable bit: {sorted(lost)}")
        if f"{about}/licenses/LICENSE" not in archive.namelist():
            raise Failed("wheel: no licence")
        entries = ConfigParser()
        entries.read_string(archive.read(f"{about}/entry_points.txt").decode())
        if dict(entries["console_scripts"]) != {"agent-mailbox-python": "agent_mailbox.launch:start"}:
            raise Failed(f"wheel: commands {dict(entries['console_scripts'])}")
        if archive.read(command) != (ROOT / PACKAGE / "start/agent-mailbox").read_bytes():
            raise Failed("wheel: the command is another file")


def expected() -> set[str]:
    """Return the files of the package's directory, but for derived ones."""
    found = (path.relative_to(ROOT) for path in (ROOT / PACKAGE).rglob("*") if path.is_file())
    return {path.as_posix() for path in found if not {*DERIVED} & {*path.parts}}


def check_sdist(directory: Path) -> None:
    """Check that the sdist has the package, its tests and its documents, and that it builds the wheel that the checkout
    does, byte for byte."""
    (source,) = directory.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    for name in (*expected(), "pyproject.toml", "README.md", "LICENSE", "tests/test_docs.py", "docs/commands.md"):
        if name not in inside:
            raise Failed(f"sdist: missing {name}")
    if wheel(directory).read_bytes() != wheel(directory / "tree").read_bytes():
        raise Failed("the wheel from the sdist is another than the wheel from the checkout")
