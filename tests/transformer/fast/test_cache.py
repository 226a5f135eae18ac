"""The cache of keys and values during decoding."""

from __future__ import annotations

import torch

from tests.transformer.tiny import random_model
from transformer.fast.cache import AttentionCache, DecoderCache


def test_caches_grow_or_stay() -> None:
    key = torch.randn(1, 2, 3, 4)
    growing, fixed = AttentionCache(), AttentionCache(fixed=True)
    for cache in (growing, fixed):
        assert cache.length == 0
        assert not cache.complete
        cache.append(key, key)
    growing.append(key[:, :, :1], key[:, :, :1])
    assert (growing.length, growing.complete) == (4, False)
    assert (fixed.length, fixed.complete) == (3, True)


def test_every_attention_of_a_decoder_has_a_cache_of_its_own() -> None:
    model = random_model("encoder-decoder")
    cache = DecoderCache(model.decoder)
    layers = model.decoder.layers
    own = [cache.of(attention) for layer in layers for attention in (layer.self_attention, layer.cross_attention)]
    assert len(set(map(id, own))) == 2 * len(layers) and [one.fixed for one in own] == [False, True] * len(layers)
    assert cache.of(model.encoder.layers[0].self_attention) is None
    assert cache.length == 0
