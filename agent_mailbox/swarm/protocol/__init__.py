"""The protocol without I/O: files, sockets, the clock and chance are elsewhere. ``now`` is passed in, in ms since 1970
UTC."""
