"""A run for people and programs: every form of report, each a reader of the log."""
