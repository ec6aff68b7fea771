"""Starting a client's session in the background, by the client's own way or in a window of tmux.

Belongs here: a module for each way. A session's id is known before its first turn, so that its entry in the roster is
there before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...known_clients.claude_code import CLAUDE_CODE
from ...known_clients.codex import CODEX
from .claude_background import has_talk as has_talk
from .claude_background import start_claude
from .codex_app_server import is_listening as is_listening
from .codex_app_server import serves_others as serves_others
from .codex_app_server import start_codex
from .opencode_server import start_opencode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .start import Begun, Start


def start_member(start: Start, register: Callable[[str], None], environ: Mapping[str, str]) -> Begun:
    """Start a session in the background, as its client does that."""
    if start.client == CLAUDE_CODE.word:
        return start_claude(start, register, environ)
    return (start_codex if start.client == CODEX.word else start_opencode)(start, register, environ)
