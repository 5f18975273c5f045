"""Signing in to a mail server by OAuth 2.0: tokens from their issuer, kept in a file, refreshed in time."""
