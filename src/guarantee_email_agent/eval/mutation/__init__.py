"""What the suite notices: faults planted one at a time in a copy of the instruction files."""
