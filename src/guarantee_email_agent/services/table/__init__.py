"""Tables that numbers are looked up in."""
