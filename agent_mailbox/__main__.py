"""``python -m agent_mailbox``, and what the hooks' launcher starts bare: ``python -I -S …/agent_mailbox/__main__.py``.

No more than that is here: a file that is started is compiled again each time.
"""

import sys

if __name__ == "__main__":
    if not __package__:
        # Started as a file: the package is found beside itself, and looked for there alone, which saves looking through
        # the standard library; then that comes first again. Its own rooms are no packages of their own.
        room = __file__.rpartition("/")[0]
        path = [place for place in sys.path if place != room]
        sys.path[:] = [room.rpartition("/")[0] or "."]
        from agent_mailbox.launch import start

        # A checkout is not among the environment's packages, which a shared mailbox needs; without site nobody else
        # names them.
        version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
        sys.path[:] = [*path, *sys.path, f"{sys.executable.rpartition('/bin/')[0]}/lib/{version}/site-packages"]
    else:
        from agent_mailbox.launch import start

    start()
