"""word2vec: one vector a word, learned from the words around it, before there were Transformers."""
