"""Reads the text of a mail by the lexicon: its numbers, its topic, its language, and what it does not understand."""
