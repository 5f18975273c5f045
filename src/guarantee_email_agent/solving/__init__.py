"""An agent works on a task in a sandbox, and its run becomes a record."""
