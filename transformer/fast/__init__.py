"""Faster computation of the same results: fused kernels, a cache of keys and values, decoding steps.

The modules of the paper give the same results without any of this, as tests check.
"""
