"""What the model answered, how sure it was, and what the answer depends on."""
