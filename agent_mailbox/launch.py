"""Starting: plain forms of the hot verbs run without click, everything else with it; and starting fast.

Belongs here: what happens before and after a command. A poll works for a fraction of a millisecond; starting Python and
importing some fifty small modules costs the rest. So one derived file, a *bundle*, holds the modules of each hot verb.
That saves finding, opening and decoding each by itself; within a bundle, imports are look-ups. The modules of the
verb's rarer branches are in it, too: each is decoded when it is imported. Like ``.pyc`` files a bundle lives in
``__pycache__``. The first process that finds it missing or stale writes it; it counts only while every source file is
unchanged. Its modification time is its seal, as with the mailbox's derived files (``store.files.small_files``). Other
modules are imported as usual.
"""

import marshal
import posix
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import CodeType, ModuleType
    from typing import Any

    from .start.bundle import Contents, LaterModule, Source

START = "start"
"""The bundle of the hook that begins a session: it does what no other hook does."""
BUNDLES = (
    "ack",
    "check",
    "dead-letters",
    "hook",
    "release",
    "reply",
    "roster",
    "search",
    "send",
    "show",
    "status",
    START,
)
"""One for each hot verb, by its name."""
HOT = frozenset((*BUNDLES, "read"))
"""The first words of commands that may be plain."""

_HEAD = 11
"""Bytes of a bundle before its contents: its seal and a newline."""
_SECOND = 1_000_000_000
_CACHE = f"{__file__.rpartition('/')[0]}/__pycache__"


def bundle(name: str) -> str:
    """Return where a bundle is."""
    return f"{_CACHE}/{name}.{sys.implementation.cache_tag}.bundle"


def bundle_for(words: "Sequence[str]") -> str | None:
    """Return the name of the bundle for a command's words; None for a verb that is not hot."""
    verb = words[0] if words else ""
    if verb == "hook" and len(words) == 2 and words[1] == "SessionStart":
        return START
    verb = "check" if verb == "read" else verb
    return verb if verb in BUNDLES else None


def load_bundle(name: str) -> bool:
    """Import a hot verb's modules at once; returns whether there is a bundle, with every source file unchanged."""
    try:
        fd = posix.open(bundle(name), posix.O_RDONLY | posix.O_CLOEXEC)
        try:
            there = posix.fstat(fd)
            data = posix.read(fd, there.st_size)
        finally:
            posix.close(fd)
        if int(data[:_HEAD]) * _SECOND != there.st_mtime_ns:
            return False  # another program wrote in it, or its writer was killed
        contents: Contents = marshal.loads(memoryview(data)[_HEAD:])
        sources, compiled, link, modules, later = contents
        for path, size, mtime in sources:  # as ``_is_unchanged``, without a call for each
            at = posix.stat(path)
            if at.st_size != size or at.st_mtime_ns != mtime:
                return False
        finder = LaunchFinder(later, link)
    except (OSError, ValueError, EOFError, TypeError, AttributeError):
        return False
    for name, path in compiled:
        _import_compiled(name, path)
    for module in modules:
        _import(*module, link)
    sys.meta_path.insert(0, finder)
    return True


def _is_unchanged(source: "Source") -> bool:
    path, size, mtime = source
    at = posix.stat(path)
    return at.st_size == size and at.st_mtime_ns == mtime


class LaunchFinder:
    """Finds the modules that a bundle holds for a verb's rarer branches: each is decoded when it is imported.

    A module with a changed source is left to the other finders.
    """

    def __init__(self, modules: "Sequence[LaterModule]", link: str) -> None:
        self._modules = {name: (source, code) for name, source, code in modules}
        self._link = link

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> "ModuleSpec | None":
        """Return the spec of a module that the bundle holds."""
        if name not in self._modules:
            return None
        source, _ = self._modules[name]
        try:
            if not _is_unchanged(source):
                return None
        except OSError:
            return None
        place, _, file = source[0].rpartition("/")
        loader: Any = self  # the protocol wants a base class from ``importlib``, which takes long to load
        spec = type(__spec__)(name, loader, origin=source[0], is_package=file == "__init__.py")
        if spec.submodule_search_locations is not None:
            spec.submodule_search_locations.append(place)
        return spec

    def create_module(self, _spec: object) -> None:
        """Let the interpreter make the module."""

    def exec_module(self, module: "ModuleType") -> None:
        """Execute a module's code."""
        source, code = self._modules[module.__name__]
        module.__file__ = source[0]
        setattr(module, self._link, sys.modules)
        exec(marshal.loads(code), module.__dict__)


def _import_compiled(name: str, path: str) -> None:
    """Import a compiled module from its known place: looking for it takes as long as loading it."""
    from _frozen_importlib_external import ExtensionFileLoader  # where ``importlib`` takes it from

    if name in sys.modules:
        return
    loader = ExtensionFileLoader(name, path)
    try:
        module = loader.create_module(type(__spec__)(name, loader, origin=path))
    except ImportError:
        return  # its importer looks everywhere
    sys.modules[name] = module
    loader.exec_module(module)


def _import(name: str, path: str, is_package: bool, code: "CodeType", link: str) -> None:
    if name in sys.modules:
        return
    module = type(sys)(name)
    spec = type(__spec__)(name, None, origin=path, is_package=is_package)
    module.__spec__ = spec
    module.__file__ = path
    module.__package__ = spec.parent
    if is_package:
        module.__path__ = [path.rpartition("/")[0]]
    sys.modules[name] = module
    setattr(module, link, sys.modules)
    exec(code, module.__dict__)
    parent, _, child = name.rpartition(".")
    setattr(sys.modules[parent], child, module)


def main(argv: "Sequence[str] | None" = None) -> int:
    """Run one command; returns the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments and arguments[0] in HOT:
        from .start import plain

        done = plain.run(arguments)
        if done is not None:
            return done
    import gc

    gc.enable()  # this command may run long
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    if sys.flags.no_site:
        import site

        site.main()  # click and the other dependencies live in site-packages
    try:
        from .commands.main import main as run
    except Exception as error:  # most likely a module on PYTHONPATH hides one of ours
        from .cli import boundary

        return boundary.report_error(boundary.load_error(error), "--json" in arguments)
    return run(arguments)


def start() -> None:
    """Run the command of this process and end the process.

    It ends at once: everything is written and synced by then. An orderly end of the interpreter would cost a fifth of a
    bare start. A hot verb in its plain form ends before it makes garbage worth collecting.
    """
    import gc

    gc.disable()
    name = bundle_for(sys.argv[1:])
    stale = name is not None and not load_bundle(name)
    code = main()
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):
        code = code or 5
    if name is not None and stale and not sys.dont_write_bytecode:
        try:
            from .start import bundle as bundles

            bundles.save_bundle(name, bundle(name))
        except Exception:  # an upgrade took it away, or brought another: the command is done
            pass
    posix._exit(code)
