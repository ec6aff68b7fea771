"""The floors: who may import whom, and what the core may not touch. Holds the architecture by walking the imports."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from agent_mailbox.core import codec
from agent_mailbox.start.bundle import HOT_MODULES
from tests.helpers import ROOT, each

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tests.helpers import Program

PACKAGE = "agent_mailbox"
SOURCES = sorted((ROOT / PACKAGE).rglob("*.py"))
ROOMS = (
    ("errors",),
    ("core",),
    ("known_clients", "store"),
    ("config", "identity"),
    ("permissions", "space"),
    ("control_plane",),
    ("mailbox",),
    ("control",),
    ("upkeep",),
    ("clients",),
    ("cli",),
    ("console", "mcp", "swarm", "teams"),
    ("commands",),
    ("start", "launch", "__main__", ""),
)
"""Every room, by floors from the ground up; a module that is in no room counts as one."""
FLOORS = {room: floor for floor, rooms in enumerate(ROOMS) for room in rooms}
DOORS, TOP = FLOORS["swarm"], FLOORS["start"]
LOOSE = {"errors", "launch"}
HEAVY = {"click", "orjson", "portalocker", "dataclasses", "re", "typing", "json", "pathlib", "functools", "collections"}
DOOR = "store.files.system"
"""The one module through which these rooms ask the operating system: the simulation replaces it."""
BEHIND_THE_DOOR = (
    *("store", "mailbox", "upkeep", "control_plane", "control", "config", "space.order", "space.copy"),
    *("clients.hooks", "clients.client_input", "clients.transcript", "clients.budget"),
)
BEHIND = tuple(f"{room}." for room in BEHIND_THE_DOOR)
SYSTEM = {
    *("_socket", "_sqlite3", "asyncio", "ctypes", "datetime", "fcntl", "fileinput", "glob", "mmap", "os", "pathlib"),
    *("posix", "pwd", "random", "resource", "secrets", "select", "selectors", "shutil", "signal", "socket", "sqlite3"),
    *("subprocess", "tempfile", "threading", "time", "uuid"),
}
"""The modules of Python that ask the system; ``builtins.open`` is one more."""
BYPASSES = {
    ("store.projection.projection_file", "_sqlite3"): "SQLite does its own input and output",
    **{
        ("store.files.programs", name): "asking a program, for a limited time"
        for name in ("os", "selectors", "signal", "subprocess", "tempfile", "time")
    },
    ("upkeep.notice_ways", "threading"): "a time limit for a whole call",
    ("upkeep.notify", "time"): "the person's hour of the day",
    ("upkeep.extras", "pathlib"): "the place of the package",
}
"""The imports that go past the door, each with its reason."""
MAY_LOCK = {DOOR, "store.archive.rotation"}


class Import:
    """One import: who imports what, where, and if it happens when the module is loaded."""

    def __init__(self, path: Path, line: int, target: str, at_load: bool) -> None:
        self.path = path
        self.line = line
        self.target = target
        self.at_load = at_load

    def __repr__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line} imports {self.target}"


def parsed(path: Path) -> ast.Module:
    """A module's text, parsed. Nobody keeps it: the trees of all modules slow down whatever the process does later."""
    return ast.parse(path.read_text(encoding="utf-8"))


def module_of(path: Path) -> str:
    """The module's name without the package's: ``store.log.log``; empty for the package itself."""
    parts = path.relative_to(ROOT / PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def room_of(module: str) -> str:
    """The first part of a module's name: the room it is in."""
    return module.partition(".")[0]


def floor_of(module: str) -> int:
    """The floor of a module, or of a room: that of its room."""
    return FLOORS[room_of(module)]


@cache
def looked_at(path: Path) -> tuple[list[Import], str | None]:
    """Every import a module makes at run time, without those for the type checker alone; and its docstring."""
    tree = parsed(path)
    return [*_walk(tree.body, path, at_load=True)], ast.get_docstring(tree)


def _walk(nodes: list[ast.stmt], path: Path, *, at_load: bool) -> Iterator[Import]:
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(path, node.lineno, alias.name, at_load)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, path)
            for alias in node.names:
                yield Import(path, node.lineno, f"{base}.{alias.name}" if node.level else base, at_load)
        elif isinstance(node, ast.If) and _is_type_checking(node.test):
            yield from _walk(node.orelse, path, at_load=at_load)
        else:
            inside = at_load and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            for block in ("body", "orelse", "finalbody"):
                yield from _walk(getattr(node, block, []), path, at_load=inside)
            for case in getattr(node, "cases", []):
                yield from _walk(case.body, path, at_load=inside)
            # A handler of ImportError names the stand-in for an interpreter that lacks the part.
            for handler in getattr(node, "handlers", []):
                yield from _walk(handler.body, path, at_load=False)


def _is_type_checking(test: ast.expr) -> bool:
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


def _absolute(node: ast.ImportFrom, path: Path) -> str:
    if not node.level:
        return node.module or ""
    package = [PACKAGE, *path.relative_to(ROOT / PACKAGE).parent.parts]
    base = package[: len(package) - (node.level - 1)]
    return ".".join([*base, *([node.module] if node.module else [])])


def own(target: str) -> str | None:
    """The module of ours that a target names or lies in; None for other people's."""
    if target.split(".")[0] != PACKAGE:
        return None
    return target.partition(".")[2]


MODULES = {module_of(path) for path in SOURCES}


@cache
def imports() -> list[Import]:
    """Return every import of the package."""
    return [imported for path in SOURCES for imported in looked_at(path)[0]]


def import_order(modules: Iterable[str]) -> list[str]:
    """Return the modules, each behind its package and those it imports as it is loaded; else by name."""
    names, ordered = {*modules}, dict[str, None]()
    needed = {name: {name.rpartition(".")[0]} for name in names}
    for imported in (imported for imported in imports() if imported.at_load and own(imported.target)):
        target, user = own(imported.target) or "", module_of(imported.path)
        if user in names:
            needed[user] |= {target, target.rpartition(".")[0]}

    def visit(name: str) -> None:
        if name in names and name not in ordered:
            for other in sorted(needed[name]):
                visit(other)
            ordered[name] = None

    for name in sorted(names):
        visit(name)
    return [*ordered]


def test_the_package_has_the_floors_of_the_house() -> None:
    """Every room has a floor, and every floor a room; few modules are in no room."""
    rooms = {room_of(module_of(path)) for path in SOURCES}
    assert rooms == FLOORS.keys()
    loose = {path.stem for path in (ROOT / PACKAGE).glob("*.py")} - {"__init__", "__main__"}
    assert loose == LOOSE
    assert len(imports()) > 100


def test_imports_go_down_only() -> None:
    """No module imports from a floor above its own; only the entry point and the public face know the top."""
    upward = []
    for imported in imports():
        module, target = module_of(imported.path), own(imported.target)
        if target is None or module == "":
            continue
        if target in ("", "__version__"):
            assert floor_of(module) >= FLOORS["cli"], f"{imported}: the public face is for users"
            continue
        if floor_of(target) > floor_of(module):
            upward.append(imported)
    assert upward == []


def test_the_public_face_shows_no_door(program: Program) -> None:
    """Every name ``agent_mailbox`` offers is there, and looking at all of them loads neither door nor command line."""
    code = (
        "import sys, agent_mailbox\n"
        "for name in agent_mailbox.__all__: assert getattr(agent_mailbox, name).__name__ == name\n"
        "rooms = {module.split('.')[1] for module in sys.modules if module.startswith('agent_mailbox.')}\n"
        "print(*sorted(rooms))"
    )
    result = program.python(code)
    assert result.rc == 0, result
    assert "mailbox" in result.stdout.split()
    assert [room for room in result.stdout.split() if floor_of(room) >= DOORS] == []


def test_no_two_rooms_import_each_other() -> None:
    """Between two rooms, packages within packages too, imports run one way; those made within functions count."""
    arrows: dict[tuple[str, str], Import] = {}
    for imported in imports():
        target = own(imported.target)
        if target in MODULES:
            user, used = module_of(imported.path).split(".")[:-1], target.split(".")[:-1]
            for depth in (1, 2, 3):
                pair = ".".join(user[:depth]), ".".join(used[:depth])
                if pair[0] != pair[1] and "" not in pair:
                    arrows[pair] = imported
    assert [(one, arrows[two, other]) for (other, two), one in arrows.items() if (two, other) in arrows] == []


def test_doors_do_not_know_each_other() -> None:
    """A door imports its own modules and what is below, never another door."""
    sideways = []
    for imported in imports():
        room, target = room_of(module_of(imported.path)), own(imported.target)
        if target and FLOORS[room] == DOORS and floor_of(target) == DOORS:
            sideways += [imported] if room_of(target) != room else []
    assert sideways == []


PURE = [p for p in SOURCES if module_of(p).startswith(("core", "swarm.protocol"))]


@each("path", PURE)
def test_the_core_touches_neither_files_nor_clock_nor_environment_nor_chance(path: Path) -> None:
    """The text of a module of the core, or of the swarm's protocol, has no ``open(``, ``.now(``, ``time.``,
    ``os.environ`` or ``random`` in its code."""
    tree = parsed(path)
    for node in ast.walk(tree):  # what comments and docstrings say does not count
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    code = ast.unparse(tree)
    for banned in (r"\bopen\(", r"\.now\(", r"\btime\.", r"\bos\.environ\b", r"\brandom\b", r"\bprint\("):
        assert re.search(banned, code) is None, f"{path.name}: {banned}"
    imported = {i.target.split(".")[0] for i in looked_at(path)[0]}
    assert imported.isdisjoint({"socket", "ssl", "asyncio", "threading", "httpx", "starlette", "hypercorn"})
    assert imported.isdisjoint({"os", "io", "time", "datetime", "random", "secrets", "fcntl", "subprocess", "click"})


OTHER_PROGRAMS = ("clients.", "teams.transcripts")
"""What reads the files of other programs, which have keys of their own."""
KEYS = {*codec._MESSAGE_KEYS, "message_id", "reader_session_id", "session_id", "event", "nonce"}


def _spelt_in(tree: ast.Module) -> Iterator[str]:
    """Yield each quoted word as bytes, each key as bytes, and each text with quotes that is made bytes."""
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=bytes(word)) if re.search(rb'"\w|\w"', word) or word.decode("latin-1") in KEYS:
                yield repr(word)
            case ast.Call(func=ast.Attribute(ast.Constant(str()) | ast.JoinedStr() as text, "encode")):
                if '"' in ast.unparse(text)[2:-1]:
                    yield ast.unparse(node)


def test_only_the_core_knows_how_a_line_is_spelt() -> None:
    """Keys as bytes are in ``core.line_forms`` and its neighbours alone: one place to look at for a new key."""
    outside = {path: name for path in SOURCES if not (name := module_of(path)).startswith(("core.", *OTHER_PROGRAMS))}
    spelling = [path for path in outside if re.search(r"""[bB][rR]?["']|encode""", path.read_text(encoding="utf-8"))]
    found = {outside[path]: [*_spelt_in(parsed(path))] for path in spelling}
    assert {name: spelt for name, spelt in found.items() if spelt} == {}


def test_the_swarm_is_reached_by_the_registry_alone() -> None:
    """A person who does not use the swarm pays nothing for it. Only the commands' registry and the doctor import it, as
    they run."""
    users = [
        i for i in imports() if room_of(module_of(i.path)) != "swarm" and (own(i.target) or "").startswith("swarm.")
    ]
    assert {module_of(i.path) for i in users} == {"commands.main", "commands.upkeep"}
    assert [i for i in users if i.at_load] == []


def test_only_the_store_touches_locks() -> None:
    """``fcntl`` is imported by the door to the system alone, portalocker where maintenance runs take their lock."""
    for imported in imports():
        module, top = module_of(imported.path), imported.target.split(".")[0]
        if top == "fcntl":
            assert module == DOOR, imported
        if top == "portalocker":
            assert module in MAY_LOCK, imported


def test_nothing_bypasses_the_door_to_the_system() -> None:
    """The store, the facade and its kin ask the system as ``system.NAME`` alone, where a simulation can answer; the
    exceptions are few, each with its reason, and none is left over."""
    behind = {p: m for p in SOURCES if (m := module_of(p)) != DOOR and f"{m}.".startswith(BEHIND)}
    found = [i for i in imports() if i.path in behind]
    past = {(behind[i.path], top): i for i in found if (top := i.target.split(".")[0]) in SYSTEM}
    assert {key: i for key, i in past.items() if key not in BYPASSES} == {}
    assert BYPASSES.keys() - past.keys() == set()
    assert [i for i in found if (own(i.target) or "").startswith(f"{DOOR}.")] == []  # a copy of a name stays
    opening = [path for path in behind if re.search(r"\b(open|input)\b", path.read_text(encoding="utf-8"))]
    calls = [(path, node.func) for path in opening for node in ast.walk(parsed(path)) if isinstance(node, ast.Call)]
    assert [path for path, func in calls if isinstance(func, ast.Name) and func.id in ("open", "input")] == []


def test_hot_modules_avoid_the_heavy_ones() -> None:
    """A module that a hot verb loads imports no heavy one as it is loaded; any other module may. A search, which opens
    a database, may load ``os``."""
    verbs = {"": "", "launch": ""} | {name: those for those, names in HOT_MODULES.items() for name in names.split()}
    heavy = [
        imported
        for imported in imports()
        if imported.at_load
        and (name := module_of(imported.path)) in verbs
        and imported.target.partition(".")[0] in (HEAVY if verbs[name] == "search" else {*HEAVY, "os"})
    ]
    assert heavy == []


def test_the_facade_and_the_hooks_door_load_no_heavy_module(program: Program) -> None:
    """The facade and the hooks' door load none of the heavy modules in a fresh interpreter."""
    code = (
        "import sys; before = set(sys.modules)\n"
        "import agent_mailbox, agent_mailbox.mailbox.mailbox, agent_mailbox.config.config\n"
        "import agent_mailbox.clients.hooks.hook_events\n"
        f"print(sorted((set(sys.modules) - before) & {HEAVY!r}))"
    )
    result = program.python(code)
    assert (result.rc, result.stdout) == (0, "[]\n"), result


def test_a_command_loads_neither_the_doctor_s_checks_nor_the_lock_of_maintenance(program: Program) -> None:
    """Those of ``control`` and ``task`` need no check of the doctor, and no command but the steward's and the doctor's
    needs the library of the lock."""
    code = (
        "import sys; from agent_mailbox.commands import main\n"
        "for name in ('control', 'task', 'roster', 'send', 'lease'): main.load_command(name)\n"
        "print([name for name in sys.modules if name == 'portalocker' or '.upkeep.doctor' in name])"
    )
    result = program.python(code)
    assert (result.rc, result.stdout) == (0, "[]\n"), result


def test_run_time_dependencies_are_three() -> None:
    """click, orjson and portalocker; anything else needs an extra of its own, and is a door's or one engine's."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = {re.match(r"[A-Za-z0-9_.-]+", line).group() for line in project["dependencies"]}  # type: ignore[union-attr]
    assert names == {"click", "orjson", "portalocker"}
    used = {i.target.split(".")[0] for i in imports()} - set(sys.stdlib_module_names) - {PACKAGE, "__future__"}
    rooms = {name: {room_of(module_of(i.path)) for i in imports() if i.target.split(".")[0] == name} for name in used}
    low = {name: {room for room in where if floor_of(room) < DOORS} for name, where in rooms.items()}
    beyond = {name: where for name, where in low.items() if where and name not in names}
    assert beyond == {"psycopg2": {"space"}, "cryptography": {"identity", "space"}}
    early = {module_of(i.path) for i in imports() if i.at_load and i.target.split(".")[0] in beyond}
    waited_for = {"space.servers.cluster", "identity.tls_certificates"}  # their users wait
    assert {name for name in early if floor_of(name) < DOORS} == waited_for


@each("path", SOURCES)
def test_every_module_says_what_belongs_in_it(path: Path) -> None:
    """A module opens with a docstring."""
    assert looked_at(path)[1], path
