"""The extras of this installation: their missing libraries, and the command that installs them.

Belongs here: that command. It names no project of an index: `agent-mailbox` is another one there, and nobody holds our
distribution's name.
"""

from __future__ import annotations

import json
import re
import sys
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from ..core.text import shell_quoted
from ..errors import Refused

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

DISTRIBUTION = "agent-mailbox-protocol"
_OF_EXTRA = re.compile(r"([\w.-]+).*;.*\bextra == ['\"](\w+)['\"]")
"""A requirement of an extra, as the installed metadata spell it: the package, and the extra."""
ROOT = Path(__file__).absolute().parents[2]
"""The directory of the package: a checkout, or ``site-packages``."""


def find_missing(libraries: Iterable[str]) -> list[str]:
    """Return the libraries that are not installed."""
    return [name for name in libraries if find_spec(name) is None]


def refuse_missing(extra: str, purpose: str, libraries: Iterable[str]) -> None:
    """Raise ``Refused`` if a library of an extra is not installed, with the command that adds it."""
    if missing := find_missing(libraries):
        what = f"packages for {purpose} are missing: {', '.join(missing)}"
        raise Refused(what, command_to_add(extra), code="no_extra")


def command_to_add(extra: str) -> str:
    """Return the command that adds an extra to this installation, by the installer that made its environment."""
    parts = Path(sys.prefix).parts
    if is_uv := "uv" in parts and "tools" in parts:  # it makes the environment again, of what is named alone
        extra = ",".join(sorted({extra, *_list_present()}))
    wanted = quoted_requirement(extra, _read_origin(), _version_of(DISTRIBUTION))
    if is_uv:
        return f"uv tool install --force {wanted}"
    if "pipx" in parts:
        return f"pipx install --force {wanted}"
    return f"{shell_quoted(sys.executable)} -m pip install {wanted}"


def quoted_requirement(extra: str, origin: Mapping[str, Any] | None, version: str | None) -> str:
    """Return the requirement, quoted for a shell: the origin by PEP 610, else the checkout, else a clone."""
    url = str((origin or {}).get("url", ""))
    if origin and "dir_info" in origin and url.startswith("file://"):
        editable = "--editable " if origin["dir_info"].get("editable") else ""
        return editable + shell_quoted(f"{unquote(urlsplit(url).path)}[{extra}]")
    if origin and "vcs_info" in origin:
        vcs = origin["vcs_info"]
        return shell_quoted(f"{DISTRIBUTION}[{extra}] @ {vcs.get('vcs')}+{url}@{vcs.get('commit_id')}")
    if url:
        return shell_quoted(f"{DISTRIBUTION}[{extra}] @ {url}")
    if version is None:
        return shell_quoted(f"{ROOT}[{extra}]")
    return f"{shell_quoted(f'.[{extra}]')}  # in a clone of its repository"  # no index has it


def _read_origin() -> Mapping[str, Any] | None:
    """Return this installation's ``direct_url.json`` (PEP 610); None if it came from an index or is a checkout."""
    try:
        text = metadata.distribution(DISTRIBUTION).read_text("direct_url.json")
        found = json.loads(text) if text else None
    except (metadata.PackageNotFoundError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _list_present() -> list[str]:
    """Return the extras of which every package is installed."""
    try:
        found = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        return []
    packages: dict[str, list[str]] = {}
    for line in found:
        if part := _OF_EXTRA.match(line):
            packages.setdefault(part[2], []).append(part[1])
    return [extra for extra, names in packages.items() if all(map(_version_of, names))]


def _version_of(package: str) -> str | None:
    """Return a package's installed version; None if there is none, as of us in a plain checkout."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
