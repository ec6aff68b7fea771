"""``install --list``: what our hooks do in each client, and where they are installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.known_clients import abilities as known
from agent_mailbox.known_clients.every_client import INSTALLED, MCP_CLIENT
from tests.claude.test_install import FOREIGN, House

if TYPE_CHECKING:
    from tests.helpers import Program

NAMES = [client.name for client in INSTALLED]


@pytest.fixture
def house(program: Program) -> House:
    """A project without any settings."""
    return House(program)


def listed(house: House) -> dict[str, dict[str, Any]]:
    """The list as JSON, by client."""
    result = house.program.run("install", "--list", "--json", cwd=house.project)
    assert (result.rc, result.stderr) == (0, ""), result
    return {row["client"]: row for row in result.json}


@pytest.mark.parametrize("name", NAMES)
def test_a_client_is_listed_as_installed_only_while_it_is(house: House, name: str) -> None:
    """Its settings file is named after ``install``, no other client's is, and none after ``uninstall``."""
    assert [row["installed"] for row in listed(house).values()] == [[]] * len(NAMES)
    before = house.tree()
    for word in ("install", "uninstall"):
        assert house.program.call(word, name, "--project", house.project, "--json").rc == 0
        found = {row["client"]: row["installed"] for row in listed(house).values() if row["installed"]}
        assert [*found] == ([name] if word == "install" else [])
    assert house.tree() == before


def test_the_list_tells_the_clients_apart(house: House) -> None:
    """Claude Code and Codex have everything. Gemini CLI has no hook at the start, and nothing wakes it. A limit is that
    of an ability which the client has."""
    rows = listed(house)
    lacking = {name: set(known.ABILITIES) - {"tools", *row["abilities"]} for name, row in rows.items()}
    assert [*rows] == NAMES
    assert lacking["claude-code"] == set()
    assert lacking["codex"] == set()
    assert lacking["opencode"] == {"seen"}
    assert lacking["gemini"] == {"start", "wake when idle"}
    assert known.abilities_of(MCP_CLIENT) == ("tools",)
    for client in INSTALLED:
        assert set(rows[client.name]["limits"]) <= set(rows[client.name]["abilities"])
        assert rows[client.name]["seen_with"] == (client.seen_with[-1] if client.seen_with else None)


def test_a_hook_that_only_speaks_of_us_is_no_installation(house: House) -> None:
    """Neither is a settings file that is not JSON; the list is text on one screen and changes nothing."""
    house.write({"hooks": {"Stop": [{"hooks": [FOREIGN]}]}})
    house.write(b"{", house.project / ".gemini/settings.json")
    before = house.tree()
    result = house.program.run("install", "--list", cwd=house.project)
    assert (result.rc, result.stderr) == (0, ""), result
    assert result.stdout.count("not installed here") == len(INSTALLED)
    assert result.stdout.count("(not run)") == sum(not client.seen_with for client in INSTALLED)
    assert house.tree() == before
