"""The swarm door: signed mail between machines, peer to peer (Agent Swarm Protocol 0.1.0).

``protocol`` is pure: bytes in, decisions and bytes out. ``home`` and ``ledger`` keep the gateway's identity and
membership. ``gateway`` and ``inbound`` put verified mail into the mailbox; ``outbox`` and ``carrier`` take mail out of
it. ``server`` and ``local`` translate HTTP, ``gateway_process`` runs everything, ``decisions`` are the person's. The
room needs the extra ``[swarm]``; only the command line imports it.
"""

EXTRA = ("starlette", "hypercorn", "pydantic", "cryptography", "jwt", "httpx", "h2", "rfc8785", "prometheus_client")
"""The libraries of that extra."""
