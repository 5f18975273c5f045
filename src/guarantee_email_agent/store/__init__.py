"""What happened: every run with its results, kept in one SQLite file."""
