"""Tiny model that learns one of the tasks, made from a seed alone."""

from contextlib import AbstractContextManager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transformer.config import ModelConfig
from transformer.fast.shortcut import fast_path
from transformer.files.build import build_model
from transformer.models import Model
from transformer.positions import LearnedEncoding
from transformer.probes import Edit, record
from transformer.runs.attention_view import AttentionView
from transformer.runs.decoding_state import greedy_batch, writable
from transformer.runs.mask_edits import mask_edit
from transformer.runs.recorded import Recorded
from transformer.text.tokenizer import END_ID, PAD_ID, START_ID
from transformer.text.tokens import TokenSequence
from transformer.toy.tasks import MAX_LETTERS, VOCABULARY_SIZE, Batch, Task, batch_of, label_letters, letters_of

WIDTH = 64
HEALTHY = "healthy"  # no fault
# Faults in training: without a causal mask, the decoder sees the tokens that it is to predict; with a wrong target, it
# is to predict the token that it was just given instead of the next one.
TRAINING_FAULTS = ("causal", "target")
CROSS_ATTENTION = "decoder.layers.0.cross_attention"


def toy_config(*, n_heads: int = 1, positions: str = "sinusoidal") -> ModelConfig:
    """Return a config with one encoder layer and one decoder layer, which has some 80,000 parameters.

    It is pre-norm, without dropout.
    """
    return ModelConfig(
        kind="encoder-decoder",
        vocabulary_size=VOCABULARY_SIZE,
        d_model=WIDTH,
        n_heads=n_heads,
        d_ff=2 * WIDTH,
        n_encoder_layers=1,
        n_decoder_layers=1,
        max_length=MAX_LETTERS + 1,
        positions=positions,
        norm="pre",
        dropout=0.0,
        tie_embeddings=False,
    )


def initialise(model: Model, generator: torch.Generator) -> None:
    """Initialise every weight of ``model`` in the usual way, with random numbers from ``generator`` alone.

    The weights of a newly built model come from torch's global generator, which other threads use at the same time.
    """
    width = model.config.d_model
    for module in model.modules():
        if isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=width**-0.5, generator=generator)
        elif isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight, generator=generator)
        elif isinstance(module, LearnedEncoding):
            nn.init.normal_(module.table, std=0.02, generator=generator)


@dataclass(frozen=True)
class ToyAnswer:
    """Greedy output of the model for ``word``, with the ``right`` one.

    Attributes:
        finished: Whether the model ended its output itself.
        attention: Its cross-attention while it read its own output.
        predicted: The token after each of the query tokens, which names the rows better.
    """

    word: str
    text: str
    right: str
    finished: bool
    attention: AttentionView
    predicted: TokenSequence

    @property
    def wrong(self) -> tuple[int, ...]:
        """Positions of ``text`` whose letter differs from ``right``, or that ``right`` lacks."""
        return tuple(
            place for place, letter in enumerate(self.text) if place >= len(self.right) or letter != self.right[place]
        )


@dataclass(frozen=True)
class Score:
    """Scores over the words of a batch, each read with teacher forcing.

    Attributes:
        loss: Mean of −log p over all predicted tokens, in nats.
        accuracy: Share of words of which *every* token is predicted, including ``</s>``: the share that the model
            generates without a mistake.
        on_target: For each head, the mean attention from the row of a letter to the position of this letter in the
            word.
    """

    loss: float
    accuracy: float
    on_target: tuple[float, ...]


class ToyLearner:
    """A model and its task. It changes during training; a ``ToyState`` keeps its outputs at one step.

    ``fault`` is one of ``TRAINING_FAULTS``, a fault in its training, or ``HEALTHY``; outputs and ``score`` are computed
    correctly.

    Raises:
        ValueError: If the fault is unknown.
    """

    def __init__(self, task: Task, config: ModelConfig, generator: torch.Generator, *, fault: str = HEALTHY) -> None:
        if fault not in (HEALTHY, *TRAINING_FAULTS):
            raise ValueError(f"fault is {fault!r}; choose one of {', '.join((HEALTHY, *TRAINING_FAULTS))}")
        self.task = task
        self.fault = fault
        self.model = build_model(config)
        initialise(self.model, generator)

    def loss(self, batch: Batch) -> Tensor:
        """Return the training loss with its gradient: the mean of −log p(target), without padding.

        The fault, if any, is applied here.
        """
        with self._reading():
            logits = self.model(batch.source, batch.read)  # [batch, place, vocabulary]
        targets = batch.read if self.fault == "target" else batch.targets
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=PAD_ID)

    def _reading(self) -> AbstractContextManager:
        """Return the context of a training pass: fused kernels, unless the fault is to remove the causal mask."""
        return record(self.training_edits) if self.training_edits else fast_path()

    @property
    def training_edits(self) -> tuple[Edit, ...]:
        """Return the edits that make the fault of this model during training."""
        if self.fault != "causal":
            return ()
        layers = range(self.model.config.n_decoder_layers)
        return tuple(mask_edit("decoder", layer=layer, mask="no_causal") for layer in layers)

    @torch.inference_mode()
    def reported_loss(self, batch: Batch) -> float:
        """Return the loss that training reports, computed as in training, including the fault."""
        return float(self.loss(batch))

    @torch.inference_mode()
    def score(self, batch: Batch) -> Score:
        """Score the model on a batch."""
        with record() as recording:
            logits = self.model(batch.source, batch.read)
        counted = batch.targets != PAD_ID
        right = (writable(logits).argmax(dim=-1) == batch.targets) | ~counted
        weights = recording.tensors[f"{CROSS_ATTENTION}.weights"]  # [batch, head, query, key]
        rows = weights[:, :, :-1]  # the last row has no letter to predict: a word of all letters ends there
        found = rows.gather(3, batch.places[:, None, :, None].expand(-1, rows.shape[1], -1, 1))[..., 0]
        letters = torch.arange(rows.shape[2]) < batch.lengths[:, None]  # [batch, query]
        return Score(
            loss=float(F.cross_entropy(logits[counted], batch.targets[counted])),
            accuracy=int(right.all(dim=1).sum()) / len(right),
            on_target=tuple(float(found[:, head][letters].mean()) for head in range(found.shape[1])),
        )

    @torch.inference_mode()
    def attention(self, word: str) -> tuple[AttentionView, TokenSequence]:
        """Return the cross-attention while the *correct* output is read, and the target of each row."""
        batch = batch_of(self.task, word)
        return self._attention(batch.source, batch.read), label_letters(batch.targets[0].tolist(), "prediction")

    @torch.inference_mode()
    def generate(self, word: str) -> str:
        """Return the letters that the model generates greedily, up to its end or its longest output."""
        return letters_of(self._write(batch_of(self.task, word).source))

    @torch.inference_mode()
    def answer(self, word: str) -> ToyAnswer:
        """Generate the output for a word.

        Raises:
            InputError: If the word is not made of letters.
        """
        source = batch_of(self.task, word).source
        ids = self._write(source)
        finished = len(ids) < self.model.config.max_length
        whole = [START_ID, *ids, *([END_ID] if finished else [])]
        return ToyAnswer(
            word=word,
            text=letters_of(ids),
            right=self.task.answer(word),
            finished=finished,
            attention=self._attention(source, torch.tensor([whole[:-1]])),
            predicted=label_letters(whole[1:], "prediction"),
        )

    def _write(self, source: Tensor) -> list[int]:
        return greedy_batch(self.model, source, self.model.config.max_length)[0]

    def _attention(self, source: Tensor, read: Tensor) -> AttentionView:
        return _cross_attention(Recorded(self.model, (source, read)), source, read)


def _cross_attention(recorded: Recorded, source: Tensor, read: Tensor) -> AttentionView:
    return AttentionView(
        name=CROSS_ATTENTION,
        stack="decoder",
        layer=0,
        kind="cross",
        **{part: recorded[f"{CROSS_ATTENTION}.{part}"].values for part in ("weights", "allowed", "scores")},
        query=label_letters(read[0].tolist(), "target"),
        key=label_letters(source[0].tolist(), "source"),
    )
