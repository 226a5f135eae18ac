"""What is read from disk and written to it: checkpoints, snapshots, traces, uploads."""
