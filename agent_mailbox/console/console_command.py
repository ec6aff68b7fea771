"""``console``: the person's own page. See ``agent_mailbox.console``."""

from __future__ import annotations

import gc
import os
import stat
import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING

import click

from ..cli.context import refuse_agent_as_user
from ..cli.group import cli
from ..cli.options import App, Verb, pass_app
from ..core.text import neutral
from ..errors import Refused
from ..upkeep import extras

if TYPE_CHECKING:
    from .console_server import Server

PORT = 8642
NEEDED = ("starlette", "uvicorn", "jinja2", "markdown_it", "nh3")


@cli.command(cls=Verb)
@click.option("--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="0: any that is free.")
@click.option(
    "--host", metavar="ADDR", default="127.0.0.1", show_default=True, help="Where to listen; beside loopback: a risk."
)
@click.option("--open", "opens", is_flag=True, help="Open it in your browser, instead of showing the link.")
@pass_app
def console(app: App, port: int, host: str, opens: bool) -> None:
    """See everything and step in: a local page with agents, channels, requests, search. Only for the person.

    The link that is shown works once, for five minutes; Enter shows another. Ctrl+C ends the console; agents never
    notice.
    """
    refuse_agent_as_user(app.environ)
    missing = extras.missing(NEEDED)
    if missing:
        raise Refused(f"the console needs {', '.join(missing)}", extras.how("console"), code="not_installed")
    if not opens and _is_kept():
        raise Refused(
            "the link to the console is shown on a terminal only, and this output is a file",
            "run it at a terminal, or with --open",
        )
    directory = app.mailbox.directory
    from .console_server import Server, ask_for_links, end_in_order, opened

    gc.enable()  # it may run for days
    end_in_order()
    server = Server(directory, host, port)
    if not server.console.hosts.is_loopback:
        app.warn(f"{host} is not this machine alone: whoever reads the network between reads mail and sessions")
    if server.console.desk.is_cold():
        app.warn("reading all mail once, for the search index: about a minute for half a gigabyte")
    if not server.console.desk.warm():
        app.warn("no search index is to be had here; in a large mailbox pages will be slow")
    link = server.link()
    with opened(link) if opens else nullcontext():
        _tell(app, server, "" if opens else link)
        ask_for_links(server, app.print)
        server.run()


def _tell(app: App, server: Server, link: str) -> None:
    value = {"url": server.url, "link": link or None, "pid": os.getpid(), "port": server.port}
    shown = f"{link}\n" if link else f"opened {server.url} in your browser\n"
    more = "Enter: another link; Ctrl+C: end\n" if sys.stdin is not None and sys.stdin.isatty() else ""
    app.out(f"console of {neutral(server.console.desk.directory)}\n{shown}{more}", value)


def _is_kept() -> bool:
    """Does what is written go into a file, to stay there?"""
    try:
        return stat.S_ISREG(os.fstat(sys.stdout.fileno()).st_mode)
    except (OSError, ValueError, AttributeError):
        return False
