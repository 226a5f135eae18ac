"""App server, browser and simulated visitors for tests and benchmarks."""
