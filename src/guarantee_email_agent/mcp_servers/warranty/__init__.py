"""The warranty server: looks serial numbers up in a list."""
