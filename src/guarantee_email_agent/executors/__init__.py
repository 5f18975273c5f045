"""Where the pieces of a run are worked on: processes of this machine, or a Ray cluster."""
