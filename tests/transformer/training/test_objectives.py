"""Losses equal their definition, for batches whose sentences differ in length."""

from __future__ import annotations

import copy
import functools
import math

import pytest
import torch
from torch.nn import functional as F

from tests.transformer.tiny import random_model
from transformer import Tokenizer
from transformer.models import DecoderOnly, Model
from transformer.probes import record
from transformer.text.tokenizer import END_ID, MASK_ID, PAD_ID, START_ID
from transformer.training.attention_entropy import mean_entropy, price
from transformer.training.objectives import (
    Classification,
    MaskedToken,
    MaskedTokenNextSentence,
    NextToken,
    Objective,
    PackedNextToken,
    Teacher,
    Translation,
)
from transformer.training.validation import dev_accuracy, dev_loss

PAIRS = [([4, 9, 2], [1, 7, 2]), ([4, 5, 6, 7, 8, 2], [1, 11, 12, 13, 14, 2]), ([9, 2], [1, 20, 2])]
TEXTS = [([1, 4, 9, 2],), ([1, 5, 6, 7, 8, 10, 2],), ([1, 9, 2],)]
CASES = {
    "encoder-decoder": (Translation, PAIRS),
    "decoder-only": (NextToken, TEXTS),
    "encoder-only": (MaskedToken, TEXTS),
}


def loss_of(objective: Objective, examples: list[tuple]) -> tuple[float, int]:
    with torch.inference_mode():
        loss, predictions = objective.eval()(objective.collate(examples, torch.Generator().manual_seed(0)))
    return float(loss), predictions


def minus_log_p(logits: torch.Tensor, answers: list[int]) -> float:
    """−Σ log p(answer), one token at a time."""
    return -sum(float(torch.log_softmax(row, dim=-1)[answer]) for row, answer in zip(logits, answers, strict=True))


def test_translation_sums_over_real_target_tokens() -> None:
    model = random_model()
    expected, count = 0.0, 0
    for source, target in PAIRS:
        with torch.inference_mode():
            logits = model(torch.tensor([source]), torch.tensor([target[:-1]]))[0]
        expected, count = expected + minus_log_p(logits, target[1:]), count + len(target) - 1
    loss, predictions = loss_of(Translation(model), PAIRS)
    assert predictions == count
    assert loss == pytest.approx(expected, rel=1e-5)


ROW = 96  # tokens


@functools.cache
def reader_of_rows() -> DecoderOnly:
    return random_model.__wrapped__("decoder-only", vocabulary_size=200, max_length=ROW)


def packed(n_texts: int, seed: int = 0, progress: float = 0.0) -> tuple[PackedNextToken, torch.Tensor, dict]:
    """Return the objective in training, with texts in rows of 1 + ``ROW``, and the batch made of them."""
    objective = PackedNextToken(reader_of_rows())
    objective.progress = progress
    examples = [([1, *(5 + (7 * text + place) % 190 for place in range(9)), 2],) for text in range(n_texts)]
    batch = objective.train().collate(examples, torch.Generator().manual_seed(seed))
    per_row = -(-(1 + ROW) // 11)  # texts of 11 tokens, the last one cut
    text = torch.tensor([id for (ids,) in examples[: n_texts // per_row * per_row] for id in ids])
    return objective, text.view(-1, per_row * 11)[:, : 1 + ROW], batch


def is_random(batch: dict) -> bool:
    return bool((batch["answers"] == PAD_ID).any())


def test_packed_rows_are_the_texts_end_to_end_and_in_some_a_passage_comes_a_second_time() -> None:
    objective, rows, batch = next(
        made for seed in range(100) if not is_random((made := packed(4000, seed, progress=1.0))[2])
    )
    ids, answers = batch["ids"], batch["answers"]
    assert ids.shape == answers.shape == (len(rows), ROW)
    assert (ids[:, 0] == START_ID).all()
    assert torch.equal(ids[:, 1:], answers[:, :-1]), "a row is answered by its next token"
    changed = [(row, text) for row, text in zip(answers, rows[:, 1:], strict=True) if not torch.equal(row, text)]
    share = objective.REPEATED_TEXT
    assert len(changed) / len(rows) == pytest.approx(share, abs=4 * math.sqrt(share * (1 - share) / len(rows)))
    for row, text in changed:
        other = (row != text).nonzero()[:, 0]
        passage = row[other[0] : other[-1] + 1]
        assert any(torch.equal(text[k : k + len(passage)], passage) for k in range(other[0])), "it stood before"


@pytest.mark.parametrize(("progress", "longest"), [(0.0, 24), (0.5, 48), (1.0, ROW)])
def test_random_rows_ask_a_passage_that_came_before_and_are_short_at_first(progress, longest) -> None:
    least = PackedNextToken.SHORTEST_PASSAGE
    batches = [packed(60, seed, progress)[2] for seed in range(150)]
    lengths, distances = set(), set()
    for batch in filter(is_random, batches):
        ids, answers = batch["ids"], batch["answers"]
        lengths.add(ids.shape[1])
        assert (ids[:, 0] == START_ID).all() and (ids[:, 1:] >= 4).all()
        for row, asked in zip(ids, answers, strict=True):
            places = (asked != PAD_ID).nonzero()[:, 0]
            first, last = int(places[0]), int(places[-1])
            assert places.tolist() == list(range(first, last + 1)), "one passage"
            assert torch.equal(row[first + 1 : last + 1], asked[first:last]), "answered by its next token"
            passage = torch.cat([row[first : first + 1], asked[first : last + 1]])
            assert least <= len(passage) <= ids.shape[1] // 2
            before = [k for k in range(first) if torch.equal(row[k : k + len(passage)], passage)]
            assert before, "it can be foretold"
            distances.add(first - before[-1])
    assert 24 <= min(lengths) and longest / 2 < max(lengths) <= longest
    assert len(distances) > longest / 3, "no distance is the rule"


def test_packed_loss_is_that_of_the_rows_and_dev_is_read_as_by_next_token() -> None:
    objective, _, batch = packed(40)
    with torch.inference_mode():
        logits = objective.model.eval()(batch["ids"])
        asked = batch["answers"] != PAD_ID
        expected = minus_log_p(logits[asked], batch["answers"][asked].tolist())
        loss, predictions = objective.eval()(batch)
    assert (predictions, float(loss)) == (int(asked.sum()), pytest.approx(expected, rel=1e-5))
    assert loss_of(objective, TEXTS) == loss_of(NextToken(objective.model), TEXTS)


def test_classification_sums_over_texts() -> None:
    model = random_model("encoder-only", class_names=("bad", "good"))
    examples = [(ids, index % 2) for index, (ids,) in enumerate(TEXTS)]
    expected = 0.0
    for ids, label in examples:
        with torch.inference_mode():
            expected += minus_log_p(model(torch.tensor([ids])), [label])
    assert loss_of(Classification(model), examples) == (pytest.approx(expected, rel=1e-5), 3)


def test_label_smoothing_is_for_training_only() -> None:
    """With smoothing ε the target is (1 − ε) one-hot + ε / V everywhere (Szegedy et al. 2016, §7)."""
    model = random_model("decoder-only", dropout=0.0)
    epsilon, vocabulary = 0.3, 23
    smoothed, plain = NextToken(model, epsilon), NextToken(model, 0.0)
    assert loss_of(smoothed, TEXTS) == loss_of(plain, TEXTS)
    smoothed.training = True
    batch = plain.collate(TEXTS, torch.Generator())
    with torch.inference_mode():
        loss, _ = smoothed(batch)
        log_p = F.log_softmax(model(batch["ids"][:, :-1]), dim=-1)
    answers = batch["ids"][:, 1:]
    target = (1 - epsilon) * F.one_hot(answers, vocabulary) + epsilon / vocabulary
    expected = -(target * log_p).sum(dim=-1)[answers != PAD_ID].sum()
    assert float(loss) == pytest.approx(float(expected), rel=1e-5)


# ---- masking --------------------------------------------------------------------------------------------------------


def test_masking_follows_the_paper() -> None:
    ids = torch.randint(4, 400, (200, 50), generator=torch.Generator().manual_seed(0))
    examples = [([START_ID, *row, END_ID],) for row in ids.tolist()] + [([START_ID, 5, END_ID],)]
    objective = MaskedToken(random_model("encoder-only", vocabulary_size=400))
    batch = objective.collate(examples, torch.Generator().manual_seed(1))
    original = torch.tensor([[*ids, *[PAD_ID] * (52 - len(ids))] for (ids,) in examples])
    chosen = batch["answers"] != PAD_ID
    assert torch.equal(batch["answers"][chosen], original[chosen])
    assert torch.equal(batch["ids"][~chosen], original[~chosen])
    assert not chosen[original < 4].any(), "special tokens and padding are never asked for"
    n_words = int((original >= 4).sum())
    share = int(chosen.sum()) / n_words
    assert share == pytest.approx(0.25, abs=4 * math.sqrt(0.25 * 0.75 / n_words))
    masked = batch["ids"][chosen] == MASK_ID
    kept = batch["ids"][chosen] == original[chosen]
    n_chosen = int(chosen.sum())
    for part, expected in ((masked, 0.8), (kept, 0.1), (~masked & ~kept, 0.1)):
        assert float(part.float().mean()) == pytest.approx(expected, abs=4 * math.sqrt(0.16 / n_chosen))
    others = batch["ids"][chosen][~masked & ~kept]
    assert (others >= 4).all()
    assert others.unique().numel() > 20


def test_a_classifier_sees_less_of_a_text_while_it_trains() -> None:
    objective = Classification(random_model.__wrapped__("encoder-only", class_names=("bad", "good")))
    examples = [([START_ID, *range(4, 20), END_ID], 1)] * 40
    whole = objective.eval().collate(examples, torch.Generator().manual_seed(0))["ids"]
    seen = objective.train().collate(examples, torch.Generator().manual_seed(0))["ids"]
    assert whole.tolist() == [ids for ids, _ in examples]
    hidden = seen == MASK_ID
    assert torch.equal(seen[~hidden], whole[~hidden])
    assert not hidden[:, [0, -1]].any()
    n_tokens = 40 * 16
    assert int(hidden.sum()) / n_tokens == pytest.approx(0.2, abs=4 * math.sqrt(0.2 * 0.8 / n_tokens))


# ---- texts to ids ---------------------------------------------------------------------------------------------------


def test_examples_are_encoded_with_their_special_tokens(tiny_tokenizer: Tokenizer) -> None:
    encode = tiny_tokenizer.encode
    assert Translation.encode(tiny_tokenizer, [("The cat", "Le chat", "ignored")]) == [
        ([*encode("The cat"), END_ID], [START_ID, *encode("Le chat"), END_ID])
    ]
    expected = ([START_ID, *encode("The cat"), END_ID],)
    assert NextToken.encode(tiny_tokenizer, [("The cat",)]) == [expected]
    assert MaskedToken.encode(tiny_tokenizer, [("The cat",)]) == [expected]
    assert Classification.encode(tiny_tokenizer, [("The cat", 1)]) == [(expected[0], 1)]
    assert MaskedTokenNextSentence.encode(tiny_tokenizer, [("The cat", "The dog.", 1), ("Stop!",)]) == [
        ([*expected[0], *encode("The dog."), END_ID], 1),
        ([START_ID, *encode("Stop!"), END_ID], MaskedTokenNextSentence.NO_PAIR),
    ]


# ---- scores on dev --------------------------------------------------------------------------------------------------


def test_dev_loss_is_the_mean_per_prediction_whatever_the_batches() -> None:
    objective = Translation(random_model(), label_smoothing=0.3)
    total, count = loss_of(objective, PAIRS)
    for batch_tokens in (6, 12, 100):
        assert dev_loss(objective, PAIRS, batch_tokens) == pytest.approx(total / count, rel=1e-5)
    assert not objective.training


def test_dev_accuracy_reads_whole_texts() -> None:
    """Check this with a new objective in training mode as well: word dropout is for training only."""
    model = random_model.__wrapped__("encoder-only", class_names=("bad", "good"))
    texts = [[START_ID, *(4 + (start + i) % 18 for i in range(12)), END_ID] for start in range(60)]
    with torch.inference_mode():
        examples = [(ids, int(model(torch.tensor([ids])).argmax())) for ids in texts]
    assert dev_accuracy(Classification(model).train(), examples, 100) == 1.0


ALONE = MaskedTokenNextSentence.NO_PAIR
SENTENCES = [
    ([1, 4, 9, 2, 7, 8, 2], 0),
    ([1, 5, 6, 7, 8, 10, 2], ALONE),
    ([1, 9, 2, 5, 2], 1),
]


def test_the_next_sentence_adds_its_mean_to_the_mean_of_masked_tokens() -> None:
    """As torch computes both, in ``fast_path`` and from the model's own logits."""
    model = random_model("encoder-only", n_segments=2)
    objective = MaskedTokenNextSentence(model).eval()
    batch = objective.collate(SENTENCES, torch.Generator().manual_seed(3))
    assert batch["next_sentence"].tolist() == [0, -100, 1]
    with torch.inference_mode():
        loss, predictions = objective(batch)
        logits = model(batch["ids"])
        pairs = model.next_sentence(model.encode(batch["ids"]))
    masked = F.cross_entropy(logits.flatten(0, 1), batch["answers"].flatten(), ignore_index=PAD_ID)
    labels = torch.tensor([0, 1])
    followed = F.cross_entropy(pairs[[0, 2]], labels, reduction="sum") / len(SENTENCES)
    assert predictions == int((batch["answers"] != PAD_ID).sum()) > 0
    assert float(loss) / predictions == pytest.approx(float(masked + followed), rel=1e-5)


def test_next_sentence_accuracy_counts_pairs_alone() -> None:
    model = random_model("encoder-only", n_segments=2)
    objective = MaskedTokenNextSentence(model)
    pairs = [ids for ids, label in SENTENCES if label >= 0]
    with torch.inference_mode():
        best = [int(model.next_sentence(model.encode(torch.tensor([ids]))).argmax()) for ids in pairs]
    right = [(ids, label) for ids, label in zip(pairs, best, strict=True)]
    alone = (TEXTS[0][0], ALONE)
    assert dev_accuracy(objective, [*right, alone], 100) == 1.0
    assert dev_accuracy(objective, [right[0], (pairs[1], 1 - best[1]), alone], 100) == 0.5
    with pytest.raises(ValueError, match="none of the 1 examples is a pair"):
        dev_accuracy(objective, [alone], 100)


# ---- a teacher model ------------------------------------------------------------------------------------------------


def quiet(kind: str, seed: int) -> torch.nn.Module:
    torch.manual_seed(seed)
    model = copy.deepcopy(random_model(kind, dropout=0.0))
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


@pytest.mark.parametrize("kind", CASES)
@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0])
def test_the_loss_with_a_teacher_is_that_of_the_formula(kind: str, weight: float) -> None:
    objective_of, examples = CASES[kind]
    objective, teacher = objective_of(quiet(kind, 1), 0.1), objective_of(quiet(kind, 2))
    batch = objective.collate(examples, torch.Generator().manual_seed(0))
    objective.teacher = Teacher(teacher, weight)
    loss, count = objective.train()(batch)
    with torch.no_grad():
        hidden, targets = objective.hidden_and_targets(batch)
        logits = objective.model.project(hidden).double()
        q = teacher.model.project(teacher.hidden_and_targets(batch)[0]).double().softmax(dim=-1)
    text = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none", label_smoothing=0.1)
    taught = -(q * logits.log_softmax(dim=-1)).sum(dim=-1)
    rows = targets != PAD_ID
    assert count == int(rows.sum())
    assert float(loss) == pytest.approx(float(((1 - weight) * text + weight * taught)[rows].sum()), rel=1e-4)


def test_only_the_student_learns_and_only_while_training() -> None:
    objective, teacher = (NextToken(quiet("decoder-only", seed)) for seed in (1, 2))
    batch = objective.collate(TEXTS, torch.Generator())
    plain = float(objective.eval()(batch)[0])
    objective.teacher = Teacher(teacher, 0.5)
    assert float(objective(batch)[0]) == pytest.approx(plain, rel=1e-6)
    objective.train()(batch)[0].backward()
    assert all(parameter.grad is None for parameter in teacher.parameters())
    assert all(parameter.grad is not None for parameter in objective.parameters())
    assert not any("teacher" in name for name, _ in objective.named_parameters())


# ---- the penalty on spread attention --------------------------------------------------------------------------------


def entropy_by_a_loop(model: Model, rows: list[list[torch.Tensor]]) -> float:
    """Compute it sentence by sentence without padding, one row of a head at a time."""
    found = []
    for inputs in rows:
        with torch.no_grad(), record() as recording:
            model(*inputs)
        for name, weights in recording.tensors.items():
            if name.endswith("_attention.weights"):
                allowed = recording.tensors[name.replace(".weights", ".allowed")][0]
                for query, row in ((query, row) for head in weights[0] for query, row in enumerate(head)):
                    if (n_keys := int(allowed[query].sum())) > 1:
                        found.append(-sum(float(w) * math.log(float(w)) for w in row if w > 0) / math.log(n_keys))
    return math.fsum(found) / len(found)


def recorded_entropy(objective: Objective, batch: dict[str, torch.Tensor]) -> float:
    with torch.no_grad(), record() as recording:
        objective.hidden_and_targets(batch)
    return float(mean_entropy(objective.model, recording))


@pytest.mark.parametrize("kind", CASES)
def test_the_entropy_is_that_of_a_plain_loop_over_sentences_without_padding(kind: str) -> None:
    objective_of, examples = CASES[kind]
    objective = objective_of(random_model(kind)).eval()
    batch = objective.collate(examples, torch.Generator().manual_seed(0))
    # Shorter texts also have their last token, before the padding.
    read = max(len(example[-1]) for example in examples) - 1
    if kind == "encoder-only":  # the batch as shown, with its masks
        rows = [[row[None, : len(ids)]] for row, (ids,) in zip(batch["ids"], examples, strict=True)]
    else:
        rows = [[*(torch.tensor([ids]) for ids in before), torch.tensor([last[:read]])] for *before, last in examples]
    expected = entropy_by_a_loop(objective.model, rows)
    assert 0.1 < expected < 0.999
    assert recorded_entropy(objective, batch) == pytest.approx(expected, rel=1e-4)


def test_it_is_paid_for_every_prediction_while_training_only() -> None:
    objective = NextToken(copy.deepcopy(random_model("decoder-only", dropout=0.0)))
    batch = objective.collate(TEXTS, torch.Generator())
    plain, count = objective.train()(batch)
    objective.entropy, objective.progress = (lambda progress: 2.0 * progress), 0.25
    loss, same = objective(batch)
    assert count == same
    assert float(loss - plain) == pytest.approx(0.5 * recorded_entropy(objective, batch) * count, rel=1e-3)
    assert float(objective.eval()(batch)[0]) == pytest.approx(float(plain), rel=1e-6)


def test_the_price_falls_to_nothing_at_the_end() -> None:
    assert [price(0.4, 0.5, progress) for progress in (0.0, 0.5, 0.75, 1.0)] == pytest.approx([0.4, 0.4, 0.2, 0.0])
    assert [price(0.4, 0.0, progress) for progress in (0.0, 0.5, 1.0)] == pytest.approx([0.4, 0.2, 0.0])
