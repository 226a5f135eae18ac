"""GPT-2 (Radford et al. 2019): pre-norm, learned positions, GELU by tanh, transposed matrices."""

from transformer.families.family import Family
from transformer.families.family_config import FamilyConfig
from transformer.families.values import Values
from transformer.families.weights import Table, linear, stored, transposed


def config(values: Values) -> FamilyConfig:
    """Read the config of a GPT-2 model."""
    width, n_heads = values.integer("n_embd", "hidden_size", default=768), values.integer("n_head", default=12)
    n_layers = values.integer("n_layer", "num_hidden_layers", default=12, most=256)
    scale = (width // n_heads) ** -0.5 if values.flag("scale_attn_weights", default=True) else 1.0
    by_layer = values.flag("scale_attn_by_inverse_layer_idx", default=False)
    return FamilyConfig(
        family="gpt2",
        kind="decoder-only",
        vocabulary_size=values.integer("vocab_size", default=50257),
        d_model=width,
        n_heads=n_heads,
        d_ff=values.integer("n_inner", default=4 * width),
        n_encoder_layers=0,
        n_decoder_layers=n_layers,
        max_length=values.length("n_positions", "n_ctx", default=1024),
        positions="learned",
        norm="pre",
        activation=values.activation("activation_function", default="gelu_new"),
        layer_norm_epsilon=values.number("layer_norm_epsilon", default=1e-5),
        attention_scale=tuple(scale / (layer + 1 if by_layer else 1) for layer in range(n_layers)),
        final_norm=True,
    )


def table(config: FamilyConfig) -> Table:
    """Map our tensors to the stored ones."""
    rows = {
        "decoder.embedding.table.weight": stored("wte.weight"),
        "decoder.embedding.position_encoding.table": stored("wpe.weight"),
        "decoder.vocabulary_projection.weight": stored("lm_head.weight"),
        **linear("decoder.final_norm", "ln_f"),
    }
    for index in range(config.n_decoder_layers):
        ours, theirs = f"decoder.layers.{index}", f"h.{index}"
        rows |= linear(f"{ours}.self_attention_norm", f"{theirs}.ln_1")
        rows |= linear(f"{ours}.feed_forward_norm", f"{theirs}.ln_2")
        for block, part in enumerate(("query", "key", "value")):
            rows |= _column_block(f"{ours}.self_attention.{part}_projection", f"{theirs}.attn.c_attn", block)
        rows |= _transposed(f"{ours}.self_attention.output_projection", f"{theirs}.attn.c_proj")
        rows |= _transposed(f"{ours}.feed_forward.input_projection", f"{theirs}.mlp.c_fc")
        rows |= _transposed(f"{ours}.feed_forward.output_projection", f"{theirs}.mlp.c_proj")
    return rows


def _transposed(ours: str, theirs: str) -> Table:
    return {
        f"{ours}.weight": stored(f"{theirs}.weight", view=transposed),
        f"{ours}.bias": stored(f"{theirs}.bias"),
    }


def _column_block(ours: str, theirs: str, block: int) -> Table:
    """Map one of the three blocks, queries, keys or values, of a matrix [model, 3 · model]."""
    return {
        f"{ours}.weight": stored(f"{theirs}.weight", view=lambda matrix: matrix.chunk(3, dim=1)[block].T),
        f"{ours}.bias": stored(f"{theirs}.bias", view=lambda vector: vector.chunk(3)[block]),
    }


GPT2 = Family(config, table, ("transformer.",), ("wte.weight",), ("lm_head.weight",))
