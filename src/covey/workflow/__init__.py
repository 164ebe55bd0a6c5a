"""The work behind the commands, without a terminal: from a table to a fit in a folder, and to predictions."""
