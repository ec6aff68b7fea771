"""The replicator as a service of the person's: it starts with their login, and again after each end.

Belongs here: the file that says so to systemd (``systemd.service(5)``) or to macOS's launchd (``launchd.plist(5)``),
putting it there and taking it away.
"""

from __future__ import annotations

import hashlib
import plistlib
import sys
from typing import TYPE_CHECKING

from ..core.records import Record
from ..errors import Refused
from ..store.files import programs, system
from ..store.files.small_files import Storing, replace_file
from .extras import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping

NAME = "agent-mailbox-engine-"
"""The beginning of our services' names; a digest of the mailbox's path follows."""
_PATIENCE = 120.0
"""Seconds for a command: a service may take 90 to stop (``systemd-system.conf(5)``)."""


class Service(Record):
    """A mailbox's service: the mailbox, its file, and the commands that start and stop it."""

    directory: str
    path: str
    start: tuple[tuple[str, ...], ...]
    stop: tuple[str, ...]


def service_of(directory: str, environ: Mapping[str, str]) -> Service:
    """Return the service of a mailbox (its real path), whether it is there or not."""
    name = NAME + hashlib.sha256(system.encoded(directory)).hexdigest()[:8]
    home = environ.get("HOME") or "/"
    if sys.platform == "darwin":
        path = system.join(home, "Library/LaunchAgents", f"{name}.plist")
        target = f"gui/{system.getuid()}"
        start = ("launchctl", "bootstrap", target, path)
        return Service(directory, path, (start,), ("launchctl", "bootout", f"{target}/{name}"))
    units = system.join(environ.get("XDG_CONFIG_HOME") or system.join(home, ".config"), "systemd/user")
    unit = f"{name}.service"
    control = ("systemctl", "--user")
    begin = (*control, "daemon-reload"), (*control, "enable", "--now", unit)
    return Service(directory, system.join(units, unit), begin, (*control, "disable", "--now", unit))


def service_text(service: Service) -> bytes:
    """Return what is written into its file; raise ``Refused`` for a path that no file of services holds."""
    program = (sys.executable, "-m", "agent_mailbox", "--dir", service.directory, "engine", "serve")
    root = str(ROOT)
    if any(not word.isprintable() for word in (*program, root)):
        raise Refused(f"a service cannot hold a path that does not print: {service.directory!r}", "move the mailbox")
    if sys.platform == "darwin":
        name = system.basename(service.path).removesuffix(".plist")
        told = {"Label": name, "ProgramArguments": [*program], "WorkingDirectory": root, "KeepAlive": True}
        return plistlib.dumps(told)
    text = (
        f"[Unit]\nDescription=agent-mailbox replicator of {_escaped(service.directory)}\n\n"
        f"[Service]\nWorkingDirectory={_escaped(root)}\nExecStart={' '.join(map(_quoted, program))}\n"
        "Restart=always\nRestartSec=5\nUMask=0077\n\n[Install]\nWantedBy=default.target\n"
    )
    return text.encode()


def install_service(service: Service) -> None:
    """Write the file, and start the service; raise ``Refused`` with what is left to do if it does not start."""
    text = service_text(service)
    with Storing("make", system.dirname(service.path)):
        system.make_directory(system.dirname(service.path), parents=0o755)
    replace_file(service.path, text)
    for command in service.start:
        if said := programs.why_failed(command, _PATIENCE):
            last = " ".join(service.start[-1])
            raise Refused(
                f"the service is written, and does not run: {service.path}: {said}",
                f"run `{last}` at your own terminal, or keep `agent-mailbox engine serve` running",
            )


def remove_service(service: Service) -> bool:
    """Stop the service and remove its file; return whether there was one."""
    if not system.exists(service.path):
        return False
    programs.why_failed(service.stop, _PATIENCE)  # it may not run
    system.unlink(service.path)
    return True


def _quoted(word: str) -> str:
    """Return a word of ``ExecStart=`` as systemd takes it back."""
    inner = _escaped(word).replace("\\", "\\\\").replace('"', '\\"').replace("$", "$$")
    return f'"{inner}"'


def _escaped(word: str) -> str:
    return word.replace("%", "%%")
