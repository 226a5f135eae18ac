"""Pages with other families: formulas, snippets and checks fit this model."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import transformer
from tests.foreign_checkpoints import FOREIGN, STRETCHED, foreign_checkpoint
from tests.pages.conftest import codes, is_fine, said
from tests.pages.page_views import VIEWS
from transformer.faults.catalogue import diagnoses, inapplicable
from transformer.faults.fault_checks import CHECKS, checked_model
from ui.words.texts import page_text

RMS, GATED = {"hf-llama", "hf-gemma2", "hf-t5"}, {"hf-llama", "hf-gemma2", "hf-t5"}
CLASSES, ALL = {"hf-bert-classes"}, set(FOREIGN)

# page, address, formula, the families that have it; the others lack it. ``attention`` is asked without a classifier.
FORMULAS: tuple[tuple[str, dict[str, str], str, Collection[str]], ...] = (
    ("attention", {"attention_step": "1"}, "b_Q", ALL - {"hf-t5", "hf-gemma2"}),
    ("attention", {"attention_step": "3"}, r"\sqrt{d_k}", ALL - {"hf-t5", "hf-gemma2"}),
    ("attention", {"attention_step": "3"}, r"\tanh", {"hf-gemma2"}),
    ("add_norm", {"add norm view": "statistics"}, r"\text{RMSNorm}", RMS),
    ("add_norm", {"add norm view": "statistics"}, r"\mu", ALL - RMS),
    ("feed_forward", {"feed-forward view": "token"}, r"\odot", GATED),
    ("feed_forward", {"feed-forward view": "token"}, "b_2", ALL - {"hf-gemma2", "hf-t5"}),
    ("positions", {"positions view": "angles"}, r"\theta'_i = \theta_i / \lambda_i", {"hf-llama"}),
    ("positions", {"positions view": "angles"}, r"^{-2i/4}", {"hf-neox"}),
    ("positions", {"positions view": "heatmap"}, r"PE_{\text{pos},\,i+18}", {"hf-marian"}),
    ("positions", {"positions view": "bias"}, r"s_{ij} = q_i \cdot k_j + b_", {"hf-t5"}),
    ("decoding", {}, r"\text{norm}\big(f(h_{9}\, W_1 + b_1)\big)\, E^\top + c", {"hf-bert"}),  # 9 is the blank
    ("decoding", {}, r"f(h_0\, W_1 + b_1)\, W + b", CLASSES),
    ("decoding", {}, r"3 \tanh\big((h\, E^\top) / 3\big)", {"hf-gemma2"}),
    ("decoding", {}, r"z = h\, E^\top + b", {"hf-marian"}),
    ("decoding", {}, r"z = h\, W", {"hf-llama", "hf-neox"}),
)
ASKED = list({(page, tuple(address.items())): None for page, address, _, _ in FORMULAS})

# page, address, and a part of the snippet, which prints what was computed and what was recorded last, or with it.
SNIPPETS = (
    ("attention", {"token": "3", "layer": "1", "attention_key": "2"}, "print(cell.recorded)"),
    ("feed_forward", {"token": "2", "layer": "1", "feed-forward view": "token"}, "computed ="),
)


@pytest.fixture
def open_family(open_app: Callable, families_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., AppTest]:
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(families_folder))

    def opened(page: str, **address: str) -> AppTest:
        return fine(open_app(page, **address))

    return opened


def fine(app: AppTest) -> AppTest:
    assert not app.exception
    assert not app.error, [error.value for error in app.error]
    return app


@pytest.mark.slow
@pytest.mark.sample("checkpoint", values=3)
@pytest.mark.parametrize("checkpoint", FOREIGN)
@pytest.mark.parametrize(("page", "address"), ASKED, ids=[f"{page} {dict(address)}" for page, address in ASKED])
def test_the_formulas_are_those_of_the_model(open_family, page, address, checkpoint) -> None:
    app = open_family(page, checkpoint=checkpoint, **dict(address))
    shown = "\n".join(latex.value for latex in app.latex)
    rows = [(formula, those) for name, at, formula, those in FORMULAS if (name, tuple(at.items())) == (page, address)]
    for formula, those in rows:
        assert (formula in shown) == (checkpoint in those), (formula, shown)


@pytest.mark.slow
@pytest.mark.sample("checkpoint")
@pytest.mark.parametrize("checkpoint", FOREIGN)
@pytest.mark.parametrize(("page", "address", "part"), SNIPPETS, ids=[page for page, _, _ in SNIPPETS])
def test_the_snippet_computes_what_the_model_recorded(open_family, guest, run_snippet, checkpoint, page, address, part):
    stack = "encoder" if guest(checkpoint).config.has_encoder else "decoder"
    app = open_family(page, checkpoint=checkpoint, stack=stack, kind="self", **address)
    before, part, after = next(code for code in codes(app) if part in code).partition(part)
    snippet = before + part + ("" if part.startswith("print(") else after)
    computed, recorded = map(float, run_snippet(snippet).split()[-2:])
    assert computed == pytest.approx(recorded, rel=1e-3, abs=1e-4)


@pytest.mark.slow
@pytest.mark.sample(of=2)
@pytest.mark.parametrize("checkpoint", FOREIGN)
def test_a_healthy_model_passes_every_check_and_mistakes_fit_the_model(guest: Callable, checkpoint: str) -> None:
    loaded = guest(checkpoint)
    target = "Le chat dort." if loaded.config.kind == "encoder-decoder" else None
    checked = checked_model(transformer.trace(loaded, "The cat sat on the mat.", target))
    found = {name: check(checked) for name, check in CHECKS.items()}
    assert [name for name, finding in found.items() if finding and finding.fires] == []
    assert {"scale", "norm"} <= set(inapplicable(loaded.config)) and found["scale"] is None
    assert ("padding" in inapplicable(loaded.config)) == (found["padding"] is None)
    for fault in {one.fault for one in diagnoses(loaded.config) if not one.in_training} - {"healthy"}:
        assert CHECKS[fault](checked_model(transformer.trace(loaded, "The cat sat.", target), fault)) is not None


SENTENCE = "The cat sat on the mat, and the dog slept."
ANGLES = {"positions view": "angles"}


@pytest.mark.parametrize("checkpoint", ["hf-yarn", "hf-longrope"])
def test_the_arithmetic_of_a_cell_and_its_python(open_app, guest_folder, monkeypatch, run_snippet, checkpoint):
    """The snippet recomputes a rotated query, so it needs the factor and the length of the text."""
    folder = guest_folder(*STRETCHED)
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(folder))
    app = open_app("attention", checkpoint=checkpoint, sentence=SENTENCE, layer="1", token="3")
    key = app.selectbox(key="attention_key")
    is_fine(key.set_value(key.options[2]).run())
    assert page_text("attention")["arithmetic_factor"].split("{")[0] in said(app)
    last = "print(cell.recorded)"
    snippet = next(code for code in codes(app) if last in code).partition(last)[0] + last
    ours, models = map(float, run_snippet(snippet).split()[-2:])
    assert ours == pytest.approx(models, abs=1e-4)


def test_layers_that_turn_otherwise_are_named(open_app, guest_folder, monkeypatch) -> None:
    """Gemma 3 uses another rotation base for layers with a window than for layers with full attention."""
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(guest_folder(*STRETCHED)))
    for layer, base, same, others in (("0", "10000", "0, 2", "1"), ("1", "1e+06", "1", "0, 2")):
        app = open_app("positions", checkpoint="hf-gemma3", layer=layer, **ANGLES)
        is_fine(app)
        assert f"Layers with these angles: {same}. Layers with other angles: {others};" in said(app)
        assert f"{base}^{{-2i/" in "\n".join(latex.value for latex in app.latex)


def test_no_text_recommends_padding_where_there_is_none(open_app, tmp_path, monkeypatch) -> None:
    settings = foreign_checkpoint("hf-bert", tmp_path) / "tokenizer_config.json"
    settings.write_text(settings.read_text().replace('"[PAD]"', '"[UNK]"'))
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(tmp_path))
    app = open_app("masks", checkpoint="hf-bert")
    is_fine(app.segmented_control(key="mask preset").set_value("no padding mask").run())
    assert page_text("masks")["never_pads"] in said(app)


@pytest.mark.slow
@pytest.mark.sample
@pytest.mark.parametrize("checkpoint", ["hf-t5", "hf-bert", "hf-bert-classes", "hf-marian"])
def test_padding_on_every_page(open_family, checkpoint: str) -> None:
    """All pages are visited with three padding tokens after the sentence."""
    app = open_family("attention", checkpoint=checkpoint, pads="3", stack="encoder", kind="self")
    for page in dict.fromkeys(view.page for view in VIEWS if view.refuses):
        app.switch_page(f"pages/{page}.py").run()
        assert not app.exception and not app.error, page
        assert app.query_params["pads"] == "3", page
