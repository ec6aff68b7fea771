"""``console``: the person's own page. See ``agent_mailbox.console``."""

from __future__ import annotations

import os
import stat
import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING

import click

from ..cli import loading_ahead, suggested, widening
from ..cli.group import cli
from ..cli.options import App, pass_app
from ..core.text import neutral
from ..errors import Malformed, Refused
from ..upkeep import extras

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..console.console_server import Server
    from ..console.phone import Way

PORT = 8642
NEEDED = ("starlette", "uvicorn", "jinja2", "markdown_it", "nh3", "python_multipart")


@cli.command()
@click.option(
    "--port",
    metavar="N",
    type=click.IntRange(0, 65535),
    default=PORT,
    show_default=True,
    help="The port to listen on; 0 picks a free one.",
)
@click.option(
    "--host",
    metavar="ADDR",
    default="127.0.0.1",
    show_default=True,
    help="The address to listen on; anything but loopback is a risk.",
)
@click.option(
    "--origin",
    metavar="URL",
    help="The https address of your own TLS proxy before the console: the console then answers to it alone.",
)
@click.option(
    "--phone",
    is_flag=True,
    help="Find the way to this console from a phone (`tailscale serve`, nginx, Caddy), and show the link as a QR code.",
)
@click.option("--open", "opens", is_flag=True, help="Open the console in your browser instead of printing the link.")
@pass_app
def console(app: App, port: int, host: str, origin: str | None, phone: bool, opens: bool) -> None:
    """Serve a local web page of all agents and your mailboxes. There you write and decide. Only you may run it.

    The printed link works once, within five minutes; press Enter for another. Ctrl+C stops the console and disturbs no
    agent.
    """
    extras.refuse_missing("console", "the console", (*NEEDED, "segno") if phone else NEEDED)
    if not opens and _is_kept():
        raise Refused(
            "the sign-in link must not be kept in a file, and the output is one",
            "run `agent-mailbox console` at a terminal, or add --open",
        )
    directory = app.mailbox.directory
    app.directory = app.directory and directory  # who reads a page may be in another directory
    from ..console import console_server
    from ..console import phone as phones

    way = phones.find_way(port) if phone and origin is None else None
    served = _served_origin(origin if way is None else way.origin)
    loading_ahead.load_rooms("console", "teams")
    console_server.end_in_order()
    console_server.log_to_stderr()

    def hint_for(mailbox: str) -> Callable[[str], str]:
        if mailbox == directory:
            return app.complete_hint
        return lambda text: suggested.complete_commands(text, {suggested.DIR: mailbox})

    listening = console_server.listening_socket(host, port)
    widening.check_widening(app, lambda: "whoever has the link of the console decides as you")
    server = console_server.Server(directory, host, listening, served, hint_for)
    if not server.console.hosts.is_loopback:
        app.give_warning(
            f"{host} is open to the network: anyone who reads its traffic can read the mail and take over the session"
        )

    def warn_unless_built(built: bool) -> None:
        if not built:
            app.give_warning("no search index can be built here; pages will be slow in a large mailbox")

    if server.console.desk.is_cold():
        app.give_warning("building the search index; until it is there, pages cover the newest mail alone")
        server.console.prepare_index(warn_unless_built)
    else:
        warn_unless_built(server.console.desk.warm_caches())
    link = server.new_link()
    with console_server.open_in_browser(link) if opens else nullcontext():
        _tell_address(app, server, "" if opens else link, way, phones.draw_link(link) if phone else "")
        if not app.json:
            console_server.ask_for_links(server, app.write_answer)
        server.serve_until_signal()


def _served_origin(origin: str | None) -> str:
    """Return the origin by which the person's proxy serves the console; empty without one."""
    if origin is None:
        return ""
    from ..console.guard import checked_origin

    try:
        return checked_origin(origin)
    except ValueError:
        raise Malformed(f"not an https origin: {origin!r}", "write it as https://console.example") from None


def _tell_address(app: App, server: Server, link: str, way: Way | None, drawn: str) -> None:
    value = {"url": server.url, "link": link or None, "pid": os.getpid(), "port": server.port}
    shown = server.tell_link(link) if link else f"opened {server.url} in your browser\n"
    if way is not None:
        shown = f"a phone reaches it behind {way.name}\n{shown}"
    shown += drawn
    more = "Enter: print another link; Ctrl+C: stop\n" if sys.stdin is not None and sys.stdin.isatty() else ""
    app.print_answer(f"console of {neutral(server.console.desk.directory)}\n{shown}{more}", value)


def _is_kept() -> bool:
    """Return whether standard output is a regular file, which would keep the link."""
    try:
        return stat.S_ISREG(os.fstat(sys.stdout.fileno()).st_mode)
    except (OSError, ValueError, AttributeError):
        return False
