"""Starting a client's session in the background, by the client's own way or in a window of tmux.

Belongs here: a module for each way. A session's id is known before its first turn, so that its entry in the roster is
there before.
"""

from __future__ import annotations

from ...known_clients.claude_code import CLAUDE_CODE
from ...known_clients.codex import CODEX
from ...known_clients.opencode import OPENCODE
from .claude_background import has_talk as has_talk
from .claude_background import start_claude
from .claude_background import with_lost as with_lost
from .codex_app_server import is_listening as is_listening
from .codex_app_server import serves_others as serves_others
from .codex_app_server import start_codex
from .opencode_server import start_opencode

WAYS = {CLAUDE_CODE.word: start_claude, CODEX.word: start_codex, OPENCODE.word: start_opencode}
"""The ways to start a session in the background, each by its client's word."""
