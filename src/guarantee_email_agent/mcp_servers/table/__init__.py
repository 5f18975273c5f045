"""The table server: looks numbers up in a table that somebody keeps."""
