"""Deterministic simulation: the real daemon over simulated services and clocks, every history driven by a seed."""
