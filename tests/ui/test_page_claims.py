"""Statements of pages about models in general hold for the shipped models."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

import transformer
from tests.conftest import ROOT
from tests.ui.texts_of import TextsOf
from transformer.heads.head_roles import HeadRole
from transformer.heads.weight_patterns import Measure
from transformer.layers.costs import shares_of_parts
from transformer.layers.feed_forward_units import silent_share
from ui.shell.focus_controls import text_for, traits_of
from ui.words.texts import page_text, pictures
from views.heads import heads_sections as sections

SHIPPED = sorted(path for path in (ROOT / "checkpoints").iterdir() if not (path / "vectors.safetensors").exists())
SENTENCES = {
    "bert-en": "The cat sat on the ___.",
    "sentiment": "a moving and often funny film about growing old",
    "vit-digits": pictures()[0][1],
}


@pytest.mark.slow
@pytest.mark.sample(of=3)
@pytest.mark.parametrize("path", SHIPPED, ids=[path.name for path in SHIPPED])
def test_most_units_stay_silent_for_a_token(path: Path) -> None:
    assert page_text("feed_forward").look_for[1].startswith("Most units are inactive for any one token")
    trace = transformer.trace(transformer.load(path), SENTENCES.get(path.name, "The cat sat on the mat."))
    for stack in trace.stacks:
        assert silent_share(trace, stack).mean() > 0.5


def test_what_to_look_for_fits_the_model() -> None:
    positions = page_text("positions")
    assert positions.look_for_of({"encoder-decoder", "sinusoidal", "pre"}) == positions.look_for
    gpt = positions.look_for_of({"decoder-only", "rotary", "pre"})
    assert "bag of words:" not in gpt[0] and "causal mask" in gpt[0]
    assert "rotated" in gpt[1] and "waves" not in gpt[1]
    attention = page_text("attention")
    assert "window" not in attention.look_for_of({"decoder-only", "rotary", "pre"})[1]
    assert "window" in attention.look_for_of({"decoder-only", "rotary", "pre", "window"})[1]
    assert "no formula" in positions.look_for_of({"encoder-only", "learned"})[1]
    assert "rewrites the sum" in page_text("add_norm").look_for_of({"post"})[1]


@pytest.mark.slow
@pytest.mark.sample(of=3)
@pytest.mark.parametrize("path", SHIPPED, ids=[path.name for path in SHIPPED])
def test_where_most_of_the_numbers_sit(path: Path) -> None:
    checkpoint = transformer.load(path)
    shares = shares_of_parts(checkpoint.model)
    said = page_text("checkpoint").look_for_of(traits_of(checkpoint.config))[1]
    if checkpoint.config.reads_images:
        assert "feed-forward layer, and the four of attention" in said and "patch embedding has hardly any" in said
        assert shares["feed-forward"] + shares["self-attention"] > 0.5 and shares["embedding"] < 0.01
    else:
        assert "the embedding, and the two matrices of every feed-forward layer" in said
        assert shares["embedding"] + shares["feed-forward"] > 0.5


def test_the_loss_of_repeated_tokens_falls_where_the_training_page_says() -> None:
    (told, *_) = page_text("training").look_for_of({"decoder-only"})
    assert "like that of gpt-en" in told and "between steps 400 and 600" in told
    loss = pd.read_csv(ROOT / "checkpoints" / "gpt-en" / "history.csv").set_index("step")["repeated_loss"]
    assert abs(loss[400] - 8) < 0.3 and loss[600] < 2


def test_a_table_that_speaks_of_other_models_replaces_texts_that_are_shown() -> None:
    """A sentence for images under an unused name would never be seen."""
    for name in sorted(path.parent.name for path in (ROOT / "views").glob("*/en.toml")):
        code = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "views" / name).rglob("*.py"))
        code += (ROOT / "pages" / f"{name}.py").read_text(encoding="utf-8")
        text = page_text(name)
        for table in ("of_classes", "of_pictures", "of_vectors"):
            unknown = [key for key in text.get(table, ()) if key not in text and f'"{key}"' not in code]
            assert unknown == [] or unknown == ["look_for_where"], f"views/{name}/en.toml, [{table}]: {unknown}"


@pytest.mark.parametrize("path", SHIPPED, ids=[path.name for path in SHIPPED])
def test_what_to_look_for_speaks_of_no_part_that_the_model_lacks(path: Path) -> None:
    config = transformer.load(path).config
    lacks = [word for word, there in (("decoder", config.has_decoder), ("encoder", config.has_encoder)) if not there]
    lacks += [] if config.has_decoder else ["writes its answer", "ahead"]
    lacks += [] if config.has_encoder and config.has_decoder else ["cross-attention", "translation"]
    lacks += ["LayerNorm"] if getattr(config, "rms_norm", False) else []
    for name in sorted(path.parent.name for path in (ROOT / "views").glob("*/en.toml")):
        for sentence in text_for(name, config).look_for_of(traits_of(config)):
            found = [word for word in lacks if re.search(rf"\b{word}\b", sentence)]
            assert not found, f"{name}: {found} in {sentence!r}"


def test_a_broad_head_that_passes_its_test_is_not_called_short_of_it() -> None:
    """Attending everywhere is not a role, however consistently a head does it."""
    sharp, broad_test = (
        Measure(score=0.41, chance=0.17, least=0.9, rows=100, offset=0),
        Measure(0.86, 0.0, 0.85, rows=100),
    )
    tests = {"window": sharp, "broad": broad_test}
    head = HeadRole("decoder", "self", 0, 0, "broad", {}, n_sentences=40, measures=tests)
    assert head.clear and not head.has_role
    said = sections.tests_of(TextsOf("heads"), head)
    assert "which does not define a role" in said and "threshold" not in said


def test_kl_is_in_nats_wherever_a_page_names_its_unit() -> None:
    for path in [*ROOT.glob("views/*/*.toml"), *ROOT.glob("ui/words/**/*.toml")]:
        lines = path.read_text(encoding="utf-8").splitlines()
        wrong = [line for line in lines if "KL" in line and "JSD" not in line and ("bits" in line or "log₂" in line)]
        assert not [line for line in wrong if "1.44 bits" not in line], path
