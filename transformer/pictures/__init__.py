"""Images as sequences of patches: how they are written, cut and embedded, and the digits to train on."""
