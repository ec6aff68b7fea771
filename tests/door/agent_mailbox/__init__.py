"""The package as tests start it: the product's own, with the switches of tests (``tests/door/switches.py``).

``PYTHONPATH=tests/door python -m agent_mailbox …`` comes through here, as does this directory's ``__main__.py``. The
product knows nothing of it: an installed command has no such door.
"""

import sys
from posix import readlink

_DOOR = __file__.removesuffix("/agent_mailbox/__init__.py")
try:
    _DOOR = readlink(f"{_DOOR}/agent_mailbox").removesuffix("/agent_mailbox")  # a test links to it from elsewhere
except OSError:
    pass
__path__ = [f"{_DOOR.removesuffix('/tests/door')}/agent_mailbox"]
__file__ = f"{__path__[0]}/__init__.py"
exec(type(__spec__.loader)(__name__, __file__).get_code(__name__))  # the product's own, compiled as it is

if "switches" not in sys.modules:
    sys.path[:0] = [_DOOR, sys._stdlib_dir]  # a bare start has the package's directory alone there
    import switches

    del sys.path[:2]
    switches.switch_as_imported()
