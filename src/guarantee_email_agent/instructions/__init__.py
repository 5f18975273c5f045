"""Markdown instruction files: read, checked, and turned into objects the agent works from."""
