"""GPT-NeoX (Black et al. 2022), the architecture of Pythia: parallel layers, partial rotary positions."""

from transformer.families.family import Family
from transformer.families.family_config import FamilyConfig
from transformer.families.rope import rotary_of
from transformer.families.values import Values
from transformer.families.weights import Table, linear, stored


def config(values: Values) -> FamilyConfig:
    """Read the config of a GPT-NeoX or Pythia model."""
    width, n_heads = values.integer("hidden_size"), values.integer("num_attention_heads")
    n_layers = values.integer("num_hidden_layers", most=256)
    bias = values.flag("attention_bias", default=True)
    rotary = rotary_of(
        values,
        width // n_heads,
        base=values.number("rotary_emb_base", default=10_000.0),  # "rope_theta" beside it is not read
        share=values.number("rotary_pct", default=0.25),
    )
    return FamilyConfig(
        family="gpt_neox",
        kind="decoder-only",
        vocabulary_size=values.integer("vocab_size"),
        d_model=width,
        n_heads=n_heads,
        d_ff=values.integer("intermediate_size"),
        n_encoder_layers=0,
        n_decoder_layers=n_layers,
        max_length=values.length("max_position_embeddings", default=2048),
        positions="rotary",
        norm="pre",
        activation=values.activation("hidden_act", default="gelu"),
        layer_norm_epsilon=values.number("layer_norm_eps", default=1e-5),
        query_bias=bias,
        output_bias=bias,
        block="parallel" if values.flag("use_parallel_residual", default=True) else "sequential",
        final_norm=True,
        rotary=(rotary,) * n_layers,
    )


def table(config: FamilyConfig) -> Table:
    """Map our tensors to the stored ones."""
    rows = {
        "decoder.embedding.table.weight": stored("embed_in.weight"),
        "decoder.vocabulary_projection.weight": stored("embed_out.weight", "lm_head.weight"),
        **linear("decoder.final_norm", "final_layer_norm"),
    }
    for index in range(config.n_decoder_layers):
        ours, theirs = f"decoder.layers.{index}", f"layers.{index}"
        rows |= linear(f"{ours}.self_attention_norm", f"{theirs}.input_layernorm")
        rows |= linear(f"{ours}.feed_forward_norm", f"{theirs}.post_attention_layernorm")
        for place, part in enumerate(("query", "key", "value")):
            joined = f"{theirs}.attention.query_key_value"
            rows |= _part(f"{ours}.self_attention.{part}_projection", joined, place, config)
        rows |= linear(f"{ours}.self_attention.output_projection", f"{theirs}.attention.dense")
        rows |= linear(f"{ours}.feed_forward.input_projection", f"{theirs}.mlp.dense_h_to_4h")
        rows |= linear(f"{ours}.feed_forward.output_projection", f"{theirs}.mlp.dense_4h_to_h")
    return rows


def _part(ours: str, theirs: str, place: int, config: FamilyConfig) -> Table:
    """Map queries, keys or values, which are stored head by head: [head · 3 · channel, model]."""
    shape = (config.n_heads, 3, config.d_head)
    return {
        f"{ours}.weight": stored(
            f"{theirs}.weight", view=lambda matrix: matrix.reshape(*shape, -1)[:, place].flatten(0, 1)
        ),
        f"{ours}.bias": stored(f"{theirs}.bias", view=lambda vector: vector.reshape(shape)[:, place].flatten()),
    }


NEOX = Family(
    config, table, ("gpt_neox.",), ("embed_in.weight",), ("embed_out.weight", "lm_head.weight"), tied_by_default=False
)
