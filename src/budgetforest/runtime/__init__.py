"""What everything stands on: errors, array types, compiled kernels, threads, random draws, progress."""
