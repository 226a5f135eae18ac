"""Third-party tokenizers: reading and checking their files, and tokenizing with them."""
