"""Marian (Junczys-Dowmunt et al. 2018), a translator: post-norm, sines before cosines."""

from transformer.families.family import Family
from transformer.families.family_config import FamilyConfig
from transformer.families.values import Values
from transformer.families.weights import Table, linear, stored


def config(values: Values) -> FamilyConfig:
    """Read the config of a Marian model."""
    vocabulary_size, width = values.integer("vocab_size"), values.integer("d_model", default=1024)
    values.only("decoder_vocab_size", vocabulary_size)
    return FamilyConfig(
        family="marian",
        kind="encoder-decoder",
        vocabulary_size=vocabulary_size,
        d_model=width,
        n_heads=values.integer("encoder_attention_heads", default=16),
        d_ff=values.integer("encoder_ffn_dim", default=4096),
        decoder_heads=values.integer("decoder_attention_heads", default=16),
        decoder_d_ff=values.integer("decoder_ffn_dim", default=4096),
        n_encoder_layers=values.integer("encoder_layers", default=12, most=256),
        n_decoder_layers=values.integer("decoder_layers", default=12, most=256),
        max_length=values.length("max_position_embeddings", default=1024),
        positions="sinusoidal",
        norm="post",
        activation=values.activation("activation_function", default="gelu"),
        layer_norm_epsilon=1e-5,
        embedding_scale=width**0.5 if values.flag("scale_embedding", default=False) else 1.0,
        logit_bias=True,
        pad_id=values.integer("pad_token_id", default=vocabulary_size - 1, least=0),
        shared_tables=values.flag("share_encoder_decoder_embeddings", default=True),
    )


def table(config: FamilyConfig) -> Table:
    """Map our tensors to the stored ones."""
    rows = {
        "decoder.vocabulary_projection.weight": stored("lm_head.weight"),
        "decoder.vocabulary_projection.bias": stored("final_logits_bias", view=lambda bias: bias[0]),
    }
    for stack, n_layers in (("encoder", config.n_encoder_layers), ("decoder", config.n_decoder_layers)):
        rows |= {
            f"{stack}.embedding.table.weight": stored(f"{stack}.embed_tokens.weight", "shared.weight"),
            f"{stack}.embedding.position_encoding.table": stored(
                f"{stack}.embed_positions.weight", view=lambda rows: rows[: config.max_length]
            ),
        }
        for index in range(n_layers):
            name = f"{stack}.layers.{index}"
            for mine, other in (("self_attention", "self_attn"), ("cross_attention", "encoder_attn")):
                for part, short in (("query", "q"), ("key", "k"), ("value", "v"), ("output", "out")):
                    rows |= linear(f"{name}.{mine}.{part}_projection", f"{name}.{other}.{short}_proj")
                rows |= linear(f"{name}.{mine}_norm", f"{name}.{other}_layer_norm")
            rows |= linear(f"{name}.feed_forward.input_projection", f"{name}.fc1")
            rows |= linear(f"{name}.feed_forward.output_projection", f"{name}.fc2")
            rows |= linear(f"{name}.feed_forward_norm", f"{name}.final_layer_norm")
    return rows


MARIAN = Family(
    config,
    table,
    ("model.",),
    ("decoder.embed_tokens.weight", "shared.weight", "encoder.embed_tokens.weight"),
    ("lm_head.weight",),
)
