"""Steps: each succeeds, fails, or is skipped because no package index can be reached; none passes silently."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

UV = (sys.executable, "-m", "uv")


class Failed(Exception):
    """A step failed; says how."""


class Offline(Exception):
    """A step needs a package index, and there is none to be reached."""


def run(*words: object, environ: Mapping[str, str] | None = None, directory: Path | None = None) -> str:
    """Run a command and return its output; raise ``Failed`` with all that it said."""
    said = [str(word) for word in words]
    done = subprocess.run(
        said,
        env={**os.environ, **(environ or {})},
        cwd=directory,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    if done.returncode:
        raise Failed(f"{' '.join(said)} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def online(*words: object, environ: Mapping[str, str] | None = None, directory: Path | None = None) -> str:
    """Run a command that needs a package index; raise ``Offline`` if it failed and there is none."""
    try:
        return run(*words, environ=environ, directory=directory)
    except Failed:
        if not _is_reached():
            raise Offline("no package index can be reached") from None
        raise


def _is_reached() -> bool:
    """Return whether a package index answers."""
    with tempfile.TemporaryDirectory() as place:
        try:
            run(*UV, "pip", "install", "--dry-run", "--no-cache", "--no-deps", "--target", place, "hatchling")
        except Failed:
            return False
    return True


def told(name: str, step: Callable[[], object]) -> str:
    """Run a step and say how it ended, in a line; return "done", "skipped" or "failed"."""
    began = time.monotonic()
    try:
        step()
        ended, why = "done", ""
    except Offline as error:
        ended, why = "skipped", f": {error}"
    except Failed as error:
        ended, why = "failed", f": {error}"
    print(f"{ended.upper() if why else ended:8}{name} ({time.monotonic() - began:.1f} s){why}", flush=True)
    return ended


def summary(endings: Sequence[str]) -> str:
    """Return one line that counts how the steps ended."""
    counts = ", ".join(f"{endings.count(word)} {word}" for word in ("done", "skipped", "failed"))
    return f"scripts/package: {counts}"
