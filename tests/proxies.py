"""The person's own proxy: a real nginx, with the configuration that a page gives for it."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.helpers import PATIENCE, ROOT, until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


@contextmanager
def documented_nginx(page: str, scratch: Path, port: int, here: Mapping[str, str]) -> Iterator[None]:
    """Run nginx as the first example of a page has it. ``here``: what this machine has in the place of the example's
    names, at ``port`` among them."""
    if (nginx := shutil.which("nginx")) is None:
        pytest.skip("nginx is not installed")
    scratch.mkdir(exist_ok=True)
    (scratch / "nginx.conf").write_text(_configuration(page, scratch, here))
    words = [nginx, "-p", str(scratch), "-e", str(scratch / "error.log"), "-c", str(scratch / "nginx.conf")]
    with subprocess.Popen(words, stdin=subprocess.DEVNULL) as proxy:
        try:
            until(lambda: proxy.poll() is not None or _listens(port))
            assert proxy.poll() is None, (scratch / "error.log").read_text()
            yield
        finally:
            proxy.terminate()
            proxy.wait(PATIENCE)


def _configuration(page: str, scratch: Path, here: Mapping[str, str]) -> str:
    """The example with what is here, and what a whole configuration has around it."""
    found = re.search(r"```nginx\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    text = found[1]
    for said, ours in here.items():
        assert said in text, said
        text = text.replace(said, ours)
    places = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "".join(f"    {name}_temp_path {scratch}/{name};\n" for name in places)
    return (
        f"daemon off;\nmaster_process off;\npid {scratch}/nginx.pid;\nerror_log {scratch}/error.log;\n"
        f"events {{}}\nhttp {{\n    access_log off;\n{temporary}{text}}}\n"
    )


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True
