"""The paper's model and a Llama, tiny and with random weights, for comparing their structure."""

from typing import Any

import torch
from torch import nn

from transformer.config import ModelConfig
from transformer.files.build import random_model
from transformer.guests.opening import guest_of
from transformer.models import Model

LLAMA: dict[str, Any] = {
    "vocab_size": 256,
    "hidden_size": 64,
    "intermediate_size": 176,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "rms_norm_eps": 1e-5,
}
PAPER = ModelConfig(
    kind="encoder-decoder",
    vocabulary_size=256,
    d_model=64,
    n_heads=8,
    d_ff=256,
    n_encoder_layers=2,
    n_decoder_layers=2,
    max_length=128,
    norm="post",
)


def paper_model(seed: int = 0) -> Model:
    """Return the model of Vaswani et al. 2017, eight times narrower; a seed determines its weights."""
    return random_model(PAPER, seed=seed)


def tiny_llama(seed: int = 0) -> Model:
    """Return a Llama (Touvron et al. 2023) of ``transformers`` with shared key heads.

    Matrices are drawn from N(0, 1/inputs); the norms' γ is 1.
    """
    from transformers import LlamaConfig, LlamaForCausalLM

    network = LlamaForCausalLM(LlamaConfig(**LLAMA))
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=parameter.shape[-1] ** -0.5, generator=generator)
    return guest_of(network)
