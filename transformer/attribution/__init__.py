"""Attribution of predictions to inputs and model parts, and the trust in an attention map."""
