"""``python -m agent_mailbox``, and what the hooks' launcher starts bare: ``python -I -S …/agent_mailbox/__main__.py``.

No more than that stands here: a file that is started is compiled anew each time.
"""

import sys

if __name__ == "__main__":
    if not __package__:
        # Started as a file: the package is found beside itself, and looked for there alone, which saves looking through
        # the standard library; then that comes first again.
        path = sys.path[:]
        sys.path[:] = [__file__.rpartition("/")[0].rpartition("/")[0] or "."]
        from agent_mailbox.launch import start

        sys.path[:0] = path
    else:
        from agent_mailbox.launch import start

    start()
