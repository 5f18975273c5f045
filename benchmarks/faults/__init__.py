"""Faults that `planted_faults.py` plants: what they are, where, and how one is tried."""
