"""Runs in the web browser: pages on loopback that only read."""
