"""What every other room may use: errors and logging."""
