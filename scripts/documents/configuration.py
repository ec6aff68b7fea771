"""The table of docs/configuration.md from the program's own: each key with its type, default and variable.

Belongs here: the meaning of each key, in a sentence. Keys, types and defaults are the program's; a key without a
meaning is an error.
"""

from __future__ import annotations

from typing import Any

from agent_mailbox.config import config_file
from agent_mailbox.config.config import Config
from agent_mailbox.config.own_config import OwnConfig
from agent_mailbox.core import brake, waking
from agent_mailbox.core.address import DEFAULT_TTL
from agent_mailbox.swarm import swarm_settings
from agent_mailbox.upkeep import notify

from .markdown import code, table

MEANINGS = {
    ("ttl", "direct"): "hours until mail to an agent expires",
    ("ttl", "role"): "hours until mail to a role expires",
    ("ttl", "tag"): "hours until mail to a tag expires",
    ("ttl", "broadcast"): "hours until mail to `all` expires",
    ("tags", "namespaces"): "namespaces that tags may have beside `role`, `project`, `concern`, `domain` and `team`",
    ("session", "role"): "the role that a hook registers a new session with",
    ("session", "tags"): "the tags that a hook registers a new session with",
    ("limits", "content_bytes"): "the longest text of a message",
    ("limits", "long_words"): "longer mail is sent with a warning",
    ("limits", "messages_per_minute"): "messages from one sender; the person has no limit",
    ("hook", "tokens"): "the most that a hook shows at once, four characters to a token",
    ("hook", "doorbell"): "mail wakes idle sessions",
    ("control", "timeout"): "seconds that a tool's call waits for its lead",
    ("tasks", "silent"): "minutes without progress or a turn of its holder, after which a task's lead hears of it",
    ("control", "default"): "the answer when a lead does not answer in time: `deny`, or `ask` as the client would",
    ("control", "cleanup"): "the program that runs when an agent agreed to end; no shell",
    ("leases", "enforce"): "no session writes a file that another leases, by the client's tools; else it is warned",
    (
        "notify",
        "command",
    ): "the program that tells you what waits; no shell; `{title}`, `{text}`, `{count}`, `{link}` are filled in",
    ("notify", "ntfy"): "the address of an ntfy topic that is told",
    ("notify", "webhook"): "the address of a Slack-compatible webhook that is told",
    ("notify", "desktop"): "`notify-send` tells you",
    ("notify", "quiet"): "hours in which you are told nothing, as `22:00-07:00`",
    ("notify", "again_minutes"): "minutes until you are told again of what still waits; 0 for never",
    ("notify", "content"): "a notice also says what a request or message says",
    (
        "wake",
        "command",
    ): "the program that starts a frozen agent for mail; no shell; `{session}`, `{client}`, `{cwd}` are filled in",
    ("wake", "per_hour"): "how often it is started within an hour, for all agents together",
    ("wake", "gap_seconds"): "the seconds between two wakes of one idle session by mail; 0: none",
    ("wake", "per_thread"): "how often one thread wakes a session within an hour",
    ("wake", "per_day"): "how often mail wakes a session within a day",
    ("up", "claude"): "how `up` starts Claude Code: the program and its arguments",
    ("up", "codex"): "how `up` starts Codex",
    ("up", "opencode"): "how `up` starts OpenCode",
    ("teams", "bridge"): "a session that leads a team has a bridge of its own",
    ("steward", "max_live"): "live messages above which the steward archives",
    ("steward", "freeze_after_hours"): "hours of silence after which the steward freezes an agent",
    ("steward", "retire_after_days"): "days frozen after which the steward retires an agent",
    ("swarm", "messages_per_minute"): "messages taken from one sender",
    ("swarm", "swarm_messages_per_minute"): "messages taken in one swarm",
    ("swarm", "joins_per_hour"): "requests to join, from one address and of one key",
    ("swarm", "requests_per_minute"): "requests of any kind from one address",
    ("swarm", "body_bytes"): "the largest request",
    ("swarm", "connections"): "connections of peers at once",
    ("swarm", "connections_per_address"): "of these, from one address that is no trusted proxy",
    ("swarm", "retry_seconds"): "the longest pause between two tries to deliver",
    ("swarm", "networks"): "private networks on which peers may be, as `100.64.0.0/10`",
    ("swarm", "private_addresses"): "peers may be on this machine or a private network: for tests",
    ("swarm", "require_join_proof"): "refuse requests to join that are not sealed",
    ("swarm", "ca_file"): "certificates of authorities to believe, beside the system's",
    ("swarm", "wake_url"): "where another program is told of new mail",
    ("swarm", "wake_secret_file"): "the file whose content is sent as `X-Wake-Secret`",
    ("swarm", "trusted_proxies"): "addresses whose `X-Forwarded-For` is believed",
}
"""What each key means, in the order of the page."""
VARIABLES = {
    ("session", "role"): "`AGENT_MAILBOX_ROLE` comes first",
    ("session", "tags"): "`AGENT_MAILBOX_TAGS` adds to them",
}
"""The variables that say the same for one session."""
BOUNDS = {
    ("control", "timeout"): f"{config_file.CONTROL_WAIT_MAX} at most",
    ("hook", "tokens"): f"{config_file.HOOK_TOKENS_MAX} at most",
}


def text() -> str:
    """Return the generated part of the page."""
    known = keys()
    if MEANINGS.keys() != known.keys():
        raise SystemExit(f"keys without a meaning, or the reverse: {sorted(MEANINGS.keys() ^ known.keys())}")
    mailbox = [_row(spot, *known[spot]) for spot in MEANINGS if spot not in config_file.PERSONAL]
    own = [_row(spot, *known[spot]) for spot in MEANINGS if spot in config_file.PERSONAL]
    heads = ("key", "type", "default", "meaning")
    return (
        f"## Every key\n\nIn a mailbox's `config.toml`; the limits of `[swarm]` in your own as well:\n\n"
        f"{table(heads, mailbox)}\n\nIn your own configuration alone:\n\n{table(heads, own)}\n"
    )


def keys() -> dict[tuple[str, str], tuple[str, Any]]:
    """Return each key's type and default, as the program has them."""
    shared, own = Config(), OwnConfig()
    gateway, limits = swarm_settings.settings_of(shared, own), brake.Limits()
    defaults: dict[tuple[str, str], Any] = {
        **{("ttl", mode): hours or "none" for mode, hours in DEFAULT_TTL.items()},
        ("tags", "namespaces"): (),
        ("notify", "again_minutes"): notify.AGAIN,
        ("wake", "per_hour"): waking.PER_HOUR,
        ("wake", "gap_seconds"): limits.gap // 1000,
        ("wake", "per_thread"): limits.per_thread,
        ("wake", "per_day"): limits.per_day,
    }
    unset = {"list of texts": (), "true or false": False}
    found = {}
    for known, values in ((config_file.MAILBOX, shared), (config_file.PERSONAL, own)):
        for spot, (field, kind) in known.items():
            default = unset.get(kind.type) if field in ("notify", "wake", "up") else getattr(values, field)
            default = getattr(gateway, spot[1]) if field == "swarm" else default
            found[spot] = kind.type, defaults.get(spot, default)
    return found


def _row(spot: tuple[str, str], kind: str, default: Any) -> tuple[str, ...]:
    section, key = spot
    types = f"{kind}, {BOUNDS[spot]}" if spot in BOUNDS else kind
    meaning = f"{MEANINGS[spot]}; {VARIABLES[spot]}" if spot in VARIABLES else MEANINGS[spot]
    return code(f"[{section}] {key}"), types, _shown(default), meaning


def _shown(value: Any) -> str:
    """Return a default as TOML writes it."""
    if value is None or value == ():
        return "none"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f'`"{value}"`' if isinstance(value, str) else f"`{value:g}`" if isinstance(value, float) else f"`{value}`"
