#!/usr/bin/env python3
"""The mail commands from a plain checkout: ``python3 scripts/agent_mailbox.py send --from ID --to ADDR …``."""

import os
import sys

# This file has the package's name: its own directory must not come first on the path.
sys.path[0] = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))

from agent_mailbox.launch import main  # noqa: E402 - by the path above
from agent_mailbox.store.files.paths import DATA, find  # noqa: E402 - by the path above

if __name__ == "__main__":
    # From anywhere: where there is no mailbox around, the checkout's own.
    if find(os.getcwd()) is None:
        os.environ.setdefault("AGENT_MAILBOX_DIR", os.path.join(sys.path[0], DATA))
    sys.exit(main(sys.argv[1:]))
