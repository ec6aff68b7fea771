#!/bin/sh
# Claude Code's SessionStart hook: registers the session and shows it its mail.
exec "$(dirname "$0")/agent-mailbox-hook" session-start
