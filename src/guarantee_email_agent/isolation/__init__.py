"""What Linux offers to keep a process apart, for judges and for sandboxes: system calls and their filter."""
