"""The servers of a space: accounts, certificates, checks."""
