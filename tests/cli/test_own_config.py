"""The person's own configuration: what only it may say, and what becomes of that in a mailbox's file."""

from __future__ import annotations

import re
import subprocess
import tomllib
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox.config import config, config_file, own_config
from agent_mailbox.mailbox.open_mailbox import OpenMailbox
from tests.door import switches
from tests.helpers import ROOT, Post

if TYPE_CHECKING:
    from collections.abc import Mapping

PERSONAL: Mapping[str, tuple[str, Any]] = {
    "control.cleanup": ('["touch", "ran"]', ("touch", "ran")),
    "control.default": ('"ask"', "ask"),
    "teams.bridge": ("true", True),
    "leases.enforce": ("true", True),
    "notify.command": ('["tell", "{text}"]', ("tell", "{text}")),
    "notify.ntfy": ('"http://127.0.0.1:1/t"', "http://127.0.0.1:1/t"),
    "notify.webhook": ('"https://127.0.0.1:1/t"', "https://127.0.0.1:1/t"),
    "notify.desktop": ("true", True),
    "notify.quiet": ('"22:00-07:00"', "22:00-07:00"),
    "notify.again_minutes": ("5", 5),
    "notify.content": ("true", True),
    "wake.command": ('["again", "{session}"]', ("again", "{session}")),
    "wake.per_hour": ("5", 5),
    "wake.gap_seconds": ("0", 0),
    "wake.per_thread": ("5", 5),
    "wake.per_day": ("5", 5),
    "up.claude": ('["again"]', ("again",)),
    "up.codex": ('["again", "-x"]', ("again", "-x")),
    "up.opencode": ('["again"]', ("again",)),
    "swarm.wake_url": ('"http://127.0.0.1:1"', "http://127.0.0.1:1"),
    "swarm.wake_secret_file": ('"/etc/passwd"', "/etc/passwd"),
    "swarm.ca_file": ('"/x"', "/x"),
    "swarm.trusted_proxies": ('["10.0.0.1"]', ("10.0.0.1",)),
    "swarm.private_addresses": ("true", True),
    "swarm.networks": ('["100.64.0.0/10"]', ("100.64.0.0/10",)),
    "swarm.require_join_proof": ("true", True),
}
FIELDS = {
    "control.cleanup": "cleanup",
    "control.default": "control_default",
    "teams.bridge": "bridge",
    "leases.enforce": "lease_enforce",
}


def written(key: str, value: str) -> str:
    """A file that sets the key."""
    section, _, name = key.partition(".")
    return f"[{section}]\n{name} = {value}\n"


def found(post: Post, key: str) -> Any:
    """What counts for the mailbox."""
    own = own_config.load_own_config(str(post.box))
    section, _, name = key.partition(".")
    return getattr(own, FIELDS[key]) if key in FIELDS else getattr(own, section).get(name)


@pytest.mark.parametrize("key", PERSONAL)
def test_a_mailbox_s_file_names_no_program_url_network_or_permission(post: Post, key: str) -> None:
    """There it is passed by, with a warning and a problem of the doctor's; no mail stops. The person's own counts."""
    text, value = PERSONAL[key]
    post.register("ann")
    post.file("config.toml").write_text(written(key, text) + ("" if "swarm" in key else "[ttl]\ntag = 5\n"))
    post.file("config.toml").chmod(0o600)
    assert found(post, key) != value
    assert config.load_config(str(post.box)).misplaced == (key,)
    result = post.call("send", "--from", "ann", "--to", "all", "--body", "x")
    assert result.rc == 0
    (warning,) = result.warnings
    assert key in warning
    assert str(post.user_state / "config.toml") in warning
    (problem,) = post.doctor()
    assert key in problem["what"]
    post.file("config.toml").unlink()
    post.configure(written(key, text))
    assert found(post, key) == value
    assert post.doctor() == []


def test_all_that_a_mailbox_may_still_set_is_known() -> None:
    """A new key is decided upon here: a mailbox's file may say how long, how much and which words, and no more."""
    stays = {
        *("ttl.direct", "ttl.role", "ttl.tag", "ttl.broadcast", "tags.namespaces", "session.role", "session.tags"),
        *("limits.content_bytes", "limits.long_words", "limits.messages_per_minute", "hook.tokens", "hook.doorbell"),
        *("control.timeout", "steward.max_live", "steward.freeze_after_hours", "steward.retire_after_days"),
        "tasks.silent",
        *("swarm.messages_per_minute", "swarm.swarm_messages_per_minute", "swarm.joins_per_hour"),
        *("swarm.requests_per_minute", "swarm.body_bytes", "swarm.retry_seconds"),
        *("swarm.connections", "swarm.connections_per_address"),
    }
    assert {".".join(spot) for spot in config_file.MAILBOX} == stays
    assert {".".join(spot) for spot in config_file.PERSONAL} == set(PERSONAL)
    for key in stays:
        section, _, name = key.partition(".")
        (fault,) = config_file.parse_config({section: {name: {}}})["faults"]
        assert fault.text.startswith(f"{key} must be")


def test_true_and_false_are_no_numbers() -> None:
    """Python takes ``False`` for 0: ``notify.again_minutes = false`` counted as "never"."""
    for spot, (_, kind) in {**config_file.MAILBOX, **config_file.PERSONAL}.items():
        assert {*map(kind.is_met, (True, False))} == {kind.type == "true or false"}, spot


def test_a_mailbox_s_own_table_comes_before_what_is_for_all(post: Post) -> None:
    """A mailbox's own table, found by its real path, overrides the settings for all mailboxes."""
    (post.scratch / "linked").symlink_to(post.box)
    post.configure(
        '[control]\ndefault = "deny"\ncleanup = ["a"]\n'
        f'[mailbox."{post.scratch / "linked"}".control]\ndefault = "ask"\n'
        '[mailbox."/elsewhere".control]\ncleanup = ["b"]\n'
    )
    own = own_config.load_own_config(str(post.box))
    assert (own.control_default, own.cleanup) == ("ask", ("a",))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[control]\ndefault = "allow"', "control.default"),
        ("[control]\ncleanup = 5", "control.cleanup"),
        ("[ttl]\ndirect = 5", "ttl.direct"),
        ("[teams]\nbridge = 1", "teams.bridge"),
        ('[notify]\ncommand = "tell me"', "notify.command"),
        ('[notify]\nntfy = "file:///etc/passwd"', "notify.ntfy"),
        ('[notify]\nquiet = "22-7"', "notify.quiet"),
        ("mailbox = 5", "mailbox"),
        ("[control", "TOML"),
    ],
)
def test_a_wrong_setting_is_named_by_the_doctor_and_where_it_counts(post: Post, text: str, said: str) -> None:
    """The doctor names the file and the key of a wrong setting. Mail goes on, and no program of the file runs."""
    post.configure(text)
    post.send("ann", "all")
    found = post.call("doctor", "--json").json
    (fault,) = [*found["problems"], *(one for one in found.get("notes", ()) if "config.toml" in one["file"])]
    assert fault["file"] == str(post.user_state / "config.toml")
    assert said in fault["what"]
    post.register("boss")
    post.register("worker", "--lead", "boss")
    request = post.ok("control", "request", "shutdown", "worker", "--session", "boss")["request"]["id"]
    answer = post.call("control", "answer", request, "approve", "--session", "worker")
    assert answer.rc == 0
    (warning,) = answer.warnings
    assert said in warning
    assert own_config.load_own_config(str(post.box)).cleanup == ()


BOX = '[mailbox."{box}".{section}]\n{key} = {value}\n'


@pytest.mark.parametrize(
    ("section", "key", "open_value"),
    [("control", "default", '"ask"'), ("leases", "enforce", "false"), ("swarm", "require_join_proof", "false")],
)
@pytest.mark.parametrize("how", ["value", "section", "file", "boxes", "special", "place"])
def test_a_decision_that_nobody_can_read_is_the_closed_one(
    post: Post, section: str, key: str, open_value: str, how: str
) -> None:
    """Whether the value, its table, the table of mailboxes or the whole file is wrong; a sound one counts as it is."""
    sound = f"[{section}]\n{key} = {open_value}\n"

    def counts() -> Any:
        own = own_config.load_own_config(str(post.box))
        return {"control": own.control_default, "leases": own.lease_enforce}.get(section, own.swarm.get(key))

    post.configure(sound)
    assert counts() == {'"ask"': "ask", "false": False}[open_value]
    if how == "place":
        (post.user_state / "config.toml").unlink()
        (post.user_state / "config.toml").mkdir()
    else:
        text = {
            "value": f"[{section}]\n{key} = 5\n",
            "section": f"{section} = 5\n",
            "file": f"{sound}[",
            "boxes": f"mailbox = 5\n{sound}",
            "special": sound + BOX.format(box=post.box, section=section, key=key, value=5),
        }[how]
        post.configure(text)
    assert counts() == ("deny" if section == "control" else True)


def test_an_unknown_key_is_a_note_with_the_key_that_may_be_meant(post: Post) -> None:
    """The doctor notes each unknown key of both configuration files and a key that may be meant. The other keys
    count."""
    post.configure('[control]\ndefault = "ask"\nclean_up = []\n[later]\nx = 1\n[ttl]\ndirect = 5\n')
    post.file("config.toml").write_text("[ttl]\ntag = 5\nbroadcst = 3\n[hooks]\ntokens = 5\n")
    assert own_config.load_own_config(str(post.box)).control_default == "ask"
    assert config.load_config(str(post.box)).ttls["tag"] == 5
    found = post.call("doctor", "--json")
    assert found.rc == 0
    told = [one["what"] for one in found.json["notes"] if one["file"].endswith("config.toml")]
    wanted = ["ttl.broadcast?", "hook.tokens?", "control.cleanup?", "there are [control]", "mailbox's own file"]
    assert [want for want, what in zip(wanted, told, strict=True) if want not in what] == []


def test_no_variable_moves_the_person_s_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is found by the password database: an environment that lies names no program."""
    for name in ("HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, "/lie")
    monkeypatch.delenv(switches.STATE)
    assert not own_config.own_config_path().startswith("/lie")
    assert own_config.own_config_path().endswith("/.config/agent-mailbox/config.toml")


def test_a_fault_of_the_persons_configuration_is_told_once_by_a_process(post: Post) -> None:
    """The configuration is read wherever a setting of it counts."""
    post.configure("[wake]\nper_day = 'many'\n")
    box, told = OpenMailbox(str(post.box)), list[str]()
    box.complain = told.append
    assert box.own == box.own
    assert [one.partition(": ")[0] for one in told] == [own_config.own_config_path()]


def test_a_table_that_stands_twice_is_told_with_its_line_and_the_way_out(post: Post) -> None:
    """A command that appends a table, run twice, leaves such a file."""
    post.configure("[swarm]\nca_file = '/x'\n[swarm]\n")
    (fault,) = own_config.load_own_config(str(post.box)).faults
    assert re.match(r"is not valid TOML .*line 3", fault.text)
    assert "join the two tables" in fault.text


def test_readme_s_own_line_for_the_swarm_may_be_run_again(post: Post) -> None:
    """The file stays valid, and one that has the table stays as it is."""
    (line,) = re.findall(r"^.*'\[swarm\]\\nnetworks.*$", (ROOT / "docs/swarm.md").read_text(), re.MULTILINE)
    for _ in range(2):
        subprocess.run(["sh", "-c", f"mine={post.scratch}\n{line}"], check=True)
    found = tomllib.loads((post.scratch / "config.toml").read_text())
    assert found == {"swarm": {"networks": ["127.0.0.0/8"]}}
