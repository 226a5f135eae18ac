"""T5 (Raffel et al. 2020) and T5 1.1: RMSNorm, a learned bias per distance, unscaled scores."""

from transformer.families.family import Family
from transformer.families.family_config import FamilyConfig
from transformer.families.values import Values
from transformer.families.weights import Table, linear, stored, transposed

# T5's "gated-gelu" is the tanh approximation.
_PROJECTIONS = {"gated-gelu": "gated-gelu_new"}
_ATTENTIONS = (("self_attention", "SelfAttention"), ("cross_attention", "EncDecAttention"))


def config(values: Values) -> FamilyConfig:
    """Read the config of a T5 model."""
    width, n_layers = values.integer("d_model", default=512), values.integer("num_layers", default=6, most=256)
    n_decoder_layers = values.integer("num_decoder_layers", default=n_layers, most=256)
    spoken = str(values.get("feed_forward_proj", "relu"))
    gate, _, activation = _PROJECTIONS.get(spoken, spoken).rpartition("-")
    values.only("feed_forward_proj", *([spoken] if gate in ("", "gated") else ["relu", "gated-gelu"]))
    # Logits are scaled where E and the projection are tied. Files indicate this in one of two ways.
    scaled = values.get("scale_decoder_outputs", values.get("tie_word_embeddings", True)) is not False
    return FamilyConfig(
        family="t5",
        kind="encoder-decoder",
        vocabulary_size=values.integer("vocab_size"),
        d_model=width,
        n_heads=values.integer("num_heads", default=8),
        d_ff=values.integer("d_ff", default=2048),
        n_encoder_layers=n_layers,
        n_decoder_layers=n_decoder_layers,
        max_length=values.length("n_positions", default=512),
        positions="relative",
        norm="pre",
        activation=Values({"feed_forward_proj": activation}).activation("feed_forward_proj", default="relu"),
        layer_norm_epsilon=values.number("layer_norm_epsilon", default=1e-6),
        pad_id=values.integer("pad_token_id", default=0, least=0),
        head_width=values.integer("d_kv", default=64),
        attention_scale=(1.0,) * max(n_layers, n_decoder_layers),
        query_bias=False,
        output_bias=False,
        feed_forward_bias=False,
        gated=gate == "gated",
        rms_norm=True,
        final_norm=True,
        logit_scale=width**-0.5 if scaled else 1.0,
        n_buckets=values.integer("relative_attention_num_buckets", default=32, least=4),
        max_distance=values.integer("relative_attention_max_distance", default=128, least=2),
    )


def table(config: FamilyConfig) -> Table:
    """Map our tensors to the stored ones."""
    rows = {"decoder.vocabulary_projection.weight": stored("lm_head.weight")}
    first = "wi_1" if config.gated else "wi"
    for stack, n_layers in (("encoder", config.n_encoder_layers), ("decoder", config.n_decoder_layers)):
        bias = f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        rows |= {
            f"{stack}.embedding.table.weight": stored(f"{stack}.embed_tokens.weight", "shared.weight"),
            f"{stack}.position_bias.table": stored(bias, view=transposed),
            f"{stack}.final_norm.weight": stored(f"{stack}.final_layer_norm.weight"),
        }
        last = 2 if stack == "decoder" else 1
        for index in range(n_layers):
            ours, theirs = f"{stack}.layers.{index}", f"{stack}.block.{index}.layer"
            for place, (mine, other) in enumerate(_ATTENTIONS):
                for part, short in (("query", "q"), ("key", "k"), ("value", "v"), ("output", "o")):
                    rows |= linear(f"{ours}.{mine}.{part}_projection", f"{theirs}.{place}.{other}.{short}")
                rows[f"{ours}.{mine}_norm.weight"] = stored(f"{theirs}.{place}.layer_norm.weight")
            dense = f"{theirs}.{last}.DenseReluDense"
            rows |= linear(f"{ours}.feed_forward.gate_projection", f"{dense}.wi_0")
            rows |= linear(f"{ours}.feed_forward.input_projection", f"{dense}.{first}")
            rows |= linear(f"{ours}.feed_forward.output_projection", f"{dense}.wo")
            rows[f"{ours}.feed_forward_norm.weight"] = stored(f"{theirs}.{last}.layer_norm.weight")
    return rows


T5 = Family(
    config,
    table,
    ("transformer.",),
    ("decoder.embed_tokens.weight", "shared.weight", "encoder.embed_tokens.weight"),
    ("lm_head.weight",),
)
