"""Scenarios: load, mock, run, check, report."""
