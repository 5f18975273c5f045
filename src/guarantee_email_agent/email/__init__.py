"""One mail, from raw to ProcessingResult; no I/O of its own."""
