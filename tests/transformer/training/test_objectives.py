"""Losses equal their definition, for batches whose sentences differ in length."""

from __future__ import annotations

import functools
import math

import pytest
import torch
from torch.nn import functional as F

from tests.transformer.tiny import random_model
from transformer import Tokenizer
from transformer.models import DecoderOnly
from transformer.text.tokenizer import END_ID, MASK_ID, PAD_ID, START_ID
from transformer.training.objectives import (
    OBJECTIVES,
    Classification,
    MaskedToken,
    MaskedTokenNextSentence,
    NextToken,
    Objective,
    PackedNextToken,
    Translation,
)
from transformer.training.recipe import TASKS
from transformer.training.validation import dev_accuracy, dev_loss, next_sentence_accuracy

PAIRS = [([4, 9, 2], [1, 7, 2]), ([4, 5, 6, 7, 8, 2], [1, 11, 12, 13, 14, 2]), ([9, 2], [1, 20, 2])]
TEXTS = [([1, 4, 9, 2],), ([1, 5, 6, 7, 8, 10, 2],), ([1, 9, 2],)]
GENERATOR = torch.Generator()


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


def test_next_token_sums_over_real_tokens() -> None:
    model = random_model("decoder-only")
    expected, count = 0.0, 0
    for (ids,) in TEXTS:
        with torch.inference_mode():
            logits = model(torch.tensor([ids[:-1]]))[0]
        expected, count = expected + minus_log_p(logits, ids[1:]), count + len(ids) - 1
    loss, predictions = loss_of(NextToken(model), TEXTS)
    assert (predictions, loss) == (count, pytest.approx(expected, rel=1e-5))


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


@pytest.mark.parametrize(("progress", "random"), [(0.0, 0.8), (0.5, 0.275), (1.0, 0.1)])
def test_as_many_batches_are_random_as_the_progress_of_the_run_says(progress, random) -> None:
    batches = [packed(20, seed, progress) for seed in range(100)]
    assert batches[0][0].random_share == pytest.approx(random)
    share = sum(is_random(batch) for _, _, batch in batches) / len(batches)
    assert share == pytest.approx(random, abs=4 * math.sqrt(random * (1 - random) / len(batches)))


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


def test_masked_token_sums_over_the_hidden_tokens_only() -> None:
    model = random_model("encoder-only")
    examples = [([1, *range(4, 20), 2],), ([1, *range(4, 12), 2],)] * 3
    batch = MaskedToken(model).collate(examples, torch.Generator().manual_seed(0))
    with torch.inference_mode():
        logits = model(batch["ids"])
    asked = batch["answers"] != PAD_ID
    assert asked.any()
    expected = minus_log_p(logits[asked], batch["answers"][asked].tolist())
    loss, predictions = loss_of(MaskedToken(model), examples)
    assert (predictions, loss) == (int(asked.sum()), pytest.approx(expected, rel=1e-5))


def test_classification_sums_over_texts() -> None:
    model = random_model("encoder-only", class_names=("bad", "good"))
    examples = [(ids, index % 2) for index, (ids,) in enumerate(TEXTS)]
    expected = 0.0
    for ids, label in examples:
        with torch.inference_mode():
            expected += minus_log_p(model(torch.tensor([ids])), [label])
    assert loss_of(Classification(model), examples) == (pytest.approx(expected, rel=1e-5), 3)


def test_blocks_of_the_projection_change_nothing() -> None:
    """More predictions than fit into one block."""
    model = random_model("decoder-only")
    examples = [([1, *([4 + index % 17] * 20), 2],) for index in range(60)]
    loss, predictions = loss_of(NextToken(model), examples)
    assert predictions == 60 * 21 > 1024
    one_by_one = sum(loss_of(NextToken(model), [example])[0] for example in examples)
    assert loss == pytest.approx(one_by_one, rel=1e-5)


def test_label_smoothing_is_for_training_only() -> None:
    """With smoothing ε the target is (1 − ε) one-hot + ε / V everywhere (Szegedy et al. 2016, §7)."""
    model = random_model("decoder-only", dropout=0.0)
    epsilon, vocabulary = 0.3, 23
    smoothed, plain = NextToken(model, epsilon), NextToken(model, 0.0)
    assert loss_of(smoothed, TEXTS) == loss_of(plain, TEXTS)
    smoothed.training = True
    batch = plain.collate(TEXTS, GENERATOR)
    with torch.inference_mode():
        loss, _ = smoothed(batch)
        log_p = F.log_softmax(model(batch["ids"][:, :-1]), dim=-1)
    answers = batch["ids"][:, 1:]
    target = (1 - epsilon) * F.one_hot(answers, vocabulary) + epsilon / vocabulary
    expected = -(target * log_p).sum(dim=-1)[answers != PAD_ID].sum()
    assert float(loss) == pytest.approx(float(expected), rel=1e-5)


def test_gradients_reach_every_parameter_that_can_matter() -> None:
    model = random_model.__wrapped__(tie_embeddings=False).train()
    objective = Translation(model, 0.1).train()
    loss, _ = objective(objective.collate(PAIRS, GENERATOR))
    loss.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        # A key bias adds the same to all scores of a row, which cancels in the softmax.
        if not name.endswith("key_projection.bias"):
            assert (parameter.grad != 0).any(), name


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


def test_a_replacement_comes_from_the_whole_vocabulary() -> None:
    """Check that this holds at the highest position of the batch as well."""
    objective = MaskedToken(random_model("encoder-only", vocabulary_size=400))
    batch = objective.collate([([START_ID, *([5] * 60), END_ID],)] * 50, torch.Generator().manual_seed(1))
    assert int(batch["ids"].max()) > 300


def test_the_same_generator_hides_the_same_tokens() -> None:
    examples = [([1, *range(4, 40), 2],)] * 4
    objective = MaskedToken(random_model("encoder-only", vocabulary_size=40))
    one, same, other = (objective.collate(examples, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2))
    assert torch.equal(one["ids"], same["ids"])
    assert not torch.equal(one["answers"], other["answers"])


def test_a_batch_in_which_nothing_is_hidden_gives_no_loss() -> None:
    objective = MaskedToken(random_model("encoder-only"))
    with torch.inference_mode():
        loss, predictions = objective({"ids": torch.tensor([[1, 4, 2]]), "answers": torch.tensor([[0, 0, 0]])})
    assert (float(loss), predictions) == (0.0, 0)


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


def test_the_base_class_does_nothing_by_itself() -> None:
    objective = Objective(random_model())
    for call in (
        lambda: objective.encode(None, []),
        lambda: objective.collate([], GENERATOR),
        lambda: objective.hidden_and_targets({}),
    ):
        with pytest.raises(NotImplementedError):
            call()
    assert set(OBJECTIVES) == set(TASKS)


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


def test_dev_accuracy_counts_texts() -> None:
    model = random_model("encoder-only", class_names=("bad", "good"))
    with torch.inference_mode():
        best = [int(model(torch.tensor([ids])).argmax()) for (ids,) in TEXTS]
    right = [(ids, label) for (ids,), label in zip(TEXTS, best, strict=True)]
    assert dev_accuracy(Classification(model), right, 8) == 1.0
    wrong = [(right[0][0], 1 - right[0][1]), *right[1:]]
    assert dev_accuracy(Classification(model), wrong, 8) == pytest.approx(2 / 3)


ALONE = MaskedTokenNextSentence.NO_PAIR
SENTENCES = [
    ([1, 4, 9, 2, 7, 8, 2], 0),
    ([1, 5, 6, 7, 8, 10, 2], ALONE),
    ([1, 9, 2, 5, 2], 1),
]


def test_pairs_and_single_texts_are_encoded(tiny_tokenizer: Tokenizer) -> None:
    encode = tiny_tokenizer.encode
    rows = [("The cat sat.", "The dog sleeps.", 1), ("Stop!",)]
    assert MaskedTokenNextSentence.encode(tiny_tokenizer, rows) == [
        ([START_ID, *encode("The cat sat."), END_ID, *encode("The dog sleeps."), END_ID], 1),
        ([START_ID, *encode("Stop!"), END_ID], MaskedTokenNextSentence.NO_PAIR),
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


def test_without_a_pair_the_loss_is_that_of_masked_tokens() -> None:
    model = random_model("encoder-only", n_segments=2)
    alone = [(ids, ALONE) for (ids,) in TEXTS]
    assert loss_of(MaskedTokenNextSentence(model), alone) == pytest.approx(loss_of(MaskedToken(model), TEXTS))


def test_the_head_and_the_segments_learn() -> None:
    model = random_model.__wrapped__("encoder-only", n_segments=2)
    objective = MaskedTokenNextSentence(model).train()
    loss, _ = objective(objective.collate(SENTENCES, torch.Generator().manual_seed(3)))
    loss.backward()
    for part in (model.next_sentence.projection.weight, model.encoder.embedding.segment_table.weight):
        assert (part.grad.abs().sum(dim=-1) > 0).all()


def test_next_sentence_accuracy_counts_pairs_alone() -> None:
    model = random_model("encoder-only", n_segments=2)
    pairs = [ids for ids, label in SENTENCES if label >= 0]
    with torch.inference_mode():
        best = [int(model.next_sentence(model.encode(torch.tensor([ids]))).argmax()) for ids in pairs]
    right = [(ids, label) for ids, label in zip(pairs, best, strict=True)]
    alone = (TEXTS[0][0], ALONE)
    assert next_sentence_accuracy(model, [*right, alone], 100) == 1.0
    assert next_sentence_accuracy(model, [right[0], (pairs[1], 1 - best[1]), alone], 100) == 0.5
    with pytest.raises(ValueError, match="none of the 1 examples is a pair"):
        next_sentence_accuracy(model, [alone], 100)
