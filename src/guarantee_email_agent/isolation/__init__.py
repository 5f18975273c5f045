"""What Linux offers to keep a process apart, for judges, sandboxes and agents under test, and to end all of it."""
