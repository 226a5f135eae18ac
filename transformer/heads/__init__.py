"""What a head does: its role in a sentence and over a corpus, its circuits, examples, similar heads."""
