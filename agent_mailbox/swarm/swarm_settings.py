"""``[swarm]`` in ``config.toml`` and in the person's own configuration, with its defaults.

Belongs here: the values as the gateway uses them; ``config_file`` checks the keys, as all keys.
"""

from __future__ import annotations

from ..config.config import Config
from ..config.own_config import OwnConfig
from ..core.records import Record
from ..errors import BadData


class GatewaySettings(Record):
    """The gateway's limits a minute or an hour (founding text, "Recommended limits") and its other settings.

    ``requests_per_minute``: from one address, whatever it sends. ``private_addresses``: peers may be on this machine or
    a private network (never in production). ``networks``: private networks, as 100.64.0.0/10, on which peers may be.
    ``retry_seconds``: the longest pause between two tries.
    ``connections`` at once, ``connections_per_address`` of them from one (trusted proxies aside).
    ``require_join_proof``: a request to join must be sealed (the reference's is not).
    """

    messages_per_minute: int = 60
    swarm_messages_per_minute: int = 100
    joins_per_hour: int = 10
    requests_per_minute: int = 600
    body_bytes: int = 256 * 1024
    connections: int = 512
    connections_per_address: int = 32
    retry_seconds: int = 300
    private_addresses: bool = False
    require_join_proof: bool = False
    ca_file: str | None = None
    wake_url: str | None = None
    wake_secret_file: str | None = None
    trusted_proxies: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()


def sound_settings(config: Config, own: OwnConfig) -> GatewaySettings:
    """Return the settings of a mailbox; raises ``BadData`` if one of them is wrong."""
    wrong = [f.text for f in (*config.faults, *own.faults) if f.section in ("", "swarm", "mailbox") and not f.note]
    if wrong:
        raise BadData(wrong[0], "")
    return settings_of(config, own)


def settings_of(config: Config, own: OwnConfig) -> GatewaySettings:
    """Return the settings of a mailbox; what the person says comes first."""
    return GatewaySettings(**{**config.swarm, **own.swarm})
