"""A new scenario from a real mail: personal data replaced, what happens now recorded."""
