"""What ``[swarm]`` in ``config.toml`` and in the person's own configuration may set, with its defaults.

Belongs here: the values as the gateway uses them; the keys and their checks are ``config_file``'s, as all keys are.
"""

from __future__ import annotations

from ..config import Config
from ..core.records import Record
from ..own_config import OwnConfig


class GatewaySettings(Record):
    """Limits a minute or an hour (founding text, "Recommended limits"); ``requests_per_minute``: from one address,
    whatever it sends; ``private_addresses``: may peers be on this machine or a private network (never in production);
    ``retry_seconds``: the longest pause between two tries; ``require_join_proof``: must a request to join be sealed
    (the reference's is not)."""

    messages_per_minute: int = 60
    swarm_messages_per_minute: int = 100
    joins_per_hour: int = 10
    requests_per_minute: int = 600
    body_bytes: int = 256 * 1024
    retry_seconds: int = 300
    private_addresses: bool = False
    require_join_proof: bool = False
    ca_file: str | None = None
    wake_url: str | None = None
    wake_secret_file: str | None = None
    trusted_proxies: tuple[str, ...] = ()


def of(config: Config, own: OwnConfig) -> GatewaySettings:
    """Return the settings of a mailbox; what the person says comes first."""
    return GatewaySettings(**{**config.swarm, **own.swarm})
