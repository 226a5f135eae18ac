"""The same shapes in Hugging Face ``transformers``, with random weights."""

import torch
import transformers
from torch import Tensor

from benchmarks.workload import Shape, never_write
from transformer.config import ModelConfig
from transformer.text.tokenizer import END_ID, PAD_ID, START_ID

transformers.utils.logging.set_verbosity_error()

VERSION = transformers.__version__


class Peer:
    """GPT-2 for a decoder-only shape, Marian for an encoder-decoder; ``attention`` is "sdpa" or "eager"."""

    def __init__(self, shape: Shape, *, attention: str) -> None:
        config, make = shape.config, _marian if shape.config.has_encoder else _gpt2
        special = {"bos_token_id": START_ID, "eos_token_id": END_ID, "pad_token_id": PAD_ID}
        shared = {"vocab_size": config.vocabulary_size, "activation_function": config.activation, **special}
        torch.manual_seed(0)
        self.model = make(config, {**shared, "attn_implementation": attention}).eval()
        self.has_encoder = config.has_encoder
        self.inputs = shape.inputs()
        self.masks = [torch.ones_like(ids) for ids in self.inputs]
        never_write(self.model.get_output_embeddings().weight, END_ID)

    @torch.inference_mode()
    def forward(self, *, output_attentions: bool = False) -> object:
        """Run one pass; with ``output_attentions``, check that every attention map was returned."""
        named = {"input_ids": self.inputs[0], "attention_mask": self.masks[0]}
        if self.has_encoder:
            named |= {"decoder_input_ids": self.inputs[1], "decoder_attention_mask": self.masks[1]}
        output = self.model(**named, use_cache=False, output_attentions=output_attentions)
        if output_attentions:
            maps = output.cross_attentions if self.has_encoder else output.attentions
            if not maps or any(layer is None for layer in maps):
                raise RuntimeError("the peer returned no attention maps; make it with attention='eager'")
        return output

    def write(self, n_tokens: int) -> Tensor:
        """Run plain greedy ``generate`` of exactly ``n_tokens`` tokens.

        Raises:
            RuntimeError: If it stopped earlier.
        """
        written = self.model.generate(
            self.inputs[0], attention_mask=self.masks[0], max_new_tokens=n_tokens, do_sample=False, num_beams=1
        )
        new = written.shape[1] - (1 if self.has_encoder else self.inputs[0].shape[1])
        if new != n_tokens:
            raise RuntimeError(f"the peer wrote {new} tokens instead of {n_tokens}")
        return written


def _gpt2(config: ModelConfig, shared: dict[str, object]) -> torch.nn.Module:
    return transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            n_positions=config.max_length,
            n_embd=config.d_model,
            n_layer=config.n_decoder_layers,
            n_head=config.n_heads,
            n_inner=config.d_ff,
            **shared,
        )
    )


def _marian(config: ModelConfig, shared: dict[str, object]) -> torch.nn.Module:
    return transformers.MarianMTModel(
        transformers.MarianConfig(
            max_position_embeddings=config.max_length,
            d_model=config.d_model,
            encoder_layers=config.n_encoder_layers,
            decoder_layers=config.n_decoder_layers,
            encoder_attention_heads=config.n_heads,
            decoder_attention_heads=config.n_heads,
            encoder_ffn_dim=config.d_ff,
            decoder_ffn_dim=config.d_ff,
            scale_embedding=True,
            decoder_start_token_id=START_ID,
            forced_eos_token_id=None,
            **shared,
        )
    )
