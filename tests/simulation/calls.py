"""The calls that the simulation answers, by what they do.

Belongs here: the names of calls in ``agent_mailbox.store.files.system``, and what can happen at each.
"""

from __future__ import annotations

CALLS = (
    *("open", "close", "dup", "read", "pread", "write", "pwrite", "ftruncate", "fsync", "fdatasync", "fstat", "stat"),
    *("lstat", "access", "utime", "chmod", "mkdir", "rmdir", "unlink", "rename", "replace", "link", "listdir"),
    *("scandir", "readlink", "flock", "flock_within", "monotonic", "time_ns", "booted", "sleep", "sched_yield"),
    *("watched", "readable", "urandom", "getpid", "geteuid", "getcwd", "kill", "sysconf", "home", "real_path"),
    *("absolute", "at_home", "stream", "library_lock", "marks", "statvfs"),
)
"""The calls that the simulation answers. Any other that the product made would end the run."""
SILENT = {
    *("booted", "getpid", "geteuid", "getcwd", "sysconf", "home", "real_path", "absolute", "at_home", "stream"),
    *("library_lock", "marks", "statvfs"),
}
"""Those of them at which nothing can happen: they tell a constant, or consist of other calls."""
LOOKS = ("stat", "lstat", "scandir")
"""Calls that look at a name. They fail where our code makes them: a shell's test cannot tell that from "not newer"."""
CAN_FAIL = ("write", "pwrite", "open", "pread", "rename", "unlink", "mkdir", "listdir", "link", "ftruncate", *LOOKS)
"""Calls that are made to fail, beside the syncs."""
DOUBTED = {"rename", "link", "fsync", "fdatasync"}
"""Calls behind which a power failure takes something else than before."""
PURE = {"register_at_fork", "fspath", "WIFEXITED", "WEXITSTATUS"}
"""Functions of that module that the simulation leaves as they are."""
