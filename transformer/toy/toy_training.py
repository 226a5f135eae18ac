"""Training of a tiny model on newly drawn words, which yields its state every few steps."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from transformer.runs.attention_view import AttentionView
from transformer.text.tokens import TokenSequence
from transformer.toy.learner import HEALTHY, Score, ToyLearner, toy_config
from transformer.toy.tasks import TASKS, Batch, Task, draw_batch, letter_ids

STEPS = {"copy": 600, "reverse": 1600, "sort": 600}
EXAMPLE = "gradient"
BATCH_SIZE = 48
N_HELD_OUT = 100
_WARM_UP = 50
_HELD_OUT_SEED = 2017
_CLIP = 1.0


@dataclass(frozen=True)
class ToyState:
    """State of a training run after ``step`` of ``steps`` steps.

    Attributes:
        score: Score on ``N_HELD_OUT`` words that are drawn once and never trained on.
        reported: Loss on the same words as computed in training; with a fault it differs from the loss in ``score``.
        attention: Cross-attention [head, query, key] of the example word while the right output is read.
        predicted: What the rows of ``attention`` predict.
        written: Output of the model for the example.
        learner: The model itself, which continues to learn.
    """

    step: int
    steps: int
    score: Score
    reported: float
    attention: AttentionView
    predicted: TokenSequence
    written: str
    learner: ToyLearner


def train_toy(
    task: str = "reverse",
    *,
    steps: int | None = None,
    seed: int = 0,
    n_heads: int = 1,
    learning_rate: float = 5e-3,
    positions: str = "sinusoidal",
    example: str = EXAMPLE,
    every: int = 20,
    fault: str = HEALTHY,
) -> Iterator[ToyState]:
    """Train a model of one encoder and one decoder layer on ``task``: "copy", "reverse" or "sort".

    A state is yielded before the first step, after every ``every`` steps and after the last. Further steps are made
    only when the next state is requested, so ``break`` stops the training. It uses Adam (Kingma & Ba 2015),
    ``BATCH_SIZE`` new words per step, and teacher forcing; the learning rate rises over 50 steps to ``learning_rate``
    and falls to 0 on a cosine.

    All random numbers come from generators of this run, seeded by ``seed``, so that runs in parallel threads give the
    same results as each one alone.

    Args:
        task: Name of the task.
        steps: Number of steps; ``STEPS[task]`` by default.
        seed: Seed of weights and words.
        n_heads: Number of heads.
        learning_rate: Peak of the learning rate.
        positions: Kind of positional encoding.
        example: Word that each state shows.
        every: Number of steps between states.
        fault: A fault in training, one of ``transformer.toy.learner.TRAINING_FAULTS``, or ``HEALTHY``.

    Raises:
        ValueError: If a setting is invalid.
        InputError: If the example is not a word.
        FloatingPointError: During training, if the loss is no longer a number.
    """
    if task not in TASKS:
        raise ValueError(f"task is {task!r}; choose one of {', '.join(TASKS)}")
    steps = STEPS[task] if steps is None else steps
    for name, value in (("steps", steps), ("every", every)):
        if value < 1:
            raise ValueError(f"{name} is {value}; it must be at least 1")
    if not 0 < learning_rate < math.inf:
        raise ValueError(f"learning_rate is {learning_rate}; a learning rate is greater than 0")
    letter_ids(example)
    config = toy_config(n_heads=n_heads, positions=positions)
    learner = ToyLearner(TASKS[task], config, torch.Generator().manual_seed(seed), fault=fault)
    return _train(learner, steps=steps, seed=seed, learning_rate=learning_rate, example=example, every=every)


def _train(
    learner: ToyLearner, *, steps: int, seed: int, learning_rate: float, example: str, every: int
) -> Iterator[ToyState]:
    words = torch.Generator().manual_seed(seed + 1_000_003)  # different from those of the weights
    held_out = held_out_words(learner.task)
    yield _state(learner, 0, steps, held_out, example)
    # The first optimizer of a process makes PyTorch import its compiler, for seconds: only when training begins.
    optimizer = torch.optim.Adam(learner.model.parameters(), betas=(0.9, 0.98))
    for step in range(1, steps + 1):
        for group in optimizer.param_groups:
            group["lr"] = _rate(step, peak=learning_rate, steps=steps)
        loss = learner.loss(draw_batch(learner.task, BATCH_SIZE, words))
        if not torch.isfinite(loss):
            raise FloatingPointError(
                f"the loss stopped being a number at step {step}; take a lower learning rate than {learning_rate:g}"
            )
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(learner.model.parameters(), _CLIP)
        optimizer.step()
        if step % every == 0 or step == steps:
            yield _state(learner, step, steps, held_out, example)


def held_out_words(task: Task) -> Batch:
    """Return the words that every training run of ``task`` is scored on, whatever its seed."""
    return draw_batch(task, N_HELD_OUT, torch.Generator().manual_seed(_HELD_OUT_SEED))


def _rate(step: int, *, peak: float, steps: int) -> float:
    if step <= _WARM_UP:
        return peak * step / _WARM_UP
    return 0.5 * peak * (1 + math.cos(math.pi * (step - _WARM_UP) / max(1, steps - _WARM_UP)))


def _state(learner: ToyLearner, step: int, steps: int, held_out: Batch, example: str) -> ToyState:
    attention, predicted = learner.attention(example)
    score = learner.score(held_out)
    return ToyState(
        step=step,
        steps=steps,
        score=score,
        reported=learner.reported_loss(held_out) if learner.fault != HEALTHY else score.loss,
        attention=attention,
        predicted=predicted,
        written=learner.generate(example),
        learner=learner,
    )
