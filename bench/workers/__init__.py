"""Worker processes: each measures one workload on one store and prints the result as JSON."""
