"""``python -m agent_mailbox``, and what the hooks' launcher starts bare: ``python -I -S …/agent_mailbox/__main__.py``.

No more than that is here: a file that is started is compiled again each time.
"""

import sys

if __name__ == "__main__":
    try:
        if not __package__:
            # Started as a file: the package is found beside itself, and looked for there alone, which saves looking
            # through the standard library; then that comes first again. Its own rooms are no packages of their own.
            room = __file__.rpartition("/")[0]
            path = [place for place in sys.path if place != room]
            sys.path[:] = [room.rpartition("/")[0] or "."]
            from agent_mailbox.launch import start

            # A checkout is not among the environment's packages, which a shared mailbox needs; without site nobody
            # else names them.
            version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
            sys.path[:] = [*path, *sys.path, f"{sys.executable.rpartition('/bin/')[0]}/lib/{version}/site-packages"]
        else:
            from agent_mailbox.launch import start

        start()
    except (ImportError, SyntaxError) as error:
        from posix import environ

        if "shim" in globals() or b"AGENT_MAILBOX_DEBUG" in environ:
            raise  # the shim of the hooks has an answer of its own
        sys.stderr.write(
            f"error: agent-mailbox cannot start: a part of it is missing, as during an upgrade: {error}\n"
            "hint: run it again in a moment; if that fails, install it again: in its checkout, run"
            " `pipx install --force .` (or `uv tool install --force .`)\n"
        )
        sys.exit(5)
