"""The post-norm encoders BERT (Devlin et al. 2019), RoBERTa (Liu et al. 2019) and DistilBERT.

DistilBERT: Sanh et al. 2019.
"""

from transformer.families.family import Family
from transformer.families.family_config import FamilyConfig
from transformer.families.values import Values, class_names
from transformer.families.weights import Stored, Table, linear, stored

SEGMENTS = "embeddings.token_type_embeddings.weight"


def bert_config(values: Values) -> FamilyConfig:
    """Read the config of a BERT model."""
    values.only("is_decoder", False)
    values.only("position_embedding_type", "absolute")
    return _config(values, "bert", pad_id=0)


def roberta_config(values: Values) -> FamilyConfig:
    """Read the config of a RoBERTa model."""
    values.only("is_decoder", False)
    values.only("position_embedding_type", "absolute")
    return _config(values, "roberta", pad_id=1)


def _config(values: Values, family: str, *, pad_id: int) -> FamilyConfig:
    names = class_names(values)
    activation = values.activation("hidden_act", default="gelu")
    pad_id = values.integer("pad_token_id", default=pad_id, least=0)
    token_head = "gelu" if family == "roberta" else activation
    return FamilyConfig(
        family=family,
        kind="encoder-only",
        vocabulary_size=values.integer("vocab_size"),
        d_model=values.integer("hidden_size"),
        n_heads=values.integer("num_attention_heads"),
        d_ff=values.integer("intermediate_size"),
        n_encoder_layers=values.integer("num_hidden_layers", most=256),
        n_decoder_layers=0,
        # RoBERTa numbers its positions from the padding id + 1.
        max_length=values.length("max_position_embeddings", offset=pad_id + 1 if family == "roberta" else 0),
        positions="learned",
        position_offset=pad_id + 1 if family == "roberta" else 0,
        norm="post",
        activation=activation,
        layer_norm_epsilon=values.number("layer_norm_eps", default=1e-12),
        class_names=names,
        pad_id=pad_id,
        embedding_norm=True,
        n_segments=1,  # at least one; the file may hold more
        head_activation="tanh" if names else token_head,
    )


def distilbert_config(values: Values) -> FamilyConfig:
    """Read the config of a DistilBERT model."""
    names = class_names(values)
    activation = values.activation("activation", default="gelu")
    return FamilyConfig(
        family="distilbert",
        kind="encoder-only",
        vocabulary_size=values.integer("vocab_size"),
        d_model=values.integer("dim"),
        n_heads=values.integer("n_heads"),
        d_ff=values.integer("hidden_dim"),
        n_encoder_layers=values.integer("n_layers", most=256),
        n_decoder_layers=0,
        max_length=values.length("max_position_embeddings"),
        positions="learned",
        norm="post",
        activation=activation,
        layer_norm_epsilon=1e-12,
        class_names=names,
        pad_id=values.integer("pad_token_id", default=0, least=0),
        embedding_norm=True,
        head_activation="relu" if names else activation,
    )


def encoder_table(config: FamilyConfig, *, suffix: str = "") -> Table:
    """Return the table of the embedding and the layers.

    Args:
        config: The config of the model.
        suffix: What follows the names of the three projections, such as ``_proj`` in DeBERTa's ``query_proj``.
    """
    rows = {
        "encoder.embedding.table.weight": stored("embeddings.word_embeddings.weight"),
        "encoder.embedding.position_encoding.table": positions(config, "embeddings.position_embeddings.weight"),
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


def positions(config: FamilyConfig, name: str) -> Stored:
    """Return the rows of the position table that the model reads."""
    first = config.position_offset
    return stored(name, view=lambda rows: rows[first : first + config.max_length])


def bert_table(config: FamilyConfig) -> Table:
    """Map our tensors to those of a BERT checkpoint."""
    return encoder_table(config) | {
        **linear("encoder.vocabulary_projection.dense", "cls.predictions.transform.dense"),
        **linear("encoder.vocabulary_projection.norm", "cls.predictions.transform.LayerNorm"),
        "encoder.vocabulary_projection.projection.weight": stored("cls.predictions.decoder.weight"),
        "encoder.vocabulary_projection.projection.bias": stored("cls.predictions.decoder.bias", "cls.predictions.bias"),
        **linear("classifier.dense", "pooler.dense"),
        **linear("classifier.projection", "classifier"),
        **linear("next_sentence.dense", "pooler.dense"),
        **linear("next_sentence.projection", "cls.seq_relationship"),
    }


def roberta_table(config: FamilyConfig) -> Table:
    """Map our tensors to those of a RoBERTa checkpoint."""
    return encoder_table(config) | {
        **linear("encoder.vocabulary_projection.dense", "lm_head.dense"),
        **linear("encoder.vocabulary_projection.norm", "lm_head.layer_norm"),
        "encoder.vocabulary_projection.projection.weight": stored("lm_head.decoder.weight"),
        "encoder.vocabulary_projection.projection.bias": stored("lm_head.decoder.bias", "lm_head.bias"),
        **linear("classifier.dense", "classifier.dense"),
        **linear("classifier.projection", "classifier.out_proj"),
    }


def distilbert_table(config: FamilyConfig) -> Table:
    """Map our tensors to those of a DistilBERT checkpoint."""
    rows = {
        "encoder.embedding.table.weight": stored("embeddings.word_embeddings.weight"),
        "encoder.embedding.position_encoding.table": positions(config, "embeddings.position_embeddings.weight"),
        **linear("encoder.embedding.norm", "embeddings.LayerNorm"),
        **linear("encoder.vocabulary_projection.dense", "vocab_transform"),
        **linear("encoder.vocabulary_projection.norm", "vocab_layer_norm"),
        **linear("encoder.vocabulary_projection.projection", "vocab_projector"),
        **linear("classifier.dense", "pre_classifier"),
        **linear("classifier.projection", "classifier"),
    }
    for index in range(config.n_encoder_layers):
        ours, theirs = f"encoder.layers.{index}", f"layer.{index}"
        for part, short in (("query", "q"), ("key", "k"), ("value", "v"), ("output", "out")):
            rows |= linear(f"{ours}.self_attention.{part}_projection", f"{theirs}.attention.{short}_lin")
        rows |= linear(f"{ours}.self_attention_norm", f"{theirs}.sa_layer_norm")
        rows |= linear(f"{ours}.feed_forward.input_projection", f"{theirs}.ffn.lin1")
        rows |= linear(f"{ours}.feed_forward.output_projection", f"{theirs}.ffn.lin2")
        rows |= linear(f"{ours}.feed_forward_norm", f"{theirs}.output_layer_norm")
    return rows


_WORDS = ("embeddings.word_embeddings.weight",)
BERT = Family(bert_config, bert_table, ("bert.",), _WORDS, ("cls.predictions.decoder.weight",))
ROBERTA = Family(roberta_config, roberta_table, ("roberta.",), _WORDS, ("lm_head.decoder.weight",))
DISTILBERT = Family(
    distilbert_config, distilbert_table, ("distilbert.", "transformer."), _WORDS, ("vocab_projector.weight",)
)
