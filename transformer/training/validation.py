"""Scores on the ``dev`` split during training: loss, BLEU for translation, and accuracy."""

from collections.abc import Sequence
from statistics import fmean

import torch

from transformer.models import Model
from transformer.runs.batches import length_batches, pad
from transformer.runs.decoding_state import greedy_batch
from transformer.scores.bleu_and_chrf import corpus_scores
from transformer.text.tokenizer import END_ID, PAD_ID, Tokenizer
from transformer.training.corpora import group_references
from transformer.training.objectives import Classification, MaskedTokenNextSentence, Objective, length_of
from transformer.training.text_tasks import TEXT_TASKS


@torch.inference_mode()
def dev_loss(objective: Objective, examples: Sequence[tuple], batch_tokens: int) -> float:
    """Return the mean loss per prediction, in nats, without label smoothing and dropout."""
    objective.eval()
    device = objective.model.device
    lengths = [length_of(example) for example in examples]
    total, count = 0.0, 0
    generator = torch.Generator().manual_seed(0)  # the same masks at every evaluation
    for batch in length_batches(lengths, batch_tokens, seed=0, epoch=0):
        tensors = objective.collate([examples[index] for index in batch], generator)
        loss, predictions = objective({name: tensor.to(device) for name, tensor in tensors.items()})
        total, count = total + float(loss), count + predictions
    return total / count


@torch.inference_mode()
def dev_accuracy(
    objective: Classification | MaskedTokenNextSentence, examples: Sequence[tuple], batch_tokens: int
) -> float:
    """Return the share of examples whose most likely class is right; no token is masked.

    Texts that are not pairs of sentences have no class and do not count.

    Raises:
        ValueError: If no example has a class.
    """
    labelled = [example for example in examples if example[1] != MaskedTokenNextSentence.NO_PAIR]
    if not labelled:
        raise ValueError(f"none of the {len(examples)} examples is a pair of sentences; give at least one")
    objective.eval()
    right = 0
    for batch in length_batches([len(ids) for ids, _ in labelled], batch_tokens, seed=0, epoch=0):
        ids, labels = zip(*(labelled[index] for index in batch), strict=True)
        best = objective.classify(pad(ids, PAD_ID).to(objective.model.device)).argmax(dim=-1).cpu()
        right += int((best == torch.tensor(labels)).sum())
    return right / len(labelled)


def dev_bleu(model: Model, tokenizer: Tokenizer, pairs: Sequence[tuple[str, str]], n_sentences: int) -> float:
    """Return greedy BLEU (sacreBLEU) on the first ``n_sentences`` sources, with all references."""
    sources, references = group_references(pairs)
    sources, references = sources[:n_sentences], references[:n_sentences]
    return corpus_scores(greedy_texts(model, tokenizer, sources), references)["bleu"]


def dev_text_tasks(model: Model, tokenizer: Tokenizer, pairs: Sequence[tuple[str, str]], n_sentences: int) -> float:
    """Return the mean score over the model's tasks, as in GLUE (Wang et al. 2019).

    Scores are BLEU, or the percentage of exact outputs, of greedy outputs for the first ``n_sentences`` of each.
    """
    scores = []
    for prefix in model.config.task_prefixes:
        own = [pair for pair in pairs if pair[0].startswith(prefix)]
        if TEXT_TASKS[prefix].measure == "bleu":
            scores.append(dev_bleu(model, tokenizer, own, n_sentences))
        else:
            own = own[:n_sentences]
            answers = greedy_texts(model, tokenizer, [source for source, _ in own])
            scores.append(100 * fmean(answer == right for answer, (_, right) in zip(answers, own, strict=True)))
    return fmean(scores)


def greedy_texts(model: Model, tokenizer: Tokenizer, sources: Sequence[str]) -> list[str]:
    """Return the greedy output for each source."""
    answers = []
    for start in range(0, len(sources), 64):
        ids = [[*tokens, END_ID] for tokens in tokenizer.encode_many(sources[start : start + 64])]
        batch = pad(ids, PAD_ID).to(model.device)
        answers += [tokenizer.decode(row) for row in greedy_batch(model, batch, batch.shape[1] * 2 + 10)]
    return answers
