"""The program is replaced while it runs: what fails then is no bug, and says what to do."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.console.conftest import Running
from tests.console.test_mailboxes import another, read_rail
from tests.helpers import PATIENCE, ROOT, Post
from tests.mcp import asking

if TYPE_CHECKING:
    from pathlib import Path


def copied(place: Path) -> Path:
    """A copy of the program, which a test may replace; ``switched`` starts it with the tests' switches."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "tests/door", place / "tests/door", ignore=ignored)
    return shutil.copytree(ROOT / "agent_mailbox", place / "agent_mailbox", ignore=ignored)


def switched(package: Path) -> Path:
    """Return what starts a copy, whose user's records are the test's."""
    return package.parent / "tests/door/agent_mailbox/__main__.py"


FAILING = """
import os, sys
sys.path.insert(0, sys.argv[1])
from agent_mailbox.cli import boundary
from agent_mailbox.console import error_pages
told = lambda: boundary.describe_error(AttributeError("x"))
sys.stdout.write(told().what + "\\n")
changed = sys.argv[1] + "/agent_mailbox/errors.py"
"""
"""What a process of the program says of an unexpected error, before its files change."""
WAYS = {"changed": 'while "replaced" not in told().what: os.utime(changed)', "gone": "os.unlink(changed)"}
"""How they change."""


@pytest.mark.parametrize("way", WAYS)
def test_an_error_of_a_program_that_was_replaced_is_called_no_bug(tmp_path: Path, way: str) -> None:
    """An unexpected error is a bug to report, unless a module's file changed since or is gone. Then it says so, and the
    console writes no traceback to its terminal."""
    copied(tmp_path)
    code = (
        f"{FAILING}{WAYS[way]}\nsys.stdout.write(f'{{told()}} {{error_pages.describe_error(AttributeError(), str)}}')"
    )
    words = [sys.executable, "-I", "-c", code, str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, check=True)
    before, after = done.stdout.split("\n", 1)
    assert before == "unexpected error: AttributeError: x"
    assert after.startswith("agent-mailbox was replaced while this ran")
    assert "start the console again" in after
    assert not done.stderr


def test_a_console_that_outlives_an_upgrade_says_so_on_each_page(post: Post) -> None:
    """Its pages still come from the earlier version, so they say what to do; until then they say nothing of it. Another
    link to a file, as an installer makes it, or other rights replace nothing."""
    package = copied(post.scratch)
    (package / "__pycache__").mkdir()  # as from an earlier start
    with Running(post, python=("-I", str(switched(package)))) as console:
        console.enter()
        (post.scratch / "shared.py").hardlink_to(package / "errors.py")
        (package / "errors.py").chmod(0o600)
        assert "was replaced while this ran" not in console.ask("/fleet").text
        shutil.copy2(package / "errors.py", package / "new.py")
        (package / "new.py").rename(package / "errors.py")
        for path in ("/fleet", "/no-such-page"):
            assert "was replaced while this ran" in console.ask(path).text


def test_a_mailbox_that_is_opened_after_an_upgrade_has_scripts_of_its_pages(post: Post) -> None:
    """A browser keeps a script for ever by its address, so the new one has another address."""
    package = copied(post.scratch)
    another(post, "billing")
    with Running(post, python=("-I", str(switched(package)))) as console:
        here = console.enter().ask("/fleet").text
        with (package / "console/static/look.js").open("a") as script:
            script.write("\n")
        way = console.ask(read_rail(console)["billing"].replace("&amp;", "&")).headers["location"]
        there = console.ask("/session", headers={"Host": way.split("/")[2], "Cookie": None}).text
    addresses = [re.findall(r"/static/[0-9a-f]+/look[.]js", page) for page in (here, there)]
    assert (len(addresses[1]), addresses[0] == addresses[1]) == (1, False)


def test_a_part_that_is_missing_is_told_in_one_line(post: Post) -> None:
    """A command of an installation that lacks a part says so in one line with the next step, by whichever way it
    starts, and ends with 5. What makes only the next start faster may be missing."""
    package = copied(post.scratch)
    parts = {"launch.py": "check", "core": "check", "commands": "check", "upkeep/doctor": "doctor"}
    for missing, word in (parts | {"start/bundle.py": "check"}).items():
        (package / missing).rename(post.scratch / "away")
        done = subprocess.run(
            [sys.executable, "-I", "-S", package / "__main__.py", word],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            cwd=post.cwd,
            env=post.environ(),
        )
        (post.scratch / "away").rename(package / missing)
        if missing not in parts:
            assert "a part of" not in done.stderr, done
            assert "Traceback" not in done.stderr
            continue
        assert (done.returncode, done.stdout) == (5, ""), (missing, done)
        what, hint = done.stderr.splitlines()
        assert what.startswith("error: ")
        assert "a part of" in what
        assert hint.startswith("hint: run it again in a moment")


def test_the_mcp_server_goes_on_as_it_began_though_its_program_is_gone(post: Post) -> None:
    """A call does all that it does, and says so: nothing that it needs is loaded behind what it has written."""
    package = copied(post.scratch)
    post.register("ada")
    post.register("bo")
    words = [sys.executable, "-I", switched(package), "mcp"]
    environ = post.environ({"AGENT_MAILBOX_SESSION": "ada"})
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=post.cwd, env=environ) as server:
        asking.begin(server)
        shutil.rmtree(package)
        calls: tuple[tuple[str, dict[str, str]], ...] = (
            ("send", {"to": "bo", "body": "one"}),
            ("task", {"do": "add", "to": "bo", "title": "T"}),
            ("note", {"do": "add", "on": "project:x", "title": "N", "body": "n"}),
            ("search", {"query": "one"}),
            ("check", {}),
            ("who", {}),
        )
        for number, (tool, given) in enumerate(calls, 1):
            asking.ask(server, number, tool, **given)
            result = asking.answer(server)["result"]
            assert not result["isError"], (tool, result)
        assert server.stdin is not None
        server.stdin.close()
    assert post.unread("bo")


def test_a_process_of_before_an_upgrade_leaves_a_newer_index_alone(post: Post) -> None:
    """Each version would build the other's file again, for as long as both run. Without an upgrade it is built again:
    an older version may have been installed since."""
    package = copied(post.scratch)
    post.register("ada")
    post.send("ada", "user", "words to find")
    code = """
import os, sys
sys.path.insert(0, sys.argv[1])
from agent_mailbox import errors
from agent_mailbox.mailbox.mailbox import Mailbox
from agent_mailbox.mailbox.queries import MailQueries
from agent_mailbox.store.projection import projection_file
from agent_mailbox.store.projection.projection_file import sqlite3
from agent_mailbox.store.user_state import replaced_program
box = Mailbox(sys.argv[2])
def find():
    return len(MailQueries(box).search("find", 5)[0])
def version(new=None):
    db = sqlite3.connect(box.logs.cache(projection_file.FILE), isolation_level=None)
    if new:
        db.execute(f"PRAGMA user_version = {new}")
    return db.execute("PRAGMA user_version").fetchone()[0]
find()
known = version()
version(known + 1)
print(find(), version() - known)
version(known + 1)
while not replaced_program.was_replaced():
    os.utime(errors.__file__)
print(find(), version() - known)
"""
    words = [sys.executable, "-I", "-c", code, switched(package).parents[1], post.box]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, env=post.environ())
    assert (done.stdout, done.stderr) == ("1 0\n1 1\n", "")
