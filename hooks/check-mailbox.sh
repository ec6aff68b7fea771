#!/bin/sh
# Claude Code's SessionStart hook: registers the session and shows it its unread mail.
exec "${0%/*}/agent-mailbox-hook" SessionStart
