"""Every command, imported so that each registers with the program."""

from ..console import console_command as console_command
from ..control import control_commands as control_commands
from ..swarm import swarm_commands as swarm_commands
from ..swarm import swarm_mail_commands as swarm_mail_commands
from ..teams import teams_commands as teams_commands
from . import install_command as install_command
from . import mail as mail
from . import roster_commands as roster_commands
from . import send_commands as send_commands
from . import upkeep as upkeep
