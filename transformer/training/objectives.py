"""Training objectives: from a batch of examples to a loss.

Each objective is a module around the model, so that its single ``forward`` can be wrapped for several GPUs. It returns
the *summed* loss in nats and the number of predictions in the sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transformer.fast.shortcut import fast_path
from transformer.models import Model
from transformer.pictures.patch_numbers import ids_of, levels_of, patches_of, pixels_of
from transformer.probes import record
from transformer.runs.batches import pad
from transformer.text.tokenizer import END_ID, MASK_ID, PAD_ID, SPECIAL_TOKENS, START_ID, Tokenizer
from transformer.training.attention_entropy import mean_entropy

_ROWS_AT_ONCE = 512  # projecting to the vocabulary in blocks keeps the logits in the processor's cache


class Objective(nn.Module):
    """Base class: ``encode`` turns examples into ids once, ``collate`` turns a batch of them into tensors."""

    def __init__(self, model: Model, label_smoothing: float = 0.0) -> None:
        super().__init__()
        self.model = model
        self.label_smoothing = label_smoothing
        self.progress = 0.0  # completed share of the run's steps, or of those before its restart
        self.entropy: Callable[[float], float] | None = None  # maps that share to the penalty on spread attention
        self.teacher: Teacher | None = None  # a trained model whose predictions are part of the loss

    @staticmethod
    def encode(tokenizer: Tokenizer, examples: Sequence[tuple]) -> list[tuple]:
        """Convert examples to ids: by default, the text in its frame, then the rest of the example unchanged."""
        texts = tokenizer.encode_many([example[0] for example in examples])
        return [([START_ID, *ids, END_ID], *example[1:]) for ids, example in zip(texts, examples, strict=True)]

    def collate(self, examples: Sequence[tuple], generator: torch.Generator) -> dict[str, Tensor]:
        """Stack a batch of encoded examples into tensors."""
        raise NotImplementedError

    def hidden_and_targets(self, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Return the last hidden states and the target ids at the same positions."""
        raise NotImplementedError

    def forward(self, batch: dict[str, Tensor]) -> tuple[Tensor, int]:
        """Return the summed loss in nats and the number of predictions."""
        teacher = self.teacher if self.training else None
        with fast_path():
            hidden, targets, extra = self._with_entropy(batch)
            extra = extra + self.sentence_loss(hidden, batch)
            real = targets != PAD_ID  # drop padding before the expensive projection
            hidden, targets = hidden[real], targets[real]
            blocks = [hidden.split(_ROWS_AT_ONCE), targets.split(_ROWS_AT_ONCE)]
            if teacher is not None:
                blocks.append(teacher.hidden(batch)[real].split(_ROWS_AT_ONCE))
            loss = sum(self._loss_of_rows(*block) for block in zip(*blocks, strict=True))
        return loss + extra * len(targets), len(targets)

    def sentence_loss(self, hidden: Tensor, batch: dict[str, Tensor]) -> Tensor | float:
        """Return a loss for whole texts, to be added to the mean loss per prediction; 0 by default."""
        return 0.0

    def _loss_of_rows(self, hidden: Tensor, targets: Tensor, theirs: Tensor | None = None) -> Tensor:
        """Return the summed loss of some positions; ``theirs`` are the teacher model's hidden states there."""
        logits = self.model.project(hidden).float()
        smoothing = self.label_smoothing if self.training else 0.0
        loss = F.cross_entropy(logits, targets, reduction="sum", label_smoothing=smoothing)
        if theirs is None:
            return loss
        taught = F.cross_entropy(logits, self.teacher.probabilities(theirs), reduction="sum")
        return (1.0 - self.teacher.weight) * loss + self.teacher.weight * taught

    def _with_entropy(self, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor, Tensor | float]:
        """Return ``hidden_and_targets``, and the penalty on spread attention per prediction."""
        price = self.entropy(self.progress) if self.entropy is not None and self.training else 0.0
        if not price:
            return *self.hidden_and_targets(batch), 0.0
        with record() as recording:
            found = self.hidden_and_targets(batch)
        return *found, price * mean_entropy(self.model, recording)


class Teacher:
    """A trained model that predicts on the student's batches and is not trained itself (distillation).

        loss = (1 − w) · cross-entropy with the text + w · (− Σ_v q(v) ln p(v))    for every predicted token

    q are the teacher model's probabilities of all tokens v at that position, which contain more than the one correct
    token; p are the student's. Kim and Rush 2016, "Sequence-Level Knowledge Distillation", §3.1, "word-level"; after
    Hinton et al. 2015. A student with the same shape can become better than its teacher model (Furlanello et al. 2018,
    "Born-Again Neural Networks").
    """

    def __init__(self, objective: Objective, weight: float) -> None:
        """Wrap the teacher model in the student's ``objective``; ``weight`` is w, from 0 to 1."""
        self.objective = objective.eval().requires_grad_(False)
        self.weight = weight

    @torch.no_grad()
    def hidden(self, batch: dict[str, Tensor]) -> Tensor:
        """Return the teacher model's last hidden states at the targets, [batch, target, d_model]."""
        if self.objective.model.device != (device := next(iter(batch.values())).device):
            self.objective.to(device)
        return self.objective.hidden_and_targets(batch)[0]

    @torch.no_grad()
    def probabilities(self, hidden: Tensor) -> Tensor:
        """Return q: [..., d_model] → [..., vocabulary]."""
        return self.objective.model.project(hidden).float().softmax(dim=-1)


class Translation(Objective):
    """Predict the next target token from the source and the target so far (teacher forcing).

    This also serves several tasks, where a prefix of the source names the task.
    """

    @staticmethod
    def encode(tokenizer: Tokenizer, examples: Sequence[tuple]) -> list[tuple]:
        """Convert pairs of source and target to token ids."""
        sources = tokenizer.encode_many([example[0] for example in examples])
        targets = tokenizer.encode_many([example[1] for example in examples])
        return [([*s, END_ID], [START_ID, *t, END_ID]) for s, t in zip(sources, targets, strict=True)]

    def collate(self, examples: Sequence[tuple], generator: torch.Generator) -> dict[str, Tensor]:
        """Pad sources and targets into tensors."""
        return {
            "source": pad([source for source, _ in examples], PAD_ID),
            "target": pad([target for _, target in examples], PAD_ID),
        }

    def hidden_and_targets(self, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Return the decoder's last hidden states and the next target tokens."""
        memory = self.model.encode(batch["source"])
        hidden = self.model.decode(batch["target"][:, :-1], memory, batch["source"])
        return hidden, batch["target"][:, 1:]


class NextToken(Objective):
    """Predict the next token from the text so far."""

    def collate(self, examples: Sequence[tuple], generator: torch.Generator) -> dict[str, Tensor]:
        """Pad texts into one tensor."""
        return {"ids": pad([ids for (ids,) in examples], PAD_ID)}

    def hidden_and_targets(self, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Return the last hidden states and the next tokens."""
        return self.model.decode(batch["ids"][:, :-1]), batch["ids"][:, 1:]


class PackedNextToken(NextToken):
    """Predict the next token from up to a whole row of text.

    In training, the examples of a batch are concatenated into rows of the model's maximum length. Each row begins with
    an example; the rest of its last example is dropped. In a share ``REPEATED_TEXT`` of the rows a passage is repeated.
    Some batches hold random tokens instead, with a repeated passage in each row. The second copy can be predicted only
    by attending to the token that followed the current one in the first copy, as an induction head does (Olsson et al.
    2022, "In-context Learning and Induction Heads"). The loss of such a row covers only this copy. Most batches are
    random at the start of a run, and few are at the end.

    The rows of random tokens are short at first. Untrained attention is spread over all allowed keys, and the gradient
    of a score is proportional to its weight: in a long row the one useful position gets next to none.

    Outside of training every example is separate, as for ``NextToken``, so losses on ``dev`` are comparable.
    """

    REPEATED_TEXT = 0.2
    RANDOM = 0.8, 0.1  # share of the batches at the start and at the end of a run
    SHORTEST_ROW, SHORTEST_PASSAGE = 24, 4  # tokens

    @property
    def random_share(self) -> float:
        """Return the share of random batches, which falls with the square of the remaining share of the run."""
        first, last = self.RANDOM
        return last + (first - last) * (1 - self.progress) ** 2

    def collate(self, examples: Sequence[tuple], generator: torch.Generator) -> dict[str, Tensor]:
        """Build packed rows, or rows of random tokens, in training; pad separate texts otherwise."""
        rows = self._rows(examples) if self.training else []
        if not rows:
            return super().collate(examples, generator)
        if float(torch.rand((), generator=generator)) < self.random_share:
            return self._random_rows(len(rows) * self.model.config.max_length, generator)
        tokens = torch.tensor(rows)
        for row in tokens[:, 1:]:
            if float(torch.rand((), generator=generator)) < self.REPEATED_TEXT:
                self._repeat_passage(row, generator)
        return {"ids": tokens[:, :-1], "answers": tokens[:, 1:]}

    def _rows(self, examples: Sequence[tuple]) -> list[list[int]]:
        """Pack examples into rows of 1 + ``max_length`` tokens, the first of which is ``<s>``."""
        rows: list[list[int]] = []
        row: list[int] = []
        for (ids,) in examples:
            row += ids
            if len(row) > self.model.config.max_length:
                rows.append(row[: self.model.config.max_length + 1])
                row = []
        return rows

    def _random_rows(self, n_tokens: int, generator: torch.Generator) -> dict[str, Tensor]:
        """Return ``n_tokens`` in random rows of one length, up to ``max_length`` in the end.

        The length is uniform within each octave.
        """
        config = self.model.config
        octaves = self.progress * math.log2(max(1.0, config.max_length / self.SHORTEST_ROW))
        draw = float(torch.rand((), generator=generator))
        length = min(int(self.SHORTEST_ROW * 2 ** (octaves * draw)), config.max_length)
        shape = n_tokens // length, 1 + length
        tokens = torch.randint(len(SPECIAL_TOKENS), config.vocabulary_size, shape, generator=generator)
        tokens[:, 0] = START_ID
        answers = torch.full_like(tokens[:, 1:], PAD_ID)
        for row, asked in zip(tokens[:, 1:], answers, strict=True):
            again = self._repeat_passage(row, generator)[1:]
            asked[again] = row[again]
        return {"ids": tokens[:, :-1], "answers": answers}

    def _repeat_passage(self, row: Tensor, generator: torch.Generator) -> range:
        """Repeat a passage of ``row`` somewhere after it, and return the positions of the copy."""

        def up_to(most: int) -> int:
            return int(torch.randint(most + 1, (), generator=generator))

        longest = len(row) // 2
        shortest = min(self.SHORTEST_PASSAGE, longest)
        size = shortest + up_to(longest - shortest)
        first = up_to(len(row) - 2 * size)
        second = first + size + up_to(len(row) - first - 2 * size)
        row[second : second + size] = row[first : first + size]
        return range(second, second + size)

    def hidden_and_targets(self, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Return the last hidden states and the next tokens."""
        if "answers" not in batch:
            return super().hidden_and_targets(batch)
        return self.model.decode(batch["ids"]), batch["answers"]


class MaskedToken(Objective):
    """Predict masked tokens, a quarter of all tokens (Devlin et al. 2019, §3.1).

    Of these, 80 % are shown as <mask>, 10 % as a random token, 10 % unchanged. The "random word" of the paper is drawn
    from all ids, including ``[PAD]`` and ``[CLS]``; here only from those that stand for text, since attention never
    sees a ``<pad>``. The paper masks 15 %; in short sentences that leaves many with nothing to predict, and higher
    rates train as well or better (Wettig et al. 2023).
    """

    MASKED, SHOWN_AS_MASK, SHOWN_AS_ANOTHER = 0.25, 0.80, 0.10

    def collate(self, examples: Sequence[tuple], generator: torch.Generator) -> dict[str, Tensor]:
        """Pad texts into one tensor, with masks."""
        ids = pad([ids for (ids,) in examples], PAD_ID)
        draw = torch.rand(ids.shape, generator=generator) / self.MASKED  # values below 1 mark tokens to be predicted
        draw = draw.masked_fill(ids < len(SPECIAL_TOKENS), 1.0)
        others = torch.randint(len(SPECIAL_TOKENS), self.model.config.vocabulary_size, ids.shape, generator=generator)
        shown = torch.where(draw < self.SHOWN_AS_MASK + self.SHOWN_AS_ANOTHER, others, ids)
        shown = torch.where(draw < self.SHOWN_AS_MASK, MASK_ID, shown)
        return {"ids": torch.where(draw < 1.0, shown, ids), "answers": torch.where(draw < 1.0, ids, PAD_ID)}

    def hidden_and_targets(self, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Return the last hidden states and the original tokens at masked positions."""
        return self.model.encode(batch["ids"]), batch["answers"]


class MaskedTokenNextSentence(MaskedToken):
    """Predict masked tokens and, for a pair of sentences, whether the second follows the first.

    "The training loss is the sum of the mean masked LM likelihood and the mean next sentence prediction likelihood"
    (Devlin et al. 2019, §A.2). Texts that are not a pair have no next sentence: they count as 0 in the second mean.
    """

    MASKED = 0.15  # as in the paper: in short sentences, the class depends on words that more masks would hide
    NO_PAIR = -100  # ignored by the cross-entropy
    weight = 1.0  # weight of the second mean in training

    def classify(self, ids: Tensor) -> Tensor:
        """Return the logits of the next sentence's classes, [batch, class]."""
        return self.model.next_sentence(self.model.encode(ids))

    @staticmethod
    def encode(tokenizer: Tokenizer, examples: Sequence[tuple]) -> list[tuple]:
        """Convert pairs and single texts to token ids, with their classes."""
        firsts = tokenizer.encode_many([example[0] for example in examples])
        seconds = tokenizer.encode_many([example[1] if len(example) > 1 else "" for example in examples])
        labels = [example[2] if len(example) > 1 else MaskedTokenNextSentence.NO_PAIR for example in examples]
        return [
            ([START_ID, *first, END_ID, *([*second, END_ID] if second else [])], label)
            for first, second, label in zip(firsts, seconds, labels, strict=True)
        ]

    def collate(self, examples: Sequence[tuple], generator: torch.Generator) -> dict[str, Tensor]:
        """Pad texts into one tensor, with masks, and stack the classes."""
        masked = super().collate([(ids,) for ids, _ in examples], generator)
        return {**masked, "next_sentence": torch.tensor([label for _, label in examples])}

    def sentence_loss(self, hidden: Tensor, batch: dict[str, Tensor]) -> Tensor:
        """Return the summed cross-entropy of the pairs by the number of texts, times ``weight`` in training."""
        logits = self.model.next_sentence(hidden).float()
        loss = F.cross_entropy(logits, batch["next_sentence"], reduction="sum", ignore_index=self.NO_PAIR)
        return (self.weight if self.training else 1.0) * loss / len(logits)


class Classification(Objective):
    """Predict the class of a text.

    In training, a fifth of its tokens are shown as <mask>, so that no single word decides: "word dropout" (Iyyer et al.
    2015, §2.2).
    """

    HIDDEN = 0.2

    def classify(self, ids: Tensor) -> Tensor:
        """Return the logits of the classes, [batch, class]."""
        return self.model(ids)

    def collate(self, examples: Sequence[tuple], generator: torch.Generator) -> dict[str, Tensor]:
        """Pad texts into one tensor, with random masks in training."""
        ids = pad([ids for ids, _ in examples], PAD_ID)
        if self.training:
            hidden = torch.rand(ids.shape, generator=generator) < self.HIDDEN
            ids = torch.where(hidden & (ids >= len(SPECIAL_TOKENS)), MASK_ID, ids)
        return {"ids": ids, "class": torch.tensor([label for _, label in examples])}

    def forward(self, batch: dict[str, Tensor]) -> tuple[Tensor, int]:
        """Return the summed loss in nats and the number of texts."""
        smoothing = self.label_smoothing if self.training else 0.0
        with fast_path():
            logits = self.classify(batch["ids"]).float()
        loss = F.cross_entropy(logits, batch["class"], reduction="sum", label_smoothing=smoothing)
        return loss, len(logits)


class PictureClassification(Classification):
    """Predict the class of an image.

    In training, half of the images are shifted by up to one pixel in each direction (a digit stays the same digit), and
    some patches are masked, as words are.
    """

    HIDDEN = 0.1
    MOVED, FARTHEST = 0.5, 1  # share of the images that are shifted, and by how many pixels

    @staticmethod
    def encode(tokenizer: Tokenizer, examples: Sequence[tuple]) -> list[tuple]:
        """Convert images to the ids of their patches, with their classes."""
        pictures = tokenizer.encode_many([example[0] for example in examples])
        return [([START_ID, *ids], example[1]) for ids, example in zip(pictures, examples, strict=True)]

    def collate(self, examples: Sequence[tuple], generator: torch.Generator) -> dict[str, Tensor]:
        """Stack images, shifted and masked in training."""
        if self.training:
            moved = self._moved(torch.tensor([ids[1:] for ids, _ in examples]), generator)
            examples = [([START_ID, *row], label) for row, (_, label) in zip(moved.tolist(), examples, strict=True)]
        return super().collate(examples, generator)

    def _moved(self, ids: Tensor, generator: torch.Generator) -> Tensor:
        """Return the ids of shifted images; pixels from outside are empty."""
        config, far = self.model.config, self.FARTHEST
        pixels = F.pad(pixels_of(levels_of(ids, config), config), (far,) * 4)
        size = config.picture_size
        starts = torch.randint(2 * far + 1, (len(ids), 2), generator=generator)
        starts[torch.rand(len(ids), generator=generator) >= self.MOVED] = far
        moved = [picture[y : y + size, x : x + size] for picture, (y, x) in zip(pixels, starts.tolist(), strict=True)]
        return ids_of(patches_of(torch.stack(moved), config.patch_size), config.n_levels)


def length_of(example: tuple) -> int:
    """Return the number of tokens of the longest text of an encoded example."""
    return max(len(part) for part in example if isinstance(part, list))


OBJECTIVES: dict[str, type[Objective]] = {
    "translation": Translation,
    "next-token": NextToken,
    "packed-next-token": PackedNextToken,
    "masked-token": MaskedToken,
    "masked-token-next-sentence": MaskedTokenNextSentence,
    "classification": Classification,
    "picture-classification": PictureClassification,
    "text-to-text": Translation,
}
