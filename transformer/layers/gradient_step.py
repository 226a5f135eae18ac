"""One training step on one sentence, on a copy of the model: gradients and how far weights move."""

import copy
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transformer.errors import InputError
from transformer.guests.half_precision import widen
from transformer.models import Model
from transformer.runs.traces import Trace
from transformer.text.tokens import TokenSequence

IGNORED = -100  # a label without a target, as in F.cross_entropy
OPTIMIZERS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}


@dataclass(frozen=True)
class BlockGradient:
    """One block of the model in a training step.

    Attributes:
        part: "embedding", "self_attention", "cross_attention", "feed_forward", "norms" (all norms of a layer together),
            or the name of a module outside the layers (final_norm, vocabulary_projection, projection of a classifier).
        layer: Index of the layer; ``None`` outside the layers.
        gradient: ‖∂loss/∂θ‖ over all trained parameters of the block.
        moved: ‖θ_after − θ_before‖.
        numbers: Number of trained parameters of the block.
    """

    stack: str
    layer: int | None
    part: str
    numbers: int
    gradient: float
    moved: float


@dataclass(frozen=True)
class TrainingStep:
    """Effect of one step on the embedding matrix E of a stack, and the gradient of every block.

    All arrays are [vocabulary], one length per row of E. If E is ``tied`` to the projection, both parts of a step move
    the same matrix; otherwise ``moved`` is ``by_lookup`` alone, and ``by_projection`` moves another matrix.

    Attributes:
        gradient: ‖∂loss/∂E[i]‖.
        moved: ‖E_after[i] − E_before[i]‖.
        by_lookup: Part of a step of plain gradient descent that comes through the rows that were looked up; exactly 0
            for every other row.
        by_projection: Part that comes through the projection to the vocabulary, which multiplies its input by *every*
            row; ``None`` for a classifier, which has no such projection.
        read: Token ids whose rows were looked up in this matrix (by both stacks if they share it).
        n_asked: Number of predictions that the loss is averaged over.
    """

    loss_before: float
    loss_after: float
    rate: float
    tied: bool
    optimizer: str
    gradient: np.ndarray
    moved: np.ndarray
    by_lookup: np.ndarray
    by_projection: np.ndarray | None
    read: TokenSequence
    n_asked: int
    blocks: tuple[BlockGradient, ...]


def training_step(
    trace: Trace,
    *,
    stack: str,
    rate: float = 0.01,
    optimizer: str = "sgd",
    masked: int = 0,
    label: int | None = None,
) -> TrainingStep:
    """Take one step at learning rate ``rate`` on the tokens of ``trace``, without dropout, on a copy.

    "sgd": θ ← θ − rate · g with the gradient g. "adam" (Kingma & Ba 2015) starts with empty moments, as in the first
    step of training: its bias-corrected means are g and g², so θ ← θ − rate · g / (|g| + 10⁻⁸), element by element.

    The loss is the mean of −log p(label) over the predicted positions. A model with a decoder predicts each next token
    of ``trace`` (its own output, or the given target). A masked-token model predicts its blanks or, if the sentence has
    none, the token at position ``masked``, which is masked first. A classifier predicts the class ``label`` (default:
    the one that it chose). Padding is left out.

    Raises:
        InputError: If the model predicts nothing, so that there is no loss.
    """
    if trace.checkpoint.config.encodes_sentences:
        raise InputError(f"{trace.checkpoint.name} has no output head: it predicts nothing, so it has no training loss")
    if not rate > 0:
        raise ValueError(f"rate is {rate}; a learning rate is greater than 0")
    if optimizer not in OPTIMIZERS:
        raise ValueError(f"optimizer is {optimizer!r}; choose one of {', '.join(OPTIMIZERS)}")
    checkpoint = trace.checkpoint
    inputs, labels = _example(trace, masked=masked, label=label)
    model = widen(copy.deepcopy(checkpoint.model)).requires_grad_()
    table = _table(model, stack)
    stacks = [name for name in ("encoder", "decoder") if hasattr(model, name)]  # in the order of the inputs
    reading = [ids for name, ids in zip(stacks, inputs, strict=True) if _table(model, name) is table]
    read_ids = [id for ids in reading for id in ids[0].tolist()]
    before = dict(zip(model.parameters(), checkpoint.model.parameters(), strict=True))
    stepper = OPTIMIZERS[optimizer](model.parameters(), lr=rate)
    with torch.inference_mode(False), torch.enable_grad():
        loss = _loss(model, inputs, labels)
        loss.backward()
        stepper.step()
        with torch.no_grad():
            loss_after = _loss(model, inputs, labels)
    lookup, projection = _gradients_by_way(checkpoint.model, inputs, labels, stack)
    return TrainingStep(
        loss_before=float(loss.detach()),
        loss_after=float(loss_after),
        rate=rate,
        tied=checkpoint.config.tie_embeddings and projection is not None,
        optimizer=optimizer,
        gradient=_lengths(table.grad),
        moved=_lengths(table.detach() - before[table].detach()),
        by_lookup=_lengths(rate * lookup),
        by_projection=None if projection is None else _lengths(rate * projection),
        read=checkpoint.tokenizer.sequence(read_ids, stack),
        n_asked=int((labels != IGNORED).sum()),
        blocks=_blocks(model, before),
    )


def _example(trace: Trace, *, masked: int, label: int | None) -> tuple[tuple[Tensor, ...], Tensor]:
    """Return the model's inputs, [1, position] each, and labels: [1, position], or [1] for a class."""
    config = trace.checkpoint.config
    source = None if trace.source is None else [token.id for token in trace.source if token.role != "pad"]
    if config.n_classes:
        chosen = int(trace.values("classifier.logits").argmax()) if label is None else label
        if not 0 <= chosen < config.n_classes:
            raise ValueError(f"label is {chosen}; this model has the classes 0 to {config.n_classes - 1}")
        return (torch.tensor([source]),), torch.tensor([chosen])
    if not config.has_decoder:
        labels = [IGNORED] * len(source)
        blanks = [place for place, id in enumerate(source) if id == trace.checkpoint.special.mask]
        for place in blanks:
            labels[place] = trace.prediction[place].id
        if not blanks:
            if not 0 <= masked < len(source):
                raise ValueError(f"masked is {masked}; this sentence has the positions 0 to {len(source) - 1}")
            labels[masked], source[masked] = source[masked], trace.checkpoint.special.mask
        return (torch.tensor([source]),), torch.tensor([labels])
    target, labels = torch.tensor([trace.target.ids]), torch.tensor([trace.prediction.ids])
    return (target,) if source is None else (torch.tensor([source]), target), labels


def _loss(model: Model, inputs: tuple[Tensor, ...], labels: Tensor) -> Tensor:
    logits = model(*inputs)
    return F.cross_entropy(logits.flatten(0, -2), labels.flatten(), ignore_index=IGNORED)


def _table(model: Model, stack: str) -> nn.Parameter:
    return getattr(model, stack).embedding.table.weight


def _blocks(model: Model, before: dict[nn.Parameter, nn.Parameter]) -> tuple[BlockGradient, ...]:
    """Return the gradient of ``model`` and its distance from ``before``, block by block.

    A next-sentence head is left out: the loss is that of masked tokens, and no gradient reaches the head.
    """
    found: dict[tuple[str, int | None, str], list[nn.Parameter]] = {}
    for name, parameter in model.described_parameters():
        stack, *path = name.split(".")
        if stack == "next_sentence":
            continue
        layer = int(path[1]) if path[0] == "layers" else None
        part = path[0] if layer is None else path[2]
        part = "norms" if layer is not None and part.endswith("_norm") else part
        found.setdefault((stack, layer, part), []).append(parameter)
    return tuple(
        BlockGradient(
            stack=stack,
            layer=layer,
            part=part,
            numbers=sum(parameter.numel() for parameter in parameters),
            gradient=_length([p.grad for p in parameters if p.grad is not None]),
            moved=_length([p.detach() - before[p].detach() for p in parameters]),
        )
        for (stack, layer, part), parameters in found.items()
    )


def _length(tensors: list[Tensor]) -> float:
    """Return the root of the sum of all squares in double precision; 0 for an empty list."""
    return sum(float(tensor.double().square().sum()) for tensor in tensors) ** 0.5


def _gradients_by_way(
    model: Model, inputs: tuple[Tensor, ...], labels: Tensor, stack: str
) -> tuple[Tensor, Tensor | None]:
    """Return ∂loss/∂E of one stack, [vocabulary, model] each: through lookups, and through the projection.

    They are computed on a copy whose projection has its own matrix; their sum is the gradient of a shared matrix.
    """
    model = widen(model.copy_sharing_weights(lambda _name: True))
    parts = [getattr(model, name) for name in ("encoder", "decoder") if hasattr(model, name)]
    projection = next((part.vocabulary_projection for part in parts if hasattr(part, "vocabulary_projection")), None)
    if projection is not None:
        # The last layer of a token head, or what computes in a guest.
        projection = model.network.get_output_embeddings() if model.is_guest else projection
        projection = getattr(projection, "projection", projection)
        projection.weight = nn.Parameter(projection.weight.detach().clone())
    with torch.inference_mode(False), torch.enable_grad():
        _loss(model, inputs, labels).backward()
    return _table(model, stack).grad, None if projection is None else projection.weight.grad


def _lengths(rows: Tensor) -> np.ndarray:
    return torch.linalg.vector_norm(rows, dim=-1).numpy()
