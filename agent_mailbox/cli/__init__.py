"""The command line: parse, one call on the mailbox, render. Text and JSON are two renderers."""
