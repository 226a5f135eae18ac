"""DeBERTa-v2 and -v3 (He et al. 2021, 2023): disentangled attention, and a convolution in layer 0."""

from transformer.errors import CheckpointError
from transformer.families.bert import encoder_table
from transformer.families.family import Family
from transformer.families.family_config import Disentangled, FamilyConfig
from transformer.families.values import Values, class_names
from transformer.families.weights import Table, linear, stored


def config(values: Values) -> FamilyConfig:
    """Read the config of a DeBERTa model."""
    names = class_names(values)
    width = values.integer("hidden_size")
    activation = values.activation("hidden_act", default="gelu")
    embedding_width = values.integer("embedding_size", default=width)
    if not names and not values.flag("legacy", default=True):
        values.only("embedding_size", width)  # the newer head uses the embedding table unchanged
    values.only("pooler_hidden_size", width)
    values.only("attention_head_size", width // values.integer("num_attention_heads"))
    head = values.activation("pooler_hidden_act", default="gelu") if names else activation
    return FamilyConfig(
        family="deberta-v2",
        kind="encoder-only",
        vocabulary_size=values.integer("vocab_size"),
        d_model=width,
        n_heads=values.integer("num_attention_heads"),
        d_ff=values.integer("intermediate_size"),
        n_encoder_layers=values.integer("num_hidden_layers", most=256),
        n_decoder_layers=0,
        max_length=values.length("max_position_embeddings", default=512),
        positions="learned" if values.flag("position_biased_input", default=True) else "disentangled",
        norm="post",
        activation=activation,
        layer_norm_epsilon=values.number("layer_norm_eps", default=1e-7),
        class_names=names,
        pad_id=values.integer("pad_token_id", default=0, least=0),
        embedding_norm=True,
        embedding_width=embedding_width if embedding_width != width else 0,
        n_segments=values.integer("type_vocab_size", default=0, least=0),
        head_activation=head,
        disentangled=_disentangled(values),
    )


def _disentangled(values: Values) -> Disentangled:
    kinds = values.get("pos_att_type", [])
    kinds = [kind.strip() for kind in kinds.lower().split("|")] if isinstance(kinds, str) else kinds
    if not isinstance(kinds, list) or not set(map(str, kinds)) <= {"c2p", "p2c", ""}:
        raise CheckpointError(
            f"config.json says pos_att_type {repr(kinds)[:80]}; of this family only 'c2p', 'p2c' can be read"
        )
    farthest = values.get("max_relative_positions", -1)
    if not isinstance(farthest, int) or farthest < 1:
        farthest = values.integer("max_position_embeddings", default=512)
    buckets = values.get("position_buckets", -1)
    n_buckets = buckets if isinstance(buckets, int) and buckets > 0 else 0
    norms = [part.strip() for part in str(values.get("norm_rel_ebd", "none")).lower().split("|")]
    kernel = values.integer("conv_kernel_size", default=0, least=0, most=99)
    values.only("conv_act", "tanh", "gelu", "relu")
    return Disentangled(
        span=n_buckets or farthest,
        n_buckets=n_buckets,
        max_distance=farthest,
        norm="layer_norm" in norms,
        relative=values.flag("relative_attention", default=False),
        content_to_position="c2p" in kinds,
        position_to_content="p2c" in kinds,
        share_projections=values.flag("share_att_key", default=False),
        kernel=kernel,
        groups=values.integer("conv_groups", default=1),
        convolution_activation=str(values.get("conv_act", "tanh")),
        legacy_head=values.flag("legacy", default=True),
    )


def table(config: FamilyConfig) -> Table:
    """Map our tensors to the stored ones."""
    # The head has another name in newer files.
    head, output = ("cls.predictions.transform", "cls.predictions.decoder.weight")
    if not config.disentangled.legacy_head:
        head, output = ("lm_predictions.lm_head", "embeddings.word_embeddings.weight")
    bias = ("cls.predictions.decoder.bias", "cls.predictions.bias", "lm_predictions.lm_head.bias")
    rows = encoder_table(config, suffix="_proj") | {
        "encoder.embedding.projection.weight": stored("embeddings.embed_proj.weight"),
        "encoder.relative_embedding.table": stored("encoder.rel_embeddings.weight"),
        **linear("encoder.relative_embedding.norm", "encoder.LayerNorm"),
        **linear("encoder.layers.0.convolution_weights", "encoder.conv.conv"),
        **linear("encoder.layers.0.convolution_norm", "encoder.conv.LayerNorm"),
        **linear("encoder.vocabulary_projection.dense", f"{head}.dense"),
        **linear("encoder.vocabulary_projection.norm", f"{head}.LayerNorm"),
        "encoder.vocabulary_projection.projection.weight": stored(output),
        "encoder.vocabulary_projection.projection.bias": stored(*bias),
        **linear("classifier.dense", "pooler.dense"),
        **linear("classifier.projection", "classifier"),
    }
    for index in range(config.n_encoder_layers):
        for part, short in (("position_key", "pos_key"), ("position_query", "pos_query")):
            ours = f"encoder.layers.{index}.self_attention.{part}_projection"
            rows |= linear(ours, f"encoder.layer.{index}.attention.self.{short}_proj")
    return rows


DEBERTA = Family(
    config, table, ("deberta.",), ("embeddings.word_embeddings.weight",), ("cls.predictions.decoder.weight",)
)
