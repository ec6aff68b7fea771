"""The lines of README's *Many machines*, as they stand there."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

from tests.helpers import PATIENCE, ROOT, TOOLS, Program
from tests.ports import free_port

from .nats_server import program as server


def test_the_lines_of_the_readme_as_they_stand_there(tmp_path: Path) -> None:
    """Pasted at once into a shell, with the installed command and a free port: mail goes from machine to machine."""
    found = re.search(
        r"^## Many machines\n.*?```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE
    )
    assert found is not None
    assert len(found[1].splitlines()) == 10
    lines = found[1].replace("4222", str(free_port()))
    program, said = Program(tmp_path), tmp_path / "said"
    path = os.pathsep.join((TOOLS, str(Path(server()).parent), os.environ["PATH"]))
    env = program.environ({"PATH": path, "PYTHONPATH": None})
    with said.open("wb") as out:
        words = ["bash", "-e", "-o", "pipefail", "-c", lines]
        shell = subprocess.Popen(
            words, env=env, cwd=program.cwd, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
        )
        try:
            code = shell.wait(PATIENCE)
        finally:
            os.killpg(shell.pid, signal.SIGTERM)
    assert code == 0, said.read_text()
    assert "| Hello from the north." in said.read_text()
    assert "space      team as south" in said.read_text()
