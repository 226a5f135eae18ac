"""One run of a model: its inputs, the recorded pass, the generated text, and edits."""
