"""Who deals with which mail, and how far it has come: one record a mail, in SQLite or PostgreSQL."""
