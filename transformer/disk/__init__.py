"""Files of any kind: read no further than they can be long, written whole or not at all."""
