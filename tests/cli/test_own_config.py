"""The person's own configuration: what only it may say, and what becomes of that in a mailbox's file."""

from __future__ import annotations

import re
import subprocess
import tomllib
from typing import TYPE_CHECKING, Any

import pytest

from agent_mailbox import config, config_file, own_config
from agent_mailbox.errors import BadData
from agent_mailbox.store import user_state
from tests.helpers import ROOT, Post, refused

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
    own = own_config.load(str(post.box))
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
    assert config.load(str(post.box)).misplaced == (key,)
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
        *("swarm.messages_per_minute", "swarm.swarm_messages_per_minute", "swarm.joins_per_hour"),
        *("swarm.requests_per_minute", "swarm.body_bytes", "swarm.retry_seconds"),
        *("swarm.connections", "swarm.connections_per_address"),
    }
    assert {f"swarm.{key}" for key in config_file.SWARM} - stays == {k for k in PERSONAL if k.startswith("swarm.")}
    assert {".".join(spot) for spot in config_file.PERSONAL} == set(PERSONAL)
    for key in stays:
        section, _, name = key.partition(".")
        with pytest.raises(BadData, match="must be"):
            config_file.parsed({section: {name: {}}}, "x")


def test_a_mailbox_of_its_own_comes_before_what_is_for_all(post: Post) -> None:
    """By its path, through whatever links; another's table says nothing."""
    (post.scratch / "linked").symlink_to(post.box)
    post.configure(
        '[control]\ndefault = "deny"\ncleanup = ["a"]\n'
        f'[mailbox."{post.scratch / "linked"}".control]\ndefault = "ask"\n'
        '[mailbox."/elsewhere".control]\ncleanup = ["b"]\n'
    )
    own = own_config.load(str(post.box))
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
def test_a_wrong_one_is_named_by_the_doctor_and_where_it_counts(post: Post, text: str, said: str) -> None:
    """With the file and the key; plain mail, which needs none of it, goes on."""
    post.configure(text)
    post.send("ann", "all")
    (problem,) = post.doctor()
    assert problem["file"] == str(post.user_state / "config.toml")
    assert said in problem["what"]
    post.register("boss")
    post.register("worker", "--lead", "boss")
    request = post.ok("control", "request", "shutdown", "worker", "--session", "boss")["request"]["id"]
    answer = post.call("control", "answer", request, "approve", "--session", "worker")
    refused(answer, 3, "config.toml")


def test_no_variable_moves_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is found by the password database: an environment that lies names no program."""
    for name in ("HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, "/lie")
    monkeypatch.delenv(user_state.SWITCH)
    assert not own_config.place().startswith("/lie")
    assert own_config.place().endswith("/.config/agent-mailbox/config.toml")


def test_a_table_that_stands_twice_is_told_with_its_line_and_the_way_out(post: Post) -> None:
    """A command that appends a table, run twice, leaves such a file."""
    post.configure("[swarm]\nca_file = '/x'\n[swarm]\n")
    with pytest.raises(BadData, match=r"config\.toml is not valid TOML: .*line 3") as told:
        own_config.load(str(post.box))
    assert "join the two tables" in told.value.hint


def test_readme_s_own_line_for_the_swarm_may_be_run_again(post: Post) -> None:
    """The file stays valid, and one that has the table stays as it is."""
    (line,) = re.findall(r"^.*'\[swarm\]\\nnetworks.*$", (ROOT / "README.md").read_text(), re.MULTILINE)
    for _ in range(2):
        subprocess.run(["sh", "-c", f"mine={post.scratch}\n{line}"], check=True)
    found = tomllib.loads((post.scratch / "config.toml").read_text())
    assert found == {"swarm": {"networks": ["127.0.0.0/8"]}}
