"""Files that are read and written: checkpoints, snapshots, traces, uploads."""
