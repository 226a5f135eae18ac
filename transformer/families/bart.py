"""BART (Lewis et al. 2020), Marian (Junczys-Dowmunt et al. 2018), M2M-100 and NLLB.

M2M-100: Fan et al. 2021; NLLB: NLLB Team 2022.
"""

from transformer.families.bert import positions
from transformer.families.family import Family
from transformer.families.family_config import FamilyConfig
from transformer.families.values import Values
from transformer.families.weights import Table, linear, stored


def _config(values: Values, family: str, **changes: object) -> FamilyConfig:
    """Return the config that the three families share, with the fields in ``changes`` replaced."""
    width = values.integer("d_model", default=1024)
    scaled = values.flag("scale_embedding", default=family == "m2m_100")
    return FamilyConfig(
        **{
            "family": family,
            "kind": "encoder-decoder",
            "vocabulary_size": values.integer("vocab_size"),
            "d_model": width,
            "n_heads": values.integer("encoder_attention_heads", default=16),
            "d_ff": values.integer("encoder_ffn_dim", default=4096),
            "decoder_heads": values.integer("decoder_attention_heads", default=16),
            "decoder_d_ff": values.integer("decoder_ffn_dim", default=4096),
            "n_encoder_layers": values.integer("encoder_layers", default=12, most=256),
            "n_decoder_layers": values.integer("decoder_layers", default=12, most=256),
            "max_length": values.length("max_position_embeddings", default=1024),
            "norm": "post",
            "activation": values.activation("activation_function", default="relu" if family == "m2m_100" else "gelu"),
            "layer_norm_epsilon": 1e-5,
            "embedding_scale": width**0.5 if scaled else 1.0,
            "logit_bias": family != "m2m_100",
            "pad_id": values.integer("pad_token_id", default=1, least=0),
            **changes,
        }
    )


def bart_config(values: Values) -> FamilyConfig:
    """Read the config of a BART model."""
    return _config(values, "bart", positions="learned", position_offset=2, embedding_norm=True)


def marian_config(values: Values) -> FamilyConfig:
    """Read the config of a Marian model."""
    vocabulary_size = values.integer("vocab_size")
    values.only("decoder_vocab_size", vocabulary_size)
    return _config(
        values,
        "marian",
        positions="sinusoidal",
        position_steps=values.integer("d_model", default=1024) / 2,
        pad_id=values.integer("pad_token_id", default=vocabulary_size - 1, least=0),
        shared_tables=values.flag("share_encoder_decoder_embeddings", default=True),
    )


def m2m_config(values: Values) -> FamilyConfig:
    """Read the config of an M2M-100 or NLLB model."""
    pad_id = values.integer("pad_token_id", default=1, least=0)
    return _config(
        values,
        "m2m_100",
        positions="sinusoidal",
        position_offset=pad_id + 1,
        position_steps=values.integer("d_model", default=1024) // 2 - 1,
        norm="pre",
        final_norm=True,
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
            f"{stack}.embedding.position_encoding.table": positions(config, f"{stack}.embed_positions.weight"),
            **linear(f"{stack}.embedding.norm", f"{stack}.layernorm_embedding"),
            **linear(f"{stack}.final_norm", f"{stack}.layer_norm"),
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


_EMBEDDING = ("decoder.embed_tokens.weight", "shared.weight", "encoder.embed_tokens.weight")
BART = Family(bart_config, table, ("model.",), _EMBEDDING, ("lm_head.weight",))
MARIAN = Family(marian_config, table, ("model.",), _EMBEDDING, ("lm_head.weight",))
M2M100 = Family(m2m_config, table, ("model.",), _EMBEDDING, ("lm_head.weight",))
