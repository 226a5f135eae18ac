"""The configuration of a guest: everything in which it differs from the paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from transformer.config import ModelConfig
from transformer.errors import CheckpointError
from transformer.pictures.image_patches import ImageInput


@dataclass(frozen=True)
class GuestConfig(ModelConfig):
    """A ``ModelConfig`` of a third-party model, which the code of ``transformers`` computes.

    When a guest is opened, its trial pass fills in what the folder does not say (``transformer.guests.opening``).

    Attributes:
        family: Hugging Face's ``model_type``.
        architecture: The class in ``transformers``.
        head_width: d_k where it is not d_model / n_heads.
        n_key_heads: Number of heads of keys and values; 0 for the paper's attention.
        windows: Attention windows, one per layer.
        score_cap: See ``MultiHeadAttention``; earlier checkpoints of a training run are compared by it.
        gated: Whether the feed-forward layers are gated.
        block: "sequential", "parallel" or "sandwich" (a norm before and after each sub-layer).
        final_norm: Whether a norm follows the last layer.
        embedding_scale: Factor of E[id].
        decoder_heads: Number of decoder heads where it differs from ``n_heads``, which counts the encoder's.
        decoder_d_ff: Feed-forward width of the decoder where it differs from ``d_ff``.
        head_activation: Activation function of the classifier's layer, or of a masked-token head's.
        pooling: "mean", "first" or "max" for an encoder without a head, whose output is a sentence embedding.
        unshown_head: The class that the folder names, where its head is not shown and ``architecture`` is the body.
        n_experts: Number of experts per feed-forward layer; 0 for layers that are not a mixture of experts.
        image: How images are read; ``None`` for a model that reads no images.
        position_kinds: For each stack, how it encodes positions: no kind, one or several.
        switch_lengths: Lengths beyond which all positions of a text are rotated differently (LongRoPE).
    """

    is_guest: ClassVar[bool] = True
    predicts_next_sentence: ClassVar[bool] = False  # the head of a guest is not read
    family: str = ""
    architecture: str = ""
    head_width: int = 0
    n_key_heads: int = 0
    gated: bool = False
    block: str = "sequential"
    final_norm: bool = False
    windows: tuple[int | None, ...] = ()
    score_cap: float | None = None
    embedding_scale: float = 1.0
    decoder_heads: int = 0
    decoder_d_ff: int = 0
    head_activation: str = "tanh"
    pooling: str = ""
    unshown_head: str = ""
    pad_id: int | None = None
    n_experts: int = 0
    image: ImageInput | None = None
    position_kinds: tuple[tuple[str, tuple[str, ...]], ...] = ()
    switch_lengths: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Check rules that involve two fields; the guest's own code and a trial pass check everything else."""
        if not self.head_width and self.d_model % self.n_heads:
            raise CheckpointError(f"{self.d_model} channels cannot be divided among {self.n_heads} heads")
        if self.n_key_heads and self.n_heads % self.n_key_heads:
            raise CheckpointError(f"{self.n_heads} heads cannot share {self.n_key_heads} heads of keys evenly")
        if self.decoder_heads and self.d_model % self.decoder_heads:
            raise CheckpointError(f"{self.d_model} channels cannot be divided among {self.decoder_heads} heads")
        if self.pad_id is not None and self.pad_id >= self.vocabulary_size:
            raise CheckpointError(f"pad_id is {self.pad_id}, but the vocabulary ends at {self.vocabulary_size - 1}")

    @property
    def encodes_sentences(self) -> bool:
        """Whether the output is a sentence embedding."""
        return bool(self.pooling)

    @property
    def reads_images(self) -> bool:
        """Whether the tokens are patches of an image."""
        return self.image is not None

    @property
    def d_head(self) -> int:
        """Width of a head, d_k."""
        return self.head_width or self.d_model // self.n_heads

    def positions_in(self, stack: str) -> str:
        """Return the first kind of positions of a stack, or "none"."""
        return next(iter(self.kinds_in(stack)), "none")

    def kinds_in(self, stack: str) -> tuple[str, ...]:
        """Return all kinds of positions of a stack."""
        return dict(self.position_kinds).get(stack, ())

    def d_head_in(self, stack: str) -> int:
        """Return the width of one head in a stack."""
        return self.d_model // self.decoder_heads if stack == "decoder" and self.decoder_heads else self.d_head

    def d_ff_in(self, stack: str) -> int:
        """Return the number of hidden units of a feed-forward layer in a stack."""
        return self.decoder_d_ff or self.d_ff if stack == "decoder" else self.d_ff

    def heads_in(self, stack: str) -> int:
        """Return the number of heads per layer of a stack."""
        return self.decoder_heads or self.n_heads if stack == "decoder" else self.n_heads
