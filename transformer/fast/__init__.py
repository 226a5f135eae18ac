"""What exists for speed only: torch's fused kernels, the cache of keys and values, and a step of writing.

The modules beside the paper compute the same without any of it, and tests hold the two equal.
"""
