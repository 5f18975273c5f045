"""Which agent has claimed which mail, and how far its processing got: one row a mail, in SQLite or PostgreSQL."""
