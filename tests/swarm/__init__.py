"""The swarm door, from its pure inside to processes on loopback."""
