"""`eval --watch`: after each save what depends on it runs again, and what is different is printed."""
