"""BERT (Devlin et al. 2019), a post-norm encoder."""

from transformer.families.family import Family
from transformer.families.family_config import FamilyConfig
from transformer.families.values import Values, class_names
from transformer.families.weights import Table, linear, stored

SEGMENTS = "embeddings.token_type_embeddings.weight"


def config(values: Values) -> FamilyConfig:
    """Read the config of a BERT model."""
    values.only("is_decoder", False)
    values.only("position_embedding_type", "absolute")
    names = class_names(values)
    activation = values.activation("hidden_act", default="gelu")
    return FamilyConfig(
        family="bert",
        kind="encoder-only",
        vocabulary_size=values.integer("vocab_size"),
        d_model=values.integer("hidden_size"),
        n_heads=values.integer("num_attention_heads"),
        d_ff=values.integer("intermediate_size"),
        n_encoder_layers=values.integer("num_hidden_layers", most=256),
        n_decoder_layers=0,
        max_length=values.length("max_position_embeddings"),
        positions="learned",
        norm="post",
        activation=activation,
        layer_norm_epsilon=values.number("layer_norm_eps", default=1e-12),
        class_names=names,
        pad_id=values.integer("pad_token_id", default=0, least=0),
        embedding_norm=True,
        n_segments=1,  # at least one; the file may hold more
        head_activation="tanh" if names else activation,
    )


def encoder_table(config: FamilyConfig, *, suffix: str = "") -> Table:
    """Return the table of the embedding and the layers.

    Args:
        config: The config of the model.
        suffix: What follows the names of the three projections, such as ``_proj`` in DeBERTa's ``query_proj``.
    """
    rows = {
        "encoder.embedding.table.weight": stored("embeddings.word_embeddings.weight"),
        "encoder.embedding.position_encoding.table": stored(
            "embeddings.position_embeddings.weight", view=lambda rows: rows[: config.max_length]
        ),
        "encoder.embedding.segment_table.weight": stored(SEGMENTS),
        **linear("encoder.embedding.norm", "embeddings.LayerNorm"),
    }
    for index in range(config.n_encoder_layers):
        ours, theirs = f"encoder.layers.{index}", f"encoder.layer.{index}"
        for part in ("query", "key", "value"):
            rows |= linear(f"{ours}.self_attention.{part}_projection", f"{theirs}.attention.self.{part}{suffix}")
        rows |= linear(f"{ours}.self_attention.output_projection", f"{theirs}.attention.output.dense")
        rows |= linear(f"{ours}.self_attention_norm", f"{theirs}.attention.output.LayerNorm")
        rows |= linear(f"{ours}.feed_forward.input_projection", f"{theirs}.intermediate.dense")
        rows |= linear(f"{ours}.feed_forward.output_projection", f"{theirs}.output.dense")
        rows |= linear(f"{ours}.feed_forward_norm", f"{theirs}.output.LayerNorm")
    return rows


def table(config: FamilyConfig) -> Table:
    """Map our tensors to those of a BERT checkpoint."""
    return encoder_table(config) | {
        **linear("encoder.vocabulary_projection.dense", "cls.predictions.transform.dense"),
        **linear("encoder.vocabulary_projection.norm", "cls.predictions.transform.LayerNorm"),
        "encoder.vocabulary_projection.projection.weight": stored("cls.predictions.decoder.weight"),
        "encoder.vocabulary_projection.projection.bias": stored("cls.predictions.decoder.bias", "cls.predictions.bias"),
        **linear("classifier.dense", "pooler.dense"),
        **linear("classifier.projection", "classifier"),
    }


BERT = Family(config, table, ("bert.",), ("embeddings.word_embeddings.weight",), ("cls.predictions.decoder.weight",))
