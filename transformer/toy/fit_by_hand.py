"""Find the weights of the sheet (``transformer.toy.by_hand``): numbers with one decimal.

python -m transformer.toy.fit_by_hand        # writes by_hand.toml; some ten minutes on one core

Many models are trained at once on the parts of four sentences, from different random weights. Each reads its weights
rounded to one decimal, while the gradient passes the rounding unchanged (Bengio, Léonard & Courville 2013). The loss
asks for four things: the next word with one head and with two, but never with certainty; attention from a verb to its
subject, and from "the" to the word that decides what follows; small weights, many of them 0; γ near 1. The best model
is kept.
"""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.func import functional_call, vmap

from transformer.disk.whole_files import write_text
from transformer.models import Model
from transformer.probes import record
from transformer.toy.by_hand import FILE, HEAD_COUNTS, MAX_WORDS, PARAMETERS, TRANSPOSED, empty_model

WORDS = {
    "en": ("the", "cat", "dog", "sat", "saw", "on", "mat", "."),
    "fr": ("le", "chat", "chien", "dort", "voit", "sur", "tapis", "."),
}
SENTENCES = (
    "the cat sat on the mat .",
    "the dog sat on the mat .",
    "the cat saw the dog .",
    "the dog saw the cat .",
)
OPENS_WITH = ("the", "cat", "sat", "on", "the")
STARTS = (0, 1, 2)  # words of a sentence that a text may begin with
ANIMALS, VERBS = ("cat", "dog"), ("sat", "saw")
STRESS = 3.0  # factor of the loss where the next word depends on attention: after a "the" that is not the first word
ATTENTION = 0.15  # factor of the loss on attention
SPREAD = 0.3  # share of the wanted attention that is spread over all words that are not masked
DOUBT = 0.15  # share of each target distribution that is spread over all words
LARGEST = 1.5  # weights beyond it are penalised
_WEIGHTS = "decoder.layers.0.self_attention.weights"

Weights = dict[str, Tensor]  # parameters by name, whose first axis is the model


@dataclass(frozen=True)
class Task:
    """The inputs and targets of the models.

    Attributes:
        read: Word ids, [text, position]; a shorter text is filled up with word 0, on which nothing depends.
        targets: The distribution of the next word, [text, position, word].
        stress: Factor of each position's loss, [text, position]; the sum is 1.
        wanted: Triples (text, query, key): where head 0 of one should attend.
        verbs: Those of ``wanted`` whose query is a verb, which head 0 of two should do as well.
    """

    read: Tensor
    targets: Tensor
    stress: Tensor
    wanted: Tensor
    verbs: Tensor


def make_task() -> Task:
    """Make texts that begin with the first, second or third word of a sentence.

    So a position alone predicts nothing: the last "the" occurs at every position. A beginning that several texts share
    counts once, and its next words share the probability.
    """
    texts = sorted({tuple(sentence.split()[start:]) for sentence in SENTENCES for start in STARTS})
    following: dict[tuple[str, ...], list[str]] = {}
    for text in texts:
        for end in range(1, min(len(text), MAX_WORDS + 1)):
            following.setdefault(text[:end], []).append(text[end])
    words = WORDS["en"]
    read = torch.zeros(len(texts), MAX_WORDS, dtype=torch.long)
    targets = torch.full((len(texts), MAX_WORDS, len(words)), 1 / len(words))
    stress = torch.zeros(len(texts), MAX_WORDS)
    wanted = []
    for number, text in enumerate(texts):
        for place, word in enumerate(text[:MAX_WORDS]):
            read[number, place] = words.index(word)
            if place + 1 == len(text):
                continue
            after = following[text[: place + 1]]
            counts = torch.tensor([after.count(word) / len(after) for word in words])
            targets[number, place] = counts * (1 - DOUBT) + DOUBT / len(words)
            stress[number, place] = (STRESS if word == "the" and place else 1.0) / len(after)
            if (key := _wanted_key(text, place)) is not None:
                wanted.append((number, place, key))
    verbs = [each for each in wanted if texts[each[0]][each[1]] in VERBS]
    return Task(read, targets, stress / stress.sum(), torch.tensor(wanted).T, torch.tensor(verbs).T)


def _wanted_key(text: tuple[str, ...], query: int) -> int | None:
    """Return where a word should attend: a verb to its subject, "the" to "on" or to the subject of "saw"."""
    before = text[query - 1] if query else ""
    if text[query] in VERBS and before in ANIMALS:
        return query - 1
    if text[query] == "the" and before == "on":
        return query - 1
    if text[query] == "the" and before == "saw" and query > 1:
        return query - 2
    return None


def round_to_tenths(weights: Tensor) -> Tensor:
    """Round to one decimal; the gradient passes unchanged."""
    return weights + (torch.round(weights * 10) / 10 - weights).detach()


def fit(*, models: int, steps: int, seed: int = 0, sparsity: float = 1.5e-3) -> tuple[Tensor, Weights]:
    """Train several models at once.

    Args:
        models: Number of models, each with its own random initial weights.
        steps: Steps of Adam; rounding begins after a third of them.
        seed: Seed of all random weights.
        sparsity: Weight of the penalty Σ|w|.

    Returns:
        The lowest loss of each model, and its rounded weights at that step.
    """
    task = make_task()
    shared = {count: empty_model(count) for count in HEAD_COUNTS}
    weights = _initial(shared[1], models, torch.Generator().manual_seed(seed))
    optimiser = torch.optim.Adam([each for each in weights.values() if each.requires_grad], lr=3e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps, eta_min=1e-3)
    best, kept = torch.full((models,), torch.inf), {name: each.detach().clone() for name, each in weights.items()}
    for step in range(steps):
        used = {name: round_to_tenths(each) if step > steps // 3 else each for name, each in weights.items()}
        loss = _penalty(weights, sparsity)
        for model in shared.values():
            loss = loss + _task_loss(model, used, task)
        optimiser.zero_grad()
        loss.sum().backward()
        optimiser.step()
        schedule.step()
        if step > steps // 2:
            better = loss.detach() < best
            best = torch.where(better, loss.detach(), best)
            for name, each in kept.items():
                each[better] = used[name].detach()[better]
    return best, kept


def _initial(model: Model, models: int, generator: torch.Generator) -> Weights:
    """Draw random weights; the biases of attention, which the paper does not have, are 0 and stay 0."""
    weights = {}
    for name, parameter in model.named_parameters():
        drawn = 0.6 * torch.randn(models, *parameter.shape, generator=generator)
        if name.endswith("norm.weight"):
            drawn = torch.ones_like(drawn)
        elif name.endswith("bias"):
            drawn = torch.zeros_like(drawn)
        fixed = "self_attention." in name and name.endswith("bias")
        weights[name] = drawn.requires_grad_(not fixed)
    return weights


def _task_loss(model: Model, weights: Weights, task: Task) -> Tensor:
    """Return the cross-entropy of the next word and of the attention of head 0, [model]."""

    def run(one: Weights) -> tuple[Tensor, Tensor]:
        with record(names=[_WEIGHTS]) as recording:
            logits = functional_call(model, one, (task.read,))
        return logits, recording.tensors[_WEIGHTS]

    logits, attention = vmap(run)(weights)  # [model, text, position, word]; [model, text, head, query, key]
    loss = -((task.targets * torch.log_softmax(logits, dim=-1)).sum(-1) * task.stress).sum((1, 2))
    text, query, key = task.wanted if model.config.n_heads == 1 else task.verbs
    logarithms = torch.log(attention[:, text, 0, query] + 1e-6)  # [model, wanted, key]
    allowed = torch.arange(MAX_WORDS) <= query[:, None]
    spread = (logarithms * allowed).sum(-1) / allowed.sum(-1)
    chosen = logarithms.gather(2, key[None, :, None].expand(len(loss), -1, 1))[..., 0]
    return loss - ATTENTION * ((1 - SPREAD) * chosen + SPREAD * spread).mean(1)


def _penalty(weights: Weights, sparsity: float) -> Tensor:
    """Return the penalty on large weights, on those that are not 0, and on γ other than 1, [model]."""
    total = torch.zeros(())
    for name, each in weights.items():
        scale = name.endswith("norm.weight")
        distance = 3 * (each - 1).abs() if scale else each.abs()
        total = total + sparsity * distance.flatten(1).sum(1) + 0.3 * torch.relu(each.abs() - LARGEST).flatten(1).sum(1)
    return total


def as_toml(weights: Weights, model: int) -> str:
    """Write the weights of one model as the text of ``by_hand.toml``."""
    lines = ["# The weights of transformer/toy/by_hand.py, found by transformer/toy/fit_by_hand.py.", ""]
    lines += [f"text = {_list(OPENS_WITH)}", "", "[words]"]
    lines += [f"{language} = {_list(words)}" for language, words in WORDS.items()]
    lines += ["", "[parameters]  # matrices as in x W + b: one row per input, one column per output"]
    for name, path in PARAMETERS.items():
        matrix = weights[path][model]
        matrix = matrix.T if name in TRANSPOSED else matrix.reshape(-1, matrix.shape[-1])
        rows = [f"  [{', '.join(f'{value + 0.0:4.1f}' for value in row)}]," for row in matrix.tolist()]
        lines += [f"{name} = [", *rows, "]"]
    return "\n".join(lines).replace("-0.0", " 0.0") + "\n"


def _list(words: tuple[str, ...]) -> str:
    return json.dumps(words, ensure_ascii=False)


def main(file: Path = FILE, *, models: int = 48, steps: int = 2500) -> None:
    """Fit the models, and write the best one to ``file``."""
    losses, weights = fit(models=models, steps=steps)
    best = int(losses.argmin())
    write_text(file, as_toml(weights, best))
    print(f"model {best} of {models}: loss {losses[best]:.3f}; written to {file}", file=sys.stderr)


if __name__ == "__main__":
    main()
