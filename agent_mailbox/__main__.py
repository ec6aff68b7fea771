"""``python -m agent_mailbox``, and what the hooks' launcher starts bare: ``python -I -S …/agent_mailbox/__main__.py``.

No more than that stands here: a file that is started is compiled anew each time.
"""

import sys

if not __package__:  # started as a file: the package is found beside itself
    sys.path.append(__file__.rpartition("/")[0].rpartition("/")[0] or ".")

if __name__ == "__main__":
    from agent_mailbox.launch import start

    start()
