"""Start the app, a browser and visitors without one: what tests and benchmarks share."""
