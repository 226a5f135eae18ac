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
from transformer.training.objectives import Classification, MaskedTokenNextSentence, Objective
from transformer.training.text_tasks import TEXT_TASKS


@torch.inference_mode()
def dev_loss(objective: Objective, examples: Sequence[tuple], batch_tokens: int) -> float:
    """Return the mean loss per prediction, in nats, without label smoothing and dropout."""
    objective.eval()
    device = objective.model.device
    lengths = [max(len(part) for part in example if isinstance(part, list)) for example in examples]
    total, count = 0.0, 0
    generator = torch.Generator().manual_seed(0)  # the same masks at every evaluation
    for batch in length_batches(lengths, batch_tokens, seed=0, epoch=0):
        tensors = objective.collate([examples[index] for index in batch], generator)
        loss, predictions = objective({name: tensor.to(device) for name, tensor in tensors.items()})
        total, count = total + float(loss), count + predictions
    return total / count


@torch.inference_mode()
def dev_accuracy(objective: Classification, examples: Sequence[tuple], batch_tokens: int) -> float:
    """Return the share of texts whose most likely class is right."""
    model = objective.eval().model
    correct = 0
    for batch in length_batches([len(ids) for ids, _ in examples], batch_tokens, seed=0, epoch=0):
        tensors = objective.collate([examples[index] for index in batch], torch.Generator())
        best = model(tensors["ids"].to(model.device)).argmax(dim=-1).cpu()
        correct += int((best == tensors["class"]).sum())
    return correct / len(examples)


@torch.inference_mode()
def next_sentence_accuracy(model: Model, examples: Sequence[tuple], batch_tokens: int) -> float:
    """Return the share of encoded pairs whose most likely class is correct; nothing is masked.

    Raises:
        ValueError: If no example is a pair.
    """
    model.eval()
    pairs = [example for example in examples if example[1] != MaskedTokenNextSentence.NO_PAIR]
    if not pairs:
        raise ValueError(f"none of the {len(examples)} examples is a pair of sentences; give at least one")
    right = 0
    for batch in length_batches([len(ids) for ids, _ in pairs], batch_tokens, seed=0, epoch=0):
        ids, labels = zip(*(pairs[index] for index in batch), strict=True)
        best = model.next_sentence(model.encode(pad(ids, PAD_ID).to(model.device))).argmax(dim=-1)
        right += int((best.cpu() == torch.tensor(labels)).sum())
    return right / len(pairs)


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
