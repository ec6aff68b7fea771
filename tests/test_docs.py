"""The documents say what the program does: every command and option has help, the generated pages are those the
program writes, and no page names a command, an option, a file or a module that is not there."""

from __future__ import annotations

import builtins
import re
import runpy
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest
from click.testing import CliRunner

from tests.helpers import ROOT, each

if TYPE_CHECKING:
    from collections.abc import Iterator

from agent_mailbox.cli.group import CommandGroup, cli
from agent_mailbox.commands import main as registered
from agent_mailbox.known_clients.every_client import KNOWN
from scripts.client_runs import record
from scripts.documents import markdown, pages
from scripts.prose import hard_page_sentences, written_pages

README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCS = ROOT / "docs"
PAGES = (
    *(
        "claude-code",
        "clients",
        "commands",
        "concepts",
        "configuration",
        "console",
        "coordination",
        "engine",
        "file-format",
    ),
    *("operations", "swarm", "teams", "trust"),
)
MANUAL = "\n".join([README, *((DOCS / f"{page}.md").read_text(encoding="utf-8") for page in PAGES)])
"""What users read: README, and the pages that it leads to."""
registered.load_all()


def commands(group: click.Group = cli, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command with the words that call it, groups included."""
    yield path, group
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


ALL = dict(commands())
LEAVES = {path: command for path, command in ALL.items() if not isinstance(command, click.Group)}
CONTRACT = {
    "init": set(),
    "send": {
        "--now",
        *(
            "--from",
            "--to",
            "--subject",
            "--body",
            "--thread",
            "--ttl-hours",
            "--expires-at",
            "--when",
            "--ack",
            "--priority",
            "--type",
        ),
        *("--id", "--strict", "--jsonl"),
    },
    "reply": {"--from", "--body"},
    "check": {"--session", "--peek", "--limit"},
    "status": {"--session", "--cost"},
    "mute": {"--session"},
    "unmute": {"--session"},
    "show": set(),
    "thread": set(),
    "history": {"--with", "--since", "--limit", "--all"},
    "search": {"--limit"},
    "ack": {"--session"},
    "release": {"--session"},
    "dead-letters": {"--session", "--all"},
    "wait": {"--session", "--timeout"},
    "notify": {"--test"},
    "statusline": {"--session"},
    "tail": {"--session", "--all", "--with", "--lines"},
    "top": {"--once", "--limit", "--interval"},
    "task add": {
        "--to",
        "--title",
        "--body",
        "--context",
        "--after",
        "--ack-by",
        "--plan-required",
        "--session",
        "--from",
    },
    "task list": {"--mine", "--open", "--to", "--all", "--session"},
    "task claim": {"--next", "--to", "--for", "--session"},
    "task progress": {"--phase", "--message", "--session"},
    "task done": {"--summary", "--artifact", "--error", "--session"},
    "task drop": {"--reason", "--session"},
    "task cancel": {"--reason", "--session"},
    "task show": {"--session"},
    "handover": {"--to", "--body", "--session", "--from"},
    "note add": {"--on", "--title", "--body", "--replaces", "--session", "--from"},
    "note list": {"--on"},
    "note show": set(),
    "note drop": {"--session"},
    "lease take": {"--for", "--note", "--session"},
    "lease list": set(),
    "lease release": {"--session"},
    "lease check": {"--staged", "--session"},
    "watch set": {"--idle", "--dead", "--task", "--for", "--session"},
    "watch list": {"--session"},
    "watch cancel": {"--session"},
    "roster register": {"--session-id", "--name", "--role", "--tags", "--lead"},
    "roster update": {"--session-id", "--name", "--role", "--tags", "--lead", "--add-tags", "--remove-tags"},
    "roster heartbeat": {"--session-id"},
    "roster freeze": {"--session-id"},
    "roster retire": {"--session-id"},
    "roster list": {"--state"},
    "roster show": set(),
    "steward run": {"--max-live"},
    "steward crontab": {"--install"},
    "doctor": {"--repair"},
    "backup": {"--force", "--verify"},
    "restore": {"--alone"},
    "hook": set(),
    "mcp": set(),
    "console": {"--port", "--host", "--open", "--origin", "--phone"},
    "install claude-code": {"--project", "--user", "--dry-run", "--force"},
    "uninstall claude-code": {"--project", "--user", "--dry-run"},
    "install codex": {"--project", "--user", "--dry-run"},
    "uninstall codex": {"--project", "--user", "--dry-run"},
    "install gemini": {"--project", "--user", "--dry-run"},
    "uninstall gemini": {"--project", "--user", "--dry-run"},
    "install opencode": {"--project", "--user", "--dry-run"},
    "install copilot": {"--project", "--user", "--dry-run"},
    "uninstall opencode": {"--project", "--user", "--dry-run"},
    "uninstall cursor": {"--project", "--user", "--dry-run"},
    "uninstall copilot": {"--project", "--user", "--dry-run"},
    "export": {"--format", "--since"},
    "control request permission": {"--session", "--tool", "--input", "--reason", "--timeout", "--request-id"},
    "control request plan": {
        *("--session", "--body", "--file", "--goal", "--step", "--risk", "--tooling", "--timeout", "--request-id")
    },
    "control request sandbox": {"--session", "--host", "--capability", "--reason", "--timeout", "--request-id"},
    "control request shutdown": {"--session", "--reason", "--timeout", "--request-id"},
    "control request task": {"--session", "--title", "--body", "--context", "--plan-required", "--request-id"},
    "control report": {"--session", "--phase", "--body", "--artifact", "--error"},
    "setup": {"--project", "--git", "--no-statusline", "--diff", "--dry-run", "--yes", "--remove"},
    "up": {"--tmux", "--status", "--example", "--yes", "--wait"},
    "down": {"--wait"},
    "help": {"--all"},
    "approve": {"--session", "--reason", "--mode", "--input", "--scope", "--host", "--always"},
    "deny": {"--session", "--reason"},
    "pending": {"--session", "--all"},
    "control approve": {"--session", "--reason", "--mode", "--input", "--scope", "--host", "--always"},
    "control deny": {"--session", "--reason"},
    "control answer": {"--session", "--reason", "--mode", "--input", "--scope", "--host"},
    "control pending": {"--session", "--all"},
    "control mode": {"--session"},
    "control policy": {"--session", "--allow", "--deny", "--host", "--add", "--clear"},
    "control wait": {"--session", "--timeout"},
    "control log": {"--request", "--follow"},
    "engine join": {"--space", "--machine", "--credential", "--authority"},
    "engine leave": set(),
    "engine status": set(),
    "engine doctor": {"--system"},
    "engine forget": set(),
    "engine purge": {"--credential", "--dry-run", "--url"},
    "engine config": {
        "--nodes",
        "--host",
        "--port",
        "--space",
        "--machine",
        "--remove",
        "--into",
        "--postgresql",
        "--credential",
        "--authority",
    },
    "engine serve": set(),
    "swarm init": {"--agent", "--endpoint"},
    "swarm serve": {"--bind", "--cert", "--key", "--self-signed", "--quic-bind", "--behind-proxy", "--api"},
    "swarm create": {"--allow-member-invite", "--require-approval", "--session"},
    "swarm invite": {"--max-uses", "--unlimited", "--hours", "--revoke"},
    "swarm join": {"--as", "--session"},
    "swarm pair": {"--as", "--hours", "--session"},
    "swarm attach": set(),
    "swarm detach": set(),
    "swarm approve": set(),
    "swarm deny": set(),
    "swarm members": set(),
    "swarm leave": {"--dissolve", "--session"},
    "swarm kick": {"--reason"},
    "swarm transfer": set(),
    "swarm mute": {"--reason"},
    "swarm unmute": set(),
    "swarm send": {"--from", "--subject", "--body", "--thread", "--ttl-hours", "--priority"},
    "swarm inbox": {"--status", "--swarm", "--mark", "--limit"},
    "swarm outbox": {"--limit"},
    "swarm flush": set(),
    "swarm status": set(),
    "swarm context": {"--limit"},
    "swarm notify github": {"--from", "--body", "--also"},
    "swarm new-key": set(),
    "swarm backup": set(),
    "swarm restore": set(),
    "swarm state export": set(),
    "swarm state import": {"--merge", "--replace"},
    "swarm doctor": set(),
    "teams list": set(),
    "teams show": set(),
    "teams inbox": set(),
    "teams import": {"--follow", "--interval"},
    "teams bridge": {"--once", "--interval", "--wait"},
    "teams export": {"--format"},
}
NO_JSON = {"help", "mcp", "hook", "export", "swarm state export"}


def options(command: click.Command) -> set[str]:
    """The spellings of a command's options."""
    return {word for p in command.params if isinstance(p, click.Option) for word in (*p.opts, *p.secondary_opts)}


@each("path", ALL)
def test_every_command_and_option_has_help(path: tuple[str, ...]) -> None:
    """A sentence for each command, a text for each option."""
    command = ALL[path]
    assert command.help, path
    assert command.get_short_help_str(limit=100).strip(), path
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, (path, parameter.opts)
            assert not parameter.hidden, (path, parameter.opts)


@each("path", [path for path in ALL if path not in LEAVES])
def test_a_group_lists_its_commands_in_whole_thoughts(path: tuple[str, ...]) -> None:
    """A group's help gives each command its own line of eighty columns at most, and breaks none off."""
    result = CliRunner().invoke(cli, [*path, "--help"] if path else ["help", "--all"], terminal_width=80)
    group = ALL[path]
    assert isinstance(group, CommandGroup)
    titles = [f"{title}:" for title in group.sections or ["Commands"]]
    rest = result.output[f"\n{result.output}".index(f"\n{titles[0]}\n") :].splitlines()
    assert [line for line in rest if line.endswith(":") and not line.startswith(" ")] == titles
    listed = [line for line in rest if line.startswith("  ")]
    shown = sorted(line.split()[0] for line in listed)
    assert shown == sorted(group.list_commands(click.Context(group))), "name it in cli/group.py: SECTIONS"
    assert [line for line in listed if "..." in line or "…" in line] == []
    for name, said in (line.split(maxsplit=1) for line in listed):
        assert ALL[*path, name].get_short_help_str(sys.maxsize).removesuffix(".") == said


@each("words", CONTRACT)
def test_every_command_of_the_contract_is_there_with_its_options(words: str) -> None:
    """A user can type what the contract promises. Every command that prints data takes --json, and every one takes
    --dir."""
    command = LEAVES.get(tuple(words.split()))
    assert command is not None, "no module has it: name it in cli/group.py: SECTIONS, or remove its row"
    assert CONTRACT[words] <= options(command)
    assert "--dir" in options(command)
    assert ("--home" in options(command)) == words.startswith("swarm ")
    assert ("--json" in options(command)) == (words not in NO_JSON)


def test_no_command_is_there_that_the_contract_does_not_know() -> None:
    """A new command belongs into the contract above."""
    assert {" ".join(path) for path in LEAVES} == set(CONTRACT), "add or remove its row in CONTRACT"
    assert CommandGroup.aliases == {"read": "check"}


def test_each_command_is_loaded_by_its_own_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command is found by its own name, though no other one was loaded before, as all are here."""
    names: set[str] = set()
    really = builtins.__import__

    def import_noted(name: str, where: Any = None, here: Any = None, wanted: Any = (), level: int = 0) -> Any:
        names.update(wanted or ())
        return really(name, where, here, wanted, level)

    lost = []
    for command in cli.list_commands(click.Context(cli)):
        names.clear()
        with monkeypatch.context() as patch:
            patch.setattr(builtins, "__import__", import_noted)
            registered.load_command(command)
        package, _, module = str(cli.commands[command].callback.__module__).rpartition(".")
        loaded = [vars(sys.modules[f"{package}.{name}"]) for name in names]
        if module not in names and not any(module in names_of for names_of in loaded):
            lost.append(command)
    assert lost == [], "import its module in commands/main.py: load_command"


@each("path", LEAVES)
def test_every_command_stands_in_the_manual(path: tuple[str, ...]) -> None:
    """Spelt as code: ``agent-mailbox send``; a group's commands may share one mention of the group."""
    spans = re.findall(r"`([^`\n]+)`", MANUAL)
    *group, name = path
    whole = " ".join(["agent-mailbox", *path])
    mentioned = any(span == whole or span.startswith(whole + " ") for span in spans)
    if not mentioned and group:
        first = " ".join(["agent-mailbox", *group, ""])
        rows = [line for line in MANUAL.splitlines() if f"`{first}" in line]
        mentioned = any(f"`{name}`" in row or f"`{name} " in row for row in rows)
    assert mentioned, f"{whole}: run scripts/docs"


def invocations() -> list[list[str]]:
    """Every call of the program that the manual shows, as words."""
    found = re.findall(r"agent-mailbox ([a-z][^`\n]*)", re.sub(r"\\\|", " ", MANUAL))
    calls = []
    for text in found:
        try:
            words = shlex.split(text, comments=True)
        except ValueError:
            words = text.split()
        if words and words[0] in {path[0] for path in LEAVES} | {"read"}:
            calls.append(words)
    return calls


def test_the_manual_shows_no_command_or_option_that_does_not_exist() -> None:
    """Every invocation in the manual resolves to a command that knows each option shown."""
    calls = invocations()
    assert len(calls) > 10
    for words in calls:
        words = ["check" if word == "read" and i == 0 else word for i, word in enumerate(words)]
        if words[0] == "lease" and words[1:2] and (*words[:2],) not in LEAVES:
            words[1:1] = ["take"]  # ``lease PATH`` is short for it
        if words[0] == "watch" and words[1:2] and (*words[:2],) not in LEAVES:
            words[1:1] = ["set"]
        path = next((tuple(words[:n]) for n in (3, 2, 1) if tuple(words[:n]) in LEAVES), None)
        if len(words) == 1 and (words[0],) in ALL.keys() - LEAVES.keys():
            continue  # a page names a group as a whole
        if (words[0],) in ALL.keys() - LEAVES.keys() and {*words[1:]} <= options(ALL[words[0],]):
            continue  # or a group's own option
        assert path is not None, words
        unknown = {word.split("=")[0] for word in words if word.startswith("--")} - options(LEAVES[path]) - {"--help"}
        assert unknown == set(), (words, unknown)


def test_the_manual_names_every_option() -> None:
    """Each long option of every command is spelt out somewhere in the manual."""
    spelt = set(re.findall(r"--[a-z][a-z-]+", MANUAL))
    wanted = {word for command in LEAVES.values() for word in options(command) if word.startswith("--")}
    assert wanted - spelt - {"--session-id", "--state", "--max-live", "--id"} == set()


def test_the_manual_tells_the_exit_codes_apart() -> None:
    """The codes 0 to 5, each in a row of its own."""
    rows = re.findall(r"^\| ([0-9]) \|", MANUAL, flags=re.MULTILINE)
    assert rows == ["0", "1", "2", "3", "4", "5"]


def test_the_manual_lists_every_configuration_key() -> None:
    """The TOML block of the manual is taken by the program as it is, and names every key it knows."""
    import tomllib

    from agent_mailbox.config import config_file

    page = (DOCS / "configuration.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```toml\n(.*?)```", page, flags=re.DOTALL)
    table, own = (tomllib.loads(block) for block in blocks)
    said = config_file.parse_config(table)
    assert (said["misplaced"], said["faults"]) == ((), ())
    assert config_file.parse_own(own, "/home/me/project/data")["faults"] == ()
    for section, keys in own.items():
        if section != "mailbox":
            table[section] = {**table.get(section, {}), **keys}
    shown = {(section, key) for section, keys in table.items() for key in keys}
    assert shown == {*config_file.MAILBOX, *config_file.PERSONAL}


def test_the_changelog_speaks_of_this_version() -> None:
    """CHANGELOG.md exists and has a section for what is to be released."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"^## \[", text, flags=re.MULTILINE)


def test_readme_is_read_in_five_minutes() -> None:
    """The README has at most 160 lines. It names the pages that hold the rest."""
    assert len(README.splitlines()) <= 160
    assert [page for page in PAGES if f"docs/{page}.md" not in README] == []


def test_readme_s_picture_moves_for_eight_seconds() -> None:
    """It is a real run as ``scripts/moving-picture`` recorded it: the message, *seen*, and the approval are in it."""
    (name,) = re.findall(r"^!\[[^]]+\]\((\S+)\)$", README, flags=re.MULTILINE)
    picture = (ROOT / name).read_text(encoding="utf-8")
    assert len(picture) < 600_000
    assert set(re.findall(r"animation:\w+ ([\d.]+)s", picture)) == {"8.0"}
    shown = re.sub(r"<[^>]+>", "", picture)
    for words in ("ask the architect", "May I add a column", "seen", "agent-mailbox approve perm-", "approved by user"):
        assert words in shown, words


DOCUMENTS = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
INTERNALS = sorted([ROOT / "CONTRIBUTING.md", *(DOCS / "internals").glob("*.md")])


def headings(page: Path) -> list[str]:
    """The anchors of a page's headings, in order; what is in a block of code is none."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return [markdown.anchor(heading) for heading in re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)]


@each("document", DOCUMENTS)
def test_the_files_that_a_page_links_to_exist(document: Path) -> None:
    """Relative links lead somewhere, those to a heading included."""
    text = document.read_text(encoding="utf-8")
    for link in re.findall(r"\]\((?!https?:)([^)\s]+)\)", text):
        name, _, heading = link.partition("#")
        target = (document.parent / name) if name else document
        assert target.exists(), link
        assert not heading or heading in headings(target), link


@each("document", DOCUMENTS)
def test_no_two_headings_of_a_page_have_one_anchor(document: Path) -> None:
    """A Git host and the site number such anchors differently. Of a changelog's releases nobody links to a part."""
    found = [] if document.name == "CHANGELOG.md" else headings(document)
    assert len(found) == len(set(found))


@each("name", pages.GENERATED)
def test_the_generated_pages_are_what_the_program_says(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the terminal's width: ``scripts/docs`` writes them, and what people wrote above stays."""
    kept = (DOCS / name).read_text(encoding="utf-8")
    monkeypatch.setenv("COLUMNS", "40")
    assert pages.renewed(name) == kept, "run scripts/docs"
    assert pages.MARKER in kept
    assert kept.index(pages.MARKER) > 500


@each("name", pages.WITHIN)
def test_the_tables_are_what_the_record_says(name: str) -> None:
    """No hand wrote them: ``scripts/docs`` does, from the tests that ran."""
    assert pages.renewed(name) == (DOCS / name).read_text(encoding="utf-8"), "run scripts/docs"


def test_the_record_of_the_clients_names_tests_that_still_show_it() -> None:
    """Each line's test is there, and still says that it shows this ability; and no line's client is unknown."""
    known = {client.name for client in KNOWN}
    for row in record.read():
        place, _, name = row.test.partition("::")
        source = (ROOT / place).read_text(encoding="utf-8")
        above = source[: source.index(f"def {name}(")].rpartition("\n\n\n")[2]
        assert all(f'"{word}"' in above for word in row.ability.split("/")), row  # a place and what it shows there
        assert row.client in known
        assert row.outcome in (record.PASSED, record.SKIPPED, record.FAILED)


def test_the_commands_page_has_every_command_once() -> None:
    """The commands page has every command once, by the sections of the help. It gives each all options but those that
    every command or the whole group has."""
    page = (DOCS / "commands.md").read_text(encoding="utf-8")
    parts = re.split(r"^#{3,4} `agent-mailbox ([^`]+)`$", page, flags=re.MULTILINE)
    told = dict(zip(parts[1::2], parts[2::2], strict=True))
    assert len(told) == len(parts[1::2])
    assert {" ".join(path) for path in LEAVES} <= told.keys(), "run scripts/docs"
    assert CONTRACT.keys() <= told.keys()
    for path, command in LEAVES.items():
        entry = told[" ".join(path)] + told.get(path[0], "")
        shown = {word for span in re.findall(r"`([^`\n]+)`", entry) for word in re.findall(r"--[a-z-]+", span)}
        assert options(command) - {"--dir", "--json", "-n"} <= shown, path
    assert set(cli.sections) <= set(re.findall(r"^## (.+)$", page, flags=re.MULTILINE))


def test_the_manual_names_every_variable_that_the_program_reads() -> None:
    """``AGENT_MAILBOX_…`` and ``AGENT_SWARM_…`` in the code, but for those of tests and of completion."""
    page = (DOCS / "configuration.md").read_text(encoding="utf-8")
    sources = [*(ROOT / "agent_mailbox").rglob("*.py"), ROOT / "agent_mailbox/clients/agent-mailbox-hook"]
    read = {word for path in sources for word in re.findall(r"\bAGENT_(?:MAILBOX|SWARM)_[A-Z]+\b", path.read_text())}
    assert read - {word for word in read if "_TEST" in word} <= set(re.findall(r"`(AGENT_[A-Z_]+)`", page))


@each("document", INTERNALS)
def test_the_modules_that_a_page_names_are_there(document: Path) -> None:
    """``room/module.py: name`` names a module of the package, and something that it defines."""
    for place, name in re.findall(r"`((?:[a-z_]+/)*[a-z_]+\.py)(?:: (\w+))?`", document.read_text(encoding="utf-8")):
        found = [base / place for base in (ROOT / "agent_mailbox", ROOT, DOCS) if (base / place).exists()]
        alone = [] if "/" in place else [*(ROOT / "agent_mailbox").rglob(place), *(ROOT / "tests").rglob(place)]
        assert found or alone, place
        if name and found:
            defined = rf"^\s*(?:def|class) {name}\b|^{name}\b.* = "
            assert re.search(defined, found[0].read_text(encoding="utf-8"), flags=re.MULTILINE), (place, name)


@each("document", DOCUMENTS)
def test_the_tests_that_a_page_names_are_there(document: Path) -> None:
    """``test_file.py::test_name`` is a test; a name that ends in an ellipsis is the beginning of one."""
    text = document.read_text(encoding="utf-8")
    for place, name, cut in re.findall(r"`((?:\w+/)*test_\w+\.py)::(\w+)(…?)`", text):
        files = [path for path in (ROOT / "tests").rglob(place.rpartition("/")[2]) if str(path).endswith(place)]
        ending = "" if cut else r"\("
        assert any(re.search(rf"^def {name}{ending}", path.read_text(), re.MULTILINE) for path in files), (place, name)


def test_every_risk_of_the_list_has_its_tests() -> None:
    """OWASP's ten risks each have a heading, what is done, at least two tests, and what is not done."""
    parts = re.split(r"^## ", (DOCS / "owasp.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    assert [part[:5] for part in parts] == [f"ASI{n:02}" for n in range(1, 11)]
    for part in parts:
        assert part.count("::test_") >= 2, part[:40]
        assert [word in part for word in ("**We do**", "**Tests**", "**We do not**")] == [True] * 3, part[:40]


def test_every_page_stands_in_the_navigation() -> None:
    """The site lists each page of docs/ once, by section, and README leads to the site's sections."""
    navigation = runpy.run_path(str(DOCS / "conf.py"))
    listed = [page for section in navigation["SECTIONS"].values() for page in section]
    assert sorted(listed) == sorted(str(path.relative_to(DOCS).with_suffix("")) for path in DOCS.rglob("*.md"))


@each("page", written_pages(ROOT))
def test_a_page_is_read_once(page: Path) -> None:
    """No sentence of a page begins oddly or is too long; ``scripts/measure --pages`` lists those that do."""
    assert hard_page_sentences(page) == []
