"""What an attention map holds: its arithmetic, the vectors behind its weights, where its scores come from, rollout."""
