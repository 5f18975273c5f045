"""The ticketing server: keeps tickets in an SQLite database."""
