"""The gateway at work: it accepts messages, runs turns under leases, and recovers what a dead process left."""
