"""Files of any kind: reads are bounded, and writes are complete or absent."""
