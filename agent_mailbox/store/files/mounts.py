"""The kind of file system of a directory, if the system tells it (Linux: proc_pid_mountinfo(5)).

Belongs here: recognising those whose locks, renames or syncs depend on another machine.
"""

from __future__ import annotations

from . import system

MOUNTINFO = "/proc/self/mountinfo"
NETWORK = {
    *("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "lustre", "gfs2", "ocfs2", "virtiofs", "vboxsf"),
    *("fuse.sshfs", "fuse.glusterfs", "fuse.rclone", "fuse.s3fs", "fuse.davfs2", "davfs", "fuse.vmhgfs-fuse"),
}
"""File systems that others may write to behind our back, or that keep locks to one machine. WSL's drives are 9p."""


def doubt(path: str) -> str | None:
    """Return a warning about a path on a network file system; None if it is on another, or on an unknown one."""
    _, kind = _mount(path)
    if kind not in NETWORK:
        return None
    return f"is on a network file system ({kind}): locks and syncs may not hold there; move the mailbox to a local disk"


def point(path: str) -> str:
    """Return the mount point that a path is below, or is; empty if the system does not tell."""
    return _mount(path)[0]


def _mount(path: str) -> tuple[str, str | None]:
    """Return the point and the type of the mount that holds the path: the longest matching one, of equal ones the
    last."""
    try:
        with system.stream(MOUNTINFO, "r", encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().split("\n")
    except OSError:
        lines = []
    path, best, where, found = system.real_path(path), -1, "", None
    for line in lines:
        head, dash, tail = line.partition(" - ")
        fields = head.split(" ")
        if not dash or len(fields) < 6:
            continue
        point = _unescaped(fields[4]).rstrip("/")
        if (path == point or path.startswith(point + "/")) and len(point) >= best:
            best, where, found = len(point), point or "/", tail.split(" ")[0]
    return where, found


def _unescaped(text: str) -> str:
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, char)
    return text
