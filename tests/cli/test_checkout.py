"""The two scripts of a checkout that is not installed, by a Python that lacks what they need; and its demo."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.helpers import PATIENCE, ROOT, refused

if TYPE_CHECKING:
    from tests.helpers import Post


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
