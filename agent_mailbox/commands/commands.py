"""The modules of the commands; each registers its own with the program when it is imported.

Belongs here: which module has a command. One command needs one module: all of them take longer to import than most
commands take to run.
"""

from ..cli.group import SECTIONS


def load_command(name: str) -> None:
    """Import the module of a command; an unknown name has none."""
    match name:
        case "send" | "reply":
            from . import send_commands as send_commands
        case "roster" | "mute" | "unmute":
            from . import roster_commands as roster_commands
        case "install" | "uninstall":
            from . import install_command as install_command
        case "help":
            from . import help_command as help_command
        case "setup" | "up" | "down":
            from . import setup_command as setup_command
        case "hook" | "init" | "steward" | "doctor" | "backup" | "restore" | "export" | "notify":
            from . import upkeep as upkeep
        case "control" | "task" | "handover" | "note" | "approve" | "deny" | "pending":
            from . import control_commands as control_commands
        case "lease":
            from . import lease_commands as lease_commands
        case "watch":
            from . import watch_commands as watch_commands
        case "teams":
            from . import teams_commands as teams_commands
        case "swarm":
            from ..swarm import swarm_commands as swarm_commands
            from ..swarm import swarm_mail_commands as swarm_mail_commands
            from ..swarm import swarm_pair_commands as swarm_pair_commands
            from ..swarm import swarm_state_commands as swarm_state_commands
        case "engine":
            from . import engine_commands as engine_commands
        case "console":
            from . import console_command as console_command
        case "mcp":
            from . import mcp_command as mcp_command
        case name if name in SECTIONS["Mail"]:
            from . import mail as mail


def load_all() -> None:
    """Import every command's module."""
    for names in SECTIONS.values():
        for name in names:
            load_command(name)
