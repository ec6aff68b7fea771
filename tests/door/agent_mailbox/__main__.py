"""The same for programs that start a file: ``python -I -S tests/door/agent_mailbox/__main__.py``."""

import sys

if __name__ == "__main__":
    room = __file__.rpartition("/")[0]
    sys.path[:] = [room.rpartition("/")[0], *(place for place in sys.path if place != room)]
    from agent_mailbox.launch import start

    start()
