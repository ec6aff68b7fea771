"""The swarm door: signed mail between machines, peer to peer (Agent Swarm Protocol 0.1.0).

``protocol`` is pure: bytes in, decisions and bytes out. Around it: ``home`` and ``ledger`` keep what this gateway is
and knows, ``gateway`` and ``inbound`` put verified mail into the mailbox, ``outbox`` and ``carrier`` take mail out of
it, ``server`` and ``local`` translate HTTP, ``serve`` runs all of them, ``actions`` is what a person decides. Needs the
extra ``[swarm]``; nothing but the command line imports this package.
"""
