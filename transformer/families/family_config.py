"""The configuration of third-party families: everything in which they differ from the paper."""

from __future__ import annotations

from dataclasses import dataclass

from transformer.config import ModelConfig
from transformer.errors import CheckpointError
from transformer.variants.partial_rotary import Rotary
from transformer.variants.rotary_scaling import LongRope


@dataclass(frozen=True)
class FamilyConfig(ModelConfig):
    """A ``ModelConfig`` of a third-party checkpoint, with options that the paper's model lacks.

    Attributes:
        family: Hugging Face's ``model_type``.
        head_width: d_k where it is not d_model / n_heads.
        n_key_heads: Number of heads of keys and values; 0 for the paper's attention.
        attention_scale: Factors of QKᵀ, one per layer; empty for 1/√d_k.
        windows: Attention windows, one per layer.
        rotary: Rotary settings, one per layer.
        score_cap: See ``GroupedQueryAttention``.
        logit_cap: See ``ScaledProjection``.
        query_bias: Whether the projections of queries, keys and values have a bias.
        output_bias: Whether W_O has a bias.
        block: "sequential", "parallel" or "sandwich".
        embedding_scale: Factor of E[id].
        embedding_width: Width of an embedding table that is narrower than the model.
        stored_positions: Whether the table of sinusoids is in the file.
        n_buckets: T5's number of distance buckets.
        max_distance: T5's largest distance with a bucket of its own.
        shared_tables: Whether encoder and decoder read the same E.
        tie_embeddings: Whether the projection to the vocabulary is E as well.
        decoder_heads: Number of decoder heads where it differs from ``n_heads``, which counts the encoder's.
        decoder_d_ff: Feed-forward width of the decoder where it differs from ``d_ff``.
        head_activation: Activation function of the token head or the classifier.
        pooling: "mean", "first" or "max" for an encoder without a head, whose output is a sentence embedding.
    """

    family: str = ""
    head_width: int = 0
    n_key_heads: int = 0
    attention_scale: tuple[float, ...] = ()
    query_key_norm: bool = False
    query_bias: bool = True
    output_bias: bool = True
    feed_forward_bias: bool = True
    gated: bool = False
    block: str = "sequential"
    final_norm: bool = False
    windows: tuple[int | None, ...] = ()
    rotary: tuple[Rotary, ...] = ()
    score_cap: float | None = None
    logit_cap: float | None = None
    logit_scale: float = 1.0
    logit_bias: bool = False
    embedding_scale: float = 1.0
    embedding_width: int = 0
    embedding_norm: bool = False
    stored_positions: bool = False
    n_buckets: int = 32
    max_distance: int = 128
    shared_tables: bool = True
    decoder_heads: int = 0
    decoder_d_ff: int = 0
    head_activation: str = "gelu"
    disentangled: Disentangled | None = None
    pooling: str = ""
    pad_id: int | None = None

    def __post_init__(self) -> None:
        """Check only what involves two fields; ``Values`` checks single fields where they are read."""
        if not self.head_width and self.d_model % self.n_heads:
            raise CheckpointError(f"{self.d_model} channels cannot be divided among {self.n_heads} heads")
        if self.n_key_heads and self.n_heads % self.n_key_heads:
            raise CheckpointError(f"{self.n_heads} heads cannot share {self.n_key_heads} heads of keys evenly")
        if self.decoder_heads and self.d_model % self.decoder_heads:
            raise CheckpointError(f"{self.d_model} channels cannot be divided among {self.decoder_heads} heads")
        for rotary in self.rotary:
            if not 0 < rotary.n_turned <= self.d_head:
                raise CheckpointError(
                    f"rotary positions rotate {rotary.width} of {self.d_head} channels, and channels are rotated in "
                    "pairs"
                )
        if self.pad_id is not None and self.pad_id >= self.vocabulary_size:
            raise CheckpointError(f"pad_id is {self.pad_id}, but the vocabulary ends at {self.vocabulary_size - 1}")

    @property
    def encodes_sentences(self) -> bool:
        """Whether the output is a sentence embedding."""
        return bool(self.pooling)

    @property
    def predicts_next_sentence(self) -> bool:
        """Whether there is a next-sentence head; that of a third-party model is not read."""
        return False

    @property
    def d_head(self) -> int:
        """Width of a head, d_k."""
        return self.head_width or self.d_model // self.n_heads

    @property
    def switch_lengths(self) -> frozenset[int]:
        """Lengths beyond which all positions of a text change (``LongRope``)."""
        return frozenset(each.scaling.original_length for each in self.rotary if isinstance(each.scaling, LongRope))

    def heads_in(self, stack: str) -> int:
        """Return the number of heads per layer of a stack."""
        return self.decoder_heads or self.n_heads if stack == "decoder" else self.n_heads

    @property
    def grouped(self) -> bool:
        """Whether attention has shared keys, windows, caps, or norms of queries and keys."""
        return bool(self.n_key_heads)


@dataclass(frozen=True)
class Disentangled:
    """DeBERTa's relative positions: which terms exist, and how distances become rows of the table."""

    span: int
    n_buckets: int
    max_distance: int
    norm: bool
    relative: bool
    content_to_position: bool
    position_to_content: bool
    share_projections: bool
    kernel: int = 0
    groups: int = 1
    convolution_activation: str = "tanh"
    legacy_head: bool = True
