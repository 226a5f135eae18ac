"""Training: recipes, corpora, batches, objectives, schedule, and a trainer that can resume."""
