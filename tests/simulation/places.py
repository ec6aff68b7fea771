"""Where things are on the simulated machine: the mailbox, its logs, the user's state.

Belongs here: paths that commands, judge and models share, and the hours of the configuration there.
"""

from __future__ import annotations

BOX = "/m"
ARCHIVE = f"{BOX}/agent-mailbox-archive"
LIVE = (f"{BOX}/agent-mailbox.jsonl", f"{BOX}/agent-mailbox-reads.jsonl", f"{BOX}/agent-roster.jsonl")
QUIET = f"{BOX}/.cache/quiet/"
STATE = "/home/.local/state/agent-mailbox"
HOURS = (1, 24, 240)
"""How long mail waits in a configuration that is written there, the shortest first."""
