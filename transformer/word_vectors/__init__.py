"""word2vec: one vector per word, learned from its neighbouring words, as before Transformers."""
