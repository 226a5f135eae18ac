"""Training: recipes, corpora, batches, objectives, the schedule, and a trainer that survives a kill."""
