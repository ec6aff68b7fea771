"""Starting: the hot verbs in their plain form without click, everything else with it; and starting fast.

Belongs here: what happens before and after a command. A poll does a fraction of a millisecond's work; what it costs is
starting Python and importing some thirty small modules. So those modules' code is kept in one derived file, the
*bundle*, which saves finding and opening each: like ``.pyc`` files it lives in ``__pycache__``, is written by whoever
finds it missing or stale, and counts only while every source file is as it was. (Its modification time is its seal, as
with the mailbox's derived files; see ``store.cache``.)
"""

from __future__ import annotations

import marshal
import posix
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import CodeType, ModuleType

    Entry = tuple[str, bool, int, int, bytes]

HOT = (
    *("plain", "errors", "config", "desk", "delivery", "posting", "registry"),
    *("core", "core.records", "core.instant", "core.codec", "core.text", "core.address", "core.frame", "core.claims"),
    *("core.roster", "core.rollbook", "core.expiry", "core.inbox", "core.compose", "core.enrol"),
    *("store", "store.system", "store.paths", "store.lock", "store.trail", "store.log", "store.cache", "store.logs"),
    *("store.poll", "store.archive", "cli", "cli.app", "cli.boundary", "cli.letters", "cli.output", "cli.verbs"),
    *("cli.hook", "claude", "claude.hook", "claude.budget"),
)
"""The modules that hot verbs may import; a test holds them to it. What is not imported is not decoded either."""

_SECOND = 1_000_000_000
_PACKAGE = __name__.rpartition(".")[0]
_BUNDLE = f"{__file__.rpartition('/')[0]}/__pycache__/hot.{sys.implementation.cache_tag}.bundle"


class Bundle:
    """An importer (PEP 451) for the modules of the bundle."""

    def __init__(self, entries: dict[str, Entry]) -> None:
        self.entries = entries

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:  # noqa: ARG002
        entry = self.entries.get(name)
        if entry is None:
            return None
        spec = type(__spec__)(name, self, origin=entry[0], is_package=entry[1])  # type: ignore[arg-type]
        spec.has_location = True
        if spec.submodule_search_locations is not None:
            spec.submodule_search_locations.append(entry[0].rpartition("/")[0])
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:  # noqa: ARG002 - the usual module will do
        return None

    def exec_module(self, module: ModuleType) -> None:
        exec(marshal.loads(self.entries[module.__name__][4]), module.__dict__)


def load_bundle() -> bool:
    """Import from the bundle from now on, if there is one and every source file is as it was."""
    try:
        with open(_BUNDLE, "rb") as file:
            seal, _, data = file.read().partition(b"\n")
            if int(seal) * _SECOND != posix.fstat(file.fileno()).st_mtime_ns:
                return False  # somebody else wrote in it, or somebody died writing it
        entries: dict[str, Entry] = marshal.loads(data)
        for path, _, size, mtime, _ in entries.values():
            at = posix.stat(path)
            if (at.st_size, at.st_mtime_ns) != (size, mtime):
                return False
    except (OSError, ValueError, EOFError, TypeError, AttributeError):
        return False
    sys.meta_path.insert(0, Bundle(entries))
    return True


def save_bundle() -> None:
    """Write the bundle anew; where that cannot be done, starting stays a little slower."""
    from importlib.util import find_spec

    entries = {}
    aside = f"{_BUNDLE}.{posix.getpid()}"
    try:
        for name in (f"{_PACKAGE}.{module}" for module in HOT):
            spec = find_spec(name)
            if spec is None or spec.origin is None:
                return
            at = posix.stat(spec.origin)
            with open(spec.origin, "rb") as file:
                code: CodeType = compile(file.read(), spec.origin, "exec", dont_inherit=True, optimize=2)
            is_package = spec.submodule_search_locations is not None
            entries[name] = (spec.origin, is_package, at.st_size, at.st_mtime_ns, marshal.dumps(code))
        seal = int.from_bytes(posix.urandom(4), "big") >> 1
        with open(aside, "xb") as file:
            file.write(b"%d\n" % seal + marshal.dumps(entries))
        posix.utime(aside, ns=(seal * _SECOND, seal * _SECOND))
        posix.rename(aside, _BUNDLE)
    except (OSError, SyntaxError):
        pass


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    from . import plain

    arguments = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    done = plain.run(arguments)
    if done is not None:
        return done
    if sys.flags.no_site:
        import site

        site.main()  # click and the other dependencies live in site-packages
    from .cli.main import main as run

    return run(arguments)


def start() -> None:
    """Run the command of this process and end the process.

    At once: everything is written and synced by then, and taking the interpreter apart in good order would cost a
    fifth of a bare start. A command is over before it has made garbage worth collecting.
    """
    import gc

    gc.disable()
    bundled = load_bundle()
    code = main()
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):
        code = code or 5
    if not bundled and not sys.dont_write_bytecode:
        save_bundle()
    posix._exit(code)
