"""Each page of the laboratory visibly answers its question on the opening sentence of a checkpoint."""

from __future__ import annotations

import numpy as np
import pytest

import transformer
from tests.opening_consequences import Consequences
from tests.shipped import SHIPPED
from transformer.files.opening_file import read_opening

pytestmark = pytest.mark.slow
OPENED = ("en-fr", "en-fr-sharp", "gpt-en", "bert-en", "captions-en-de", "sentiment", "t5-small-tasks", "vit-digits")
# Without √d_k, these two still predict the same word and class.
INVISIBLE_BUGS = {"bert-en": {"scale"}, "vit-digits": {"scale"}}


@pytest.fixture(scope="module", params=OPENED)
def opened(request: pytest.FixtureRequest) -> Consequences:
    (path,) = [path for path in SHIPPED if path.name == request.param]
    return Consequences(transformer.load(path), read_opening(path).first)


def test_surgery_changes_the_output_without_the_opened_head(opened: Consequences) -> None:
    assert opened.example.without, "tests/test_openings.py checks that this is the output without the head"
    assert opened.example.without != opened.answer.text.removeprefix(opened.example.sentence).strip()


def test_masks_change_the_output_when_the_opened_cell_is_blocked(opened: Consequences) -> None:
    if opened.checkpoint.name == "vit-digits":
        pytest.skip("one cell of 289 changes no class")
    assert opened.with_cell_blocked().text != opened.answer.text


def test_paths_open_on_a_swap_that_changes_the_prediction(opened: Consequences) -> None:
    path = opened.path()
    assert path.effect == "flips"
    assert path.strongest_share > 0.4


def test_compare_opens_on_two_outputs_and_two_maps(opened: Consequences) -> None:
    comparison = opened.comparison()
    assert comparison.answers[0].text != comparison.answers[1].text
    assert np.abs(comparison.differences[0].values).max() > 0.4
    assert comparison.largest_shift is not None


def test_every_bug_of_the_forward_pass_changes_the_output(opened: Consequences) -> None:
    outputs = {fault: opened.with_bug(fault) for fault in opened.bugs}
    assert {fault for fault, (original, other) in outputs.items() if original == other} == INVISIBLE_BUGS.get(
        opened.checkpoint.name, set()
    )


def test_lens_follows_a_word_that_was_not_on_top_from_the_start(opened: Consequences) -> None:
    assert opened.lens().top_from > 0


def test_heads_of_the_opened_attention_differ_in_their_roles(opened: Consequences) -> None:
    if opened.checkpoint.name == "vit-digits":
        pytest.skip("patches have no roles")
    roles = opened.roles()
    assert len(roles) > 1 and max(roles.values()) < 0.9 * roles.total(), roles


def test_decoding_has_a_step_with_another_candidate(opened: Consequences) -> None:
    if opened.checkpoint.name == "vit-digits":
        pytest.skip("its class has a probability of 0.91")
    assert min(part.probability for part in opened.answer.parts) < 0.75
