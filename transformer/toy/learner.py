"""The tiny model that learns one of the tasks: made from a seed alone, asked for answers and for its attention."""

from contextlib import AbstractContextManager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transformer.config import ModelConfig
from transformer.families.build import build_model
from transformer.fast.shortcut import fast_path
from transformer.models import Model
from transformer.positions import LearnedEncoding
from transformer.probes import Edit, Recording, record
from transformer.runs.activation_arrays import activations_of
from transformer.runs.attention_view import AttentionView
from transformer.runs.decoding_state import greedy_batch, writable
from transformer.runs.mask_edits import no_causal_mask
from transformer.text.tokenizer import END_ID, PAD_ID, START_ID
from transformer.text.tokens import TokenSequence
from transformer.toy.tasks import MAX_LETTERS, VOCABULARY_SIZE, Batch, Task, batch_of, labelled, letters_of

WIDTH = 64
# Mistakes that a training can be made with: the decoder may see the tokens it is to predict; it is asked for the token
# that it was just given instead of the next one.
TRAINING_FAULTS = ("no_causal_mask", "shifted_target")
CROSS_ATTENTION = "decoder.layers.0.cross_attention"


def toy_config(*, n_heads: int = 1, positions: str = "sinusoidal") -> ModelConfig:
    """One encoder layer and one decoder layer, pre-norm, no dropout: some 80,000 parameters."""
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
    """Draw every weight of ``model`` anew, by the rules of its making, from ``generator`` alone.

    A model that is just built has its weights from torch's global generator, which other threads use at the same time.
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
    """What the model writes for ``word``, greedily, beside what is ``right``.

    ``finished``: it ended its answer itself. ``attention``: its cross-attention while it read its own answer;
    ``predicted``: what comes after each of the query tokens (the rows' better names).
    """

    word: str
    text: str
    right: str
    finished: bool
    attention: AttentionView
    predicted: TokenSequence

    @property
    def wrong(self) -> tuple[int, ...]:
        """Places of ``text`` with another letter than ``right`` has there, places that ``right`` does not have."""
        return tuple(
            place for place, letter in enumerate(self.text) if place >= len(self.right) or letter != self.right[place]
        )


@dataclass(frozen=True)
class Score:
    """Over the words of a batch, each answer read letter by letter (teacher forcing).

    ``loss``: mean of −log p over all asked tokens, in nats. ``accuracy``: share of words of which *every* token is
    predicted, ``</s>`` included, which is the share that the model writes without a mistake. ``on_target``: for each
    head the mean attention that the row of a letter gives to the very place where this letter stands in the word.
    """

    loss: float
    accuracy: float
    on_target: tuple[float, ...]


class ToyLearner:
    """A model and its task. While it is being trained its answers change; ask a state for what it was.

    ``fault``: "" or one of ``TRAINING_FAULTS``, a mistake in how it is trained; what it then answers, and its
    ``score``, come about as they should. Raises ``ValueError`` for another one.
    """

    def __init__(self, task: Task, config: ModelConfig, generator: torch.Generator, *, fault: str = "") -> None:
        if fault not in ("", *TRAINING_FAULTS):
            raise ValueError(f"fault is {fault!r}; choose none, or one of {', '.join(TRAINING_FAULTS)}")
        self.task = task
        self.fault = fault
        self.model = build_model(config)
        initialise(self.model, generator)

    def loss(self, batch: Batch) -> Tensor:
        """What is trained: mean of −log p(asked token), pads left out, with its gradient. A fault is made here."""
        with self._reading():
            logits = self.model(batch.source, batch.read)  # [batch, place, vocabulary]
        asked = batch.read if self.fault == "shifted_target" else batch.asked
        return F.cross_entropy(logits.flatten(0, 1), asked.flatten(), ignore_index=PAD_ID)

    def _reading(self) -> AbstractContextManager:
        """How a training pass is made: with fused kernels, unless the causal mask is to be taken away."""
        return record(self.training_edits) if self.training_edits else fast_path()

    @property
    def training_edits(self) -> tuple[Edit, ...]:
        """By which edits the model runs while it is trained with its fault."""
        if self.fault != "no_causal_mask":
            return ()
        layers = range(self.model.config.n_decoder_layers)
        return tuple(no_causal_mask("decoder", layer=layer) for layer in layers)

    @torch.inference_mode()
    def reported_loss(self, batch: Batch) -> float:
        """The loss that the training itself reports, made in the same way as it is trained, mistake included."""
        return float(self.loss(batch))

    @torch.inference_mode()
    def score(self, batch: Batch) -> Score:
        with record() as recording:
            logits = self.model(batch.source, batch.read)
        asked = batch.asked != PAD_ID
        right = (writable(logits).argmax(dim=-1) == batch.asked) | ~asked
        weights = recording.tensors[f"{CROSS_ATTENTION}.weights"]  # [batch, head, query, key]
        rows = weights[:, :, :-1]  # the last row has no letter to predict: a word of all letters ends there
        found = rows.gather(3, batch.places[:, None, :, None].expand(-1, rows.shape[1], -1, 1))[..., 0]
        letters = torch.arange(rows.shape[2]) < batch.lengths[:, None]  # [batch, query]
        return Score(
            loss=float(F.cross_entropy(logits[asked], batch.asked[asked])),
            accuracy=int(right.all(dim=1).sum()) / len(right),
            on_target=tuple(float(found[:, head][letters].mean()) for head in range(found.shape[1])),
        )

    @torch.inference_mode()
    def attention(self, word: str) -> tuple[AttentionView, TokenSequence]:
        """The cross-attention while the *right* answer is read, and what each row predicts then."""
        batch = batch_of(self.task, word)
        return self._attention(batch.source, batch.read), labelled(batch.asked[0].tolist(), "prediction")

    @torch.inference_mode()
    def written(self, word: str) -> str:
        """The letters that the model writes by itself, greedily, up to its end or its longest answer."""
        return letters_of(self._write(batch_of(self.task, word).source))

    @torch.inference_mode()
    def answer(self, word: str) -> ToyAnswer:
        """Let the model write. Raises ``InputError`` for a word that is not made of letters."""
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
            predicted=labelled(whole[1:], "prediction"),
        )

    def _write(self, source: Tensor) -> list[int]:
        return greedy_batch(self.model, source, self.model.config.max_length)[0]

    def _attention(self, source: Tensor, read: Tensor) -> AttentionView:
        with record() as recording:
            self.model(source, read)
        return _cross_attention(self.model, recording, source, read)


def _cross_attention(model: Model, recording: Recording, source: Tensor, read: Tensor) -> AttentionView:
    recorded = activations_of(model, recording)
    return AttentionView(
        name=CROSS_ATTENTION,
        stack="decoder",
        layer=0,
        kind="cross",
        **{part: recorded[f"{CROSS_ATTENTION}.{part}"].values for part in ("weights", "allowed", "scores")},
        query=labelled(read[0].tolist(), "target"),
        key=labelled(source[0].tolist(), "source"),
    )
