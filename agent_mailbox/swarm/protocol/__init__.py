"""The protocol without I/O: no file, no socket, no clock, no chance. ``now`` is passed in, in ms since 1970 UTC."""
