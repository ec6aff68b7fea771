"""The package as tests start it: the product's own, with the switches of tests (``tests/door/switches.py``).

``PYTHONPATH=tests/door python -m agent_mailbox …`` comes through here, as does this directory's ``__main__.py``. The
product knows nothing of it: an installed command has no such door.
"""

import sys
from posixpath import realpath

_DOOR = realpath(__file__).rpartition("/agent_mailbox/")[0]
__path__ = [f"{_DOOR.removesuffix('/tests/door')}/agent_mailbox"]
__file__ = f"{__path__[0]}/__init__.py"
with open(__file__, encoding="utf-8") as _file:
    exec(compile(_file.read(), __file__, "exec"))

if "switches" not in sys.modules:
    sys.path[:0] = [_DOOR, sys._stdlib_dir]  # a bare start has the package's directory alone there
    import switches

    del sys.path[:2]
    switches.switch_as_imported()
