"""Starting: the derived bundle of hot modules may be missing, stale or ruined; the program is the same.

It may be replaced while it runs: what fails then is no bug, and says what to do.
"""

from __future__ import annotations

import json
import marshal
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

import pytest

from agent_mailbox import launch
from agent_mailbox.start import bundle
from tests.console.conftest import Running
from tests.console.test_mailboxes import another, read_rail
from tests.helpers import MESSAGES, PATIENCE, ROOT, Post, Program, copy_package, made_once, refused
from tests.mcp import asking
from tests.surroundings import NOBODY_SAID
from tests.test_layers import import_order

if TYPE_CHECKING:
    from pathlib import Path


class Checkout(Program):
    """A copy of the package that writes its own derived files."""

    def __init__(self, scratch: Path, package: Path) -> None:
        super().__init__(scratch)
        self.package = package
        self.env |= {"PYTHONPATH": str(self.package.parent), "AGENT_MAILBOX_DIR": str(self.box)}
        assert self.call("init", self.box).rc == 0

    @property
    def bundle(self) -> Path:
        """The bundle of ``check``, which its first run wrote."""
        (found,) = self.package.glob("__pycache__/check.*.bundle")
        return found

    def checks(self) -> None:
        """A hot verb answers as it should, with nothing said beside it."""
        checked = self.run("check", "--session", "me", "--peek", "--json")
        assert (checked.rc, checked.stderr) == (0, ""), checked
        assert checked.json == {"session": "me", "messages": [], "count": 0, "more": 0}

    def leave_bundles(self) -> None:
        """Have commands write no bundle from here on: to write one takes ten times as long as they do."""
        self.env["PYTHONDONTWRITEBYTECODE"] = "1"

    def works(self) -> None:
        """So does a hook."""
        self.checks()
        hook = self.run("hook", "Stop", stdin='{"session_id": "me"}')
        assert (hook.rc, hook.stdout, hook.stderr) == (0, "", ""), hook


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A copy of the package that was used once, and a copy of that: derived files hold the paths of the first."""
    place = tmp_path_factory.mktemp("used")
    package = copy_package(place / "checkout")
    Checkout(place, package).works()
    shutil.copytree(place / "checkout", place / "kept", symlinks=True)
    return package, place / "kept"


@pytest.fixture
def checkout(tmp_path: Path, used: tuple[Path, Path]) -> Checkout:
    """A checkout that was used once, and a mailbox."""
    package, kept = used
    shutil.rmtree(package.parent)
    shutil.copytree(kept, package.parent, symlinks=True)
    return Checkout(tmp_path, package)


def test_a_bundle_is_written_once_and_renewed_when_a_source_changes(checkout: Checkout) -> None:
    """The program writes its bundle once, and writes it again when a source file changes."""
    first = checkout.bundle.stat()
    checkout.works()
    assert checkout.bundle.stat().st_mtime_ns == first.st_mtime_ns
    errors = checkout.package / "errors.py"
    errors.write_text(errors.read_text() + '\nraise SystemExit("changed")\n')
    assert "changed" in checkout.run("check", "--session", "me").stderr
    shutil.copy(ROOT / "agent_mailbox/errors.py", errors)
    checkout.works()
    assert checkout.bundle.stat().st_ino != first.st_ino


def test_a_bundle_knows_the_places_of_compiled_modules_that_its_first_run_did_not_need(checkout: Checkout) -> None:
    """A program's mail has no seal, so ``send`` then needs no key, and no ``_blake2``; later ones do."""
    assert checkout.run("send", "--from", "cron", "--to", "me", "--body", "b", env=NOBODY_SAID).rc == 0
    (written,) = checkout.package.glob("__pycache__/send.*.bundle")
    places = dict(marshal.loads(written.read_bytes().partition(b"\n")[2])[1])
    specs = {name: find_spec(name) for name in ("_json", "fcntl", "_blake2")}
    assert places == {name: spec.origin for name, spec in specs.items() if spec and spec.has_location}


def test_a_module_of_a_rarer_branch_counts_as_it_stands(checkout: Checkout) -> None:
    """The bundle has it, too, but its source changed since."""
    session = checkout.package / "clients/hooks/session.py"
    session.write_text(session.read_text() + '\nraise SystemExit("changed")\n')
    begun = checkout.run("hook", "SessionStart", stdin='{"session_id": "me"}')
    assert "changed" in begun.stderr, begun
    shutil.copy(ROOT / "agent_mailbox/clients/hooks/session.py", session)
    assert checkout.run("hook", "SessionStart", stdin='{"session_id": "me"}').stderr == ""


OTHER_VALUES = (b"[\x00\x00\x00\x00", b"i\x05\x00\x00\x00", b"N")
"""An empty list, a number, None, as ``marshal`` writes them."""


def test_a_ruined_bundle_changes_no_answer(checkout: Checkout) -> None:
    """Empty, cut anywhere, nothing but zeros, a directory: the same answers."""
    path = checkout.bundle
    good = path.read_bytes()
    checkout.leave_bundles()
    for ruin in (b"", good[:1], good[: len(good) // 2], good[:-1], bytes(len(good))):
        path.write_bytes(ruin)
        checkout.checks()
    del checkout.env["PYTHONDONTWRITEBYTECODE"]
    checkout.checks()
    assert len(path.read_bytes()) == len(good), "it was not written again"
    path.unlink()
    path.mkdir()
    checkout.checks()


def test_a_bundle_of_another_shape_is_no_obstacle(checkout: Checkout) -> None:
    """The program works with a bundle that decodes to something else."""
    checkout.leave_bundles()
    for ruin in OTHER_VALUES:
        checkout.bundle.write_bytes(ruin)
        checkout.checks()


def test_a_hole_in_the_bundle_is_no_obstacle(checkout: Checkout) -> None:
    """Zeros in its midst, as a crash of the system leaves them, wherever they are: found out, not executed."""
    path = checkout.bundle
    good = path.read_bytes()
    checkout.leave_bundles()
    for start in range(4096, len(good) - 4096, len(good) // 5):
        path.write_bytes(good[:start] + bytes(4096) + good[start + 4096 :])
        checkout.checks()


def test_a_package_that_cannot_be_written_works(checkout: Checkout) -> None:
    """No bundle, no complaint; nor with bytecode turned off."""
    shutil.rmtree(checkout.package / "__pycache__")
    (checkout.package / "__pycache__").write_text("in the way")
    checkout.works()
    (checkout.package / "__pycache__").unlink()
    checkout.env["PYTHONDONTWRITEBYTECODE"] = "1"
    checkout.works()
    assert not (checkout.package / "__pycache__").exists()


ASKED = "a5ced000-0000-4000-8000-000000000000"
CALL = json.dumps({"session_id": "me", "transcript_path": "transcript.jsonl", "source": "startup"})
HOT_RUNS = (
    ("send", "--from", "x", "--to", "me", "--body", "hi"),
    ("check", "--session", "me"),
    ("check", "--session", "me", "--peek", "--json"),
    ("hook", "UserPromptSubmit"),
    ("hook", "Stop"),
    ("hook", "SessionStart"),
    ("search", "hi"),
    ("status", "--session", "me"),
    ("dead-letters", "--all"),
    ("show", ASKED),
    ("reply", ASKED, "--from", "me", "--body", "done"),
    ("ack", ASKED, "--session", "me"),
    ("release", ASKED, "--session", "me"),
    ("roster", "register", "--session-id", "new", "--name", "Newcomer", "--role", "tester"),
    ("roster", "list"),
    ("roster", "retire", "me"),
)


FOREIGN = '{"id":"%s","sender":"x","recipient":"me","timestamp":"2026-03-16T09:00:00Z","content":"by echo"}\n'
HOOKS = ("UserPromptSubmit", "Stop", "SessionStart")
LATER_RUNS = (*(("hook", event) for event in HOOKS), ("check", "--session", "me"), ("send", *HOT_RUNS[0][1:]))


def prepare(post: Post, turn: int) -> str:
    """Mail by our own writer and by another program; what a client writes to a hook, with a transcript."""
    post.send("x", "me", "hi")
    with post.file(MESSAGES).open("a") as log:
        log.write(FOREIGN % ASKED.replace("5", str(turn)))
    transcript = post.scratch / "transcript.jsonl"
    transcript.touch()
    return json.dumps({"session_id": "me", "transcript_path": str(transcript), "source": "startup"})


def group(verbs: dict[str, set[str]]) -> dict[str, str]:
    """Return the modules by their verbs. Those that more verbs load come first, and so behind no module that they
    import."""
    found: dict[str, list[str]] = {}
    for module in import_order(verbs):
        found.setdefault(" ".join(sorted(verbs[module])), []).append(module)
    return {those: " ".join(found[those]) for those in sorted(found, key=lambda those: -len(those.split()))}


def write_list(name: str, modules: dict[str, str]) -> None:
    """Put a list of modules by their verbs into the place of the present one in the source."""
    source = Path(bundle.__file__)
    before, _, rest = source.read_text(encoding="utf-8").partition(f"\n{name} = {{\n")
    texts = {verbs: ' "\n        "'.join(wrap(names, 106)) for verbs, names in modules.items()}
    rows = "".join(f'    "{verbs}": (\n        "{text}"\n    ),\n' for verbs, text in texts.items())
    after = rest.partition("\n}\n")[2]
    source.write_text(f"{before}\n{name} = {{\n{rows}}}\n{after}", encoding="utf-8")


def ask(post: Post) -> None:
    """Me, with a question that was read, and unread mail."""
    post.register("me")
    post.ok("send", "--from", "x", "--to", "me", "--body", "asked", "--ack", "--id", ASKED)
    post.ok("check", "--session", "me")
    post.send("x", "me", "hi")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Python that takes its bundles from a directory in which all were made afresh."""

    def make(place: Path) -> None:
        for name in launch.BUNDLES:
            bundle.save_bundle(name, launch.bundle(name).replace(launch._CACHE, str(place)))

    place = made_once(tmp_path_factory, "bundles", make)
    return f"import sys\nfrom agent_mailbox import launch\nlaunch._CACHE = {str(place)!r}\n"


def test_a_hot_verb_imports_nothing_of_ours_but_its_bundle(post: Post, saved: str) -> None:
    """A hot verb loads each of our modules from its bundle, and none from a file."""
    load = (
        f"{saved}assert launch.load_bundle(launch.bundle_for(sys.argv[1:]))\nlaunch.main(sys.argv[1:])\n"
        "ours = {n: m for n, m in sys.modules.items() if n.startswith('agent_mailbox.') and n != launch.__name__}\n"
        "wrong = (n for n, m in ours.items() if not isinstance(m.__spec__.loader, (type(None), launch.LaunchFinder)))\n"
        "sys.stderr.write(' '.join(sorted(wrong)))"
    )
    ask(post)
    for words in HOT_RUNS:
        done = post.run(*words, python=("-c", load), stdin=CALL, env={"CLAUDECODE": "1"})
        assert done.stderr == "", ("run scripts/hot", words, done)


LATER_ENV = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "me", "AGENT_MAILBOX_TEST_CALLER": None}


def test_what_a_rarer_branch_loads_is_in_the_bundle_too(post: Post, saved: str) -> None:
    """A session's start, mail that another program wrote, and a call by a program load nothing beside their bundles.
    ``scripts/hot`` adds what this test finds."""
    load = (
        f"{saved}assert launch.load_bundle(launch.bundle_for(sys.argv[1:]))\nlaunch.main(sys.argv[1:])\n"
        "ours = {n: m for n, m in sys.modules.items() if n.startswith('agent_mailbox.') and n != launch.__name__}\n"
        "loaders = {n: type(m.__spec__.loader).__name__ for n, m in ours.items()}\n"
        "sys.stderr.write(' '.join(n for n in loaders if loaders[n] not in ('NoneType', 'LaunchFinder')))"
    )
    ask(post)
    found: dict[str, set[str]] = {}
    for turn, words in enumerate(LATER_RUNS):
        done = post.run(*words, python=("-c", load), stdin=prepare(post, turn), env=LATER_ENV)
        assert done.rc == 0, done
        for name in done.stderr.split():
            found.setdefault(name.partition(".")[2], set()).add(launch.bundle_for(words) or "")
    if found and "WRITE_HOT_LISTS" in os.environ:
        for verbs, names in bundle.LATER_MODULES.items():
            for name in names.split():
                found.setdefault(name, set()).update(verbs.split())
        write_list("LATER_MODULES", group(found))
        return
    assert not found, "run scripts/hot"


def test_what_stands_in_a_bundle_is_linked(post: Post, saved: str) -> None:
    """Loading it imports nothing of ours: an import statement asks for what is there already at ten times the price."""
    load = (
        f"{saved}import builtins\nreal = builtins.__import__\n"
        "def noting(name, globals=None, locals=None, fromlist=(), level=0):\n"
        "    if level or name.startswith('agent_mailbox'):\n"
        "        sys.stderr.write(f'{(globals or {}).get(\"__name__\")} imports {level} {name} {fromlist}\\n')\n"
        "    return real(name, globals, locals, fromlist, level)\n"
        "builtins.__import__ = noting\nassert launch.load_bundle(sys.argv[1])"
    )
    said = {verb: post.run(verb, python=("-c", load)).stderr for verb in launch.BUNDLES}
    assert said == dict.fromkeys(launch.BUNDLES, ""), "run scripts/hot"


def test_the_hot_list_is_what_the_hot_verbs_load(post: Post) -> None:
    """``HOT_MODULES`` lists what the hot verbs load, each module after those that it imports. ``scripts/hot`` writes
    it."""
    code = (
        "import sys\nfrom agent_mailbox.launch import main\nmain(sys.argv[1:])\n"
        "sys.stderr.write(' '.join(n for n in sys.modules if n.startswith('agent_mailbox.')))"
    )
    ask(post)
    verbs: dict[str, set[str]] = {}
    for words in HOT_RUNS:
        if words[-1] != "Stop":  # which is the hook with nothing to show
            post.send("x", "me", "hi")
        loaded = post.run(*words, python=("-c", code), stdin=CALL, env={"CLAUDECODE": "1"}).stderr.split()
        for name in loaded:
            verb, module = launch.bundle_for(words) or "", name.partition(".")[2]
            if f"agent_mailbox.{module}" not in bundle._of_verb(verb, bundle.LATER_MODULES):
                verbs.setdefault(module, set()).add(verb)
    assert verbs.pop("launch") == set(launch.BUNDLES)
    found = group(verbs)
    if "WRITE_HOT_LISTS" in os.environ:
        write_list("HOT_MODULES", found)
        return
    assert [*bundle.HOT_MODULES.items()] == [*found.items()], "run scripts/hot"


@pytest.mark.parametrize(
    "words",
    [("check", "--session", "me", "--json"), ("roster", "list", "--state", "alive", "--json")],
    ids=lambda w: w[0],
)
def test_the_file_itself_may_be_started_bare(post: Post, words: tuple[str, ...]) -> None:
    """Python can start the program's file isolated and without ``site``, as the hooks' launcher does."""
    main = ROOT / "agent_mailbox/__main__.py"
    post.register("me")
    result = post.run(*words, python=("-I", "-S", str(main)), cwd=post.scratch)
    assert (result.rc, result.stderr) == (0, ""), result


def test_a_checkout_that_starts_bare_finds_the_environment_s_packages() -> None:
    """A send in a shared mailbox signs and asks the engine with them, and no site names them."""
    find = (
        "import importlib.util, runpy, sys, types\n"
        "started = sys.modules['agent_mailbox.launch'] = types.ModuleType('agent_mailbox.launch')\n"
        "started.start = lambda: print(importlib.util.find_spec('click') is not None)\n"
        "runpy.run_path(sys.argv[1], run_name='__main__')"
    )
    words = [sys.executable, "-I", "-S", "-c", find, ROOT / "agent_mailbox/__main__.py"]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == "True\n"


def test_only_a_hot_verb_goes_without_the_collector(checkout: Checkout) -> None:
    """Any other command may run for long, and then every cycle it made would stay."""
    script = "import gc, sys; from agent_mailbox import launch; gc.disable(); launch.main(sys.argv[1:])"
    for words, collects in (
        (("roster", "list", "--state", "alive"), True),
        (("wait", "--session", "me", "--timeout", "0"), True),
        (("check", "--session", "me"), False),
    ):
        told = checkout.run(*words, python=("-c", f"{script}; print('collects:', gc.isenabled())"))
        assert f"collects: {collects}" in told.stdout, told


LONG = """swarm serve
teams import --follow
teams bridge
console
wait --session me
control log --follow
export --format mbox
steward run
history --all --limit 0
search x --limit 0
backup file
doctor"""
"""The commands that run on, or that may make much garbage."""


def test_the_collector_is_on_in_each_command_that_runs_on(checkout: Checkout) -> None:
    """The garbage collector is on at the first step of each command that runs long."""
    script = """
import gc, sys, click
from agent_mailbox import launch
from agent_mailbox.identity import callers, terminals
callers.caller_of = lambda *_: callers.Caller(callers.PERSON)
terminals.is_typed = lambda environ: True
def invoke(self, context):
    if not isinstance(self, click.Group):
        print(gc.isenabled())
click.Command.invoke = invoke
for words in sys.stdin.read().splitlines():
    gc.disable()
    launch.main(words.split())
"""
    told = checkout.run(python=("-c", script), stdin=LONG)
    assert told.stdout.split() == ["True"] * len(LONG.splitlines()), told


def test_a_module_that_hides_a_dependency_is_an_error_with_a_hint(checkout: Checkout) -> None:
    """A stray ``click.py`` on ``PYTHONPATH`` gives an error with a hint, not a traceback."""
    hiding = checkout.scratch / "hiding"
    hiding.mkdir()
    (hiding / "click.py").write_text("")
    env = {"PYTHONPATH": f"{hiding}:{checkout.package.parent}"}
    told = refused(checkout.run("roster", "list", "--state", "alive", "--json", env=env), 5, "click", "PYTHONPATH")
    assert told.json["error"]["code"] == "internal"


def test_a_damaged_module_is_told_where_a_command_needs_it(checkout: Checkout) -> None:
    """Click takes the ``EOFError`` of a cut ``.pyc`` for Ctrl-D, and such a command would end without a word."""
    script = """
import sys, click
from agent_mailbox import launch
def invoke(self, context):
    raise EOFError("marshal data too short")
click.Command.invoke = invoke
sys.exit(launch.main(sys.argv[1:]))
"""
    told = checkout.run("roster", "list", "--state", "alive", python=("-c", script))
    assert (told.rc, "a part of a module" in told.stderr, "-delete" in told.stderr) == (5, True, True), told


def test_a_cut_module_that_every_command_needs_is_told_too(checkout: Checkout) -> None:
    """Python kept a part of it, as on a full disk; without what it kept, the command works again."""
    checkout.run("roster", "list", "--state", "alive")
    (kept,) = (checkout.package / "commands/__pycache__").glob("main.*.pyc")
    kept.write_bytes(kept.read_bytes()[:400])
    refused(checkout.run("roster", "list", "--state", "alive"), 5, "a part of a module", "-delete")
    kept.unlink()
    assert checkout.run("roster", "list", "--state", "alive").rc == 0


# -- the program is replaced while it runs ----------------------------------------------------------------------------


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
