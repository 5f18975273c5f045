"""What happened: one value for a result, one store of runs, and what is known of a run. Reports are its readers."""
