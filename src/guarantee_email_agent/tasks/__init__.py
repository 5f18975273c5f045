"""Host-side evaluation: judge the record of a run."""
