"""The clients we know, one module each: how each is told, what it can do, how it is installed."""
