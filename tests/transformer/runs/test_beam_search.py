"""Beam search compared with all possible texts, for a model so small that they can be enumerated."""

from __future__ import annotations

from functools import lru_cache
from itertools import product

import pytest
import torch

from tests.transformer.tiny import random_model
from transformer.models import Model
from transformer.runs.beam_search import Hypothesis, beam_search
from transformer.runs.decoding_state import NEVER_WRITTEN
from transformer.runs.decoding_strategies import Beam, length_penalty
from transformer.text.tokenizer import END_ID, START_ID

VOCABULARY, LIMIT = 7, 4
SOURCE = torch.tensor([[4, 6, 5, 4, 6, 2]])
SEEDS = (3, 9, 22)  # models whose best text is not always the empty one, and depends on the length penalty
WRITABLE = [id for id in range(VOCABULARY) if id not in NEVER_WRITTEN]


def tiny_model(seed: int, kind: str = "encoder-decoder") -> Model:
    return random_model(kind, seed=seed, vocabulary_size=VOCABULARY, tie_embeddings=False)


@lru_cache
def all_finished_texts(model: Model) -> dict[tuple[int, ...], float]:
    """Return every text of at most LIMIT tokens that ends with </s>, with its log probability."""
    words = [id for id in WRITABLE if id != END_ID]
    found = {}
    for n_words in range(LIMIT):
        texts = [(*text, END_ID) for text in product(words, repeat=n_words)]
        ids = torch.tensor([[START_ID, *text[:-1]] for text in texts])
        with torch.inference_mode():
            logits = model(SOURCE.expand(len(texts), -1), ids) if model.config.has_encoder else model(ids)
            logits[..., list(NEVER_WRITTEN)] = -torch.inf
            log_p = torch.log_softmax(logits, dim=-1).gather(-1, torch.tensor(texts)[..., None]).sum(dim=(1, 2))
        found |= dict(zip(texts, log_p.tolist(), strict=True))
    return found


def search(model: Model, strategy: Beam, *, limit: int = LIMIT, forced: tuple[int, ...] = ()) -> list[Hypothesis]:
    source = SOURCE if model.config.has_encoder else None
    with torch.inference_mode():
        return beam_search(model, source, [START_ID], strategy, limit, forced=forced, banned=NEVER_WRITTEN)


@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.0, 2.5])
@pytest.mark.parametrize("kind", ["encoder-decoder", "decoder-only"])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_beam_that_drops_nothing_finds_the_best_of_all_texts(seed: int, kind: str, penalty: float) -> None:
    model = tiny_model(seed, kind)
    texts = all_finished_texts(model)
    scores = {text: log_p / length_penalty(len(text), penalty) for text, log_p in texts.items()}
    best = max(scores, key=scores.get)
    width = len(WRITABLE) ** LIMIT
    found = search(model, Beam(width, length_penalty=penalty))
    assert found[0].ids == best
    assert found[0].score == pytest.approx(scores[best], abs=1e-4)
    assert found[0].log_probability == pytest.approx(texts[best], abs=1e-4)
    for text in found:
        assert text.finished
        assert text.score == pytest.approx(scores[text.ids], abs=1e-4)


def test_a_high_penalty_exponent_prefers_longer_texts() -> None:
    """Otherwise the test above might only ever see the empty text."""
    lengths = {
        penalty: [len(search(tiny_model(seed), Beam(600, length_penalty=penalty))[0].ids) for seed in SEEDS]
        for penalty in (0.0, 0.6, 2.5)
    }
    assert lengths[0.0] < lengths[0.6] < lengths[2.5] == [LIMIT] * len(SEEDS)


def test_a_beam_of_width_one_without_penalty_follows_the_greedy_path() -> None:
    """Width 1 chooses the most likely token that does not end the text; </s> is tried after each of them."""
    model = tiny_model(0)
    ids: list[int] = []
    with torch.inference_mode():
        for _ in range(LIMIT - 1):
            logits = model(SOURCE, torch.tensor([[START_ID, *ids]]))[0, -1]
            logits[[*NEVER_WRITTEN, END_ID]] = -torch.inf
            ids.append(int(logits.argmax()))
    (found,) = search(model, Beam(1, length_penalty=0.0))
    assert found.ids[:-1] == tuple(ids[: len(found.ids) - 1])


def test_texts_come_best_first_and_differ() -> None:
    found = search(tiny_model(3), Beam(5, length_penalty=2.5))
    assert len(found) == 5
    assert [text.score for text in found] == sorted((text.score for text in found), reverse=True)
    assert len({text.ids for text in found}) == 5


def test_a_wider_beam_is_never_worse_when_it_drops_nothing() -> None:
    for seed in SEEDS:
        model = tiny_model(seed)
        exhaustive = search(model, Beam(1000))[0].score
        for width in (1, 2, 4):
            assert search(model, Beam(width))[0].score <= exhaustive + 1e-5


def test_forced_tokens_begin_every_text_at_their_own_probability() -> None:
    model = tiny_model(2)
    texts = all_finished_texts(model)
    forced = (5, 3)
    allowed = {text: log_p for text, log_p in texts.items() if text[:2] == forced}
    found = search(model, Beam(1000, length_penalty=0.0), forced=forced)
    best = max(allowed, key=allowed.get)
    assert found[0].ids == best
    assert found[0].log_probability == pytest.approx(allowed[best], abs=1e-4)
    assert {text.ids for text in found} <= set(allowed)


def test_where_no_text_ends_in_time_the_unfinished_ones_come_back() -> None:
    model = tiny_model(0)
    with torch.inference_mode():
        found = beam_search(model, SOURCE, [START_ID], Beam(3), 3, banned=(*NEVER_WRITTEN, END_ID))
    assert len(found) == 3
    assert all(not text.finished and len(text.ids) == 3 and END_ID not in text.ids for text in found)


def test_banned_tokens_never_come() -> None:
    found = search(tiny_model(3), Beam(1000))
    assert not {id for text in found for id in text.ids} & set(NEVER_WRITTEN)
