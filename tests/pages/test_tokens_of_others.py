"""The Tokens page for third-party models: how they split words, and their special and added tokens."""

import json
import os
from pathlib import Path

import pytest

from tests.nights import by_day
from tests.pages.conftest import codes, is_fine, said
from tests.transformer.guests.hugging_face import build
from tests.transformer.text.foreign_folders import (
    byte_level,
    sentencepiece,
    unigram,
    with_byte_fallback,
    word_piece,
)
from ui.words.texts import page_text

TEXT = page_text("tokens")
SENTENCE = "The cat sat on the mat 😀."
SIZE = 560


def pieces_of(file: Path) -> list[str]:
    library = pytest.importorskip("sentencepiece").SentencePieceProcessor(model_file=str(file))
    return [library.id_to_piece(id) for id in range(library.get_piece_size())]


def add_marian(folder: Path) -> None:
    files = [sentencepiece(folder / name, "unigram") for name in ("source.spm", "target.spm")]
    names = ["</s>", "<unk>", *dict.fromkeys(piece for file in files for piece in pieces_of(file))]
    ids = {name: id for id, name in enumerate(dict.fromkeys([*names, ">>fra<<", "<pad>"]))}
    (folder / "vocab.json").write_text(json.dumps(ids))


def add_m2m100(folder: Path) -> None:
    pieces = pieces_of(sentencepiece(folder / "sentencepiece.bpe.model", "bpe"))
    names = dict.fromkeys(["<s>", "<pad>", "</s>", "<unk>", *pieces])
    (folder / "vocab.json").write_text(json.dumps({name: id for id, name in enumerate(names)}))


# name: (the case of the model, its tokenizer, words of the page)
MODELS = {
    "gpt2": ("gpt2", lambda: byte_level(special=("<|endoftext|>",)), ("byte-pair encoding", TEXT["added_none"])),
    "bert": ("bert", word_piece, ("(WordPiece)", "`[CLS]` (id 2) before the text, `[SEP]` (id 3) after the text")),
    "t5": ("t5", lambda: unigram(("<pad>", "</s>", "<unk>"), "<unk>"), ("(Unigram)", "`</s>` (id 1) after the text")),
    "llama": ("llama", with_byte_fallback, ("byte-pair encoding",)),
    "m2m100": ("m2m100", add_m2m100, ("byte-pair encoding", "`__en__`")),
    "marian": ("marian", add_marian, ("(Unigram)", "`</s>` (id 0) after the text")),
}


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("others")
    for name, (case, tokenizer, _words) in MODELS.items():
        folder = root / name
        build(case, vocab_size=SIZE, **({"pad_token_id": SIZE - 1} if name == "marian" else {})).save_pretrained(folder)
        if name in ("marian", "m2m100"):
            tokenizer(folder)
        else:
            tokenizer().save(str(folder / "tokenizer.json"))
    return root


@pytest.fixture
def open_other(open_app, others, monkeypatch):
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(others))
    return lambda name, **query: open_app("tokens", checkpoint=name, sentence=SENTENCE, **query)


def widget(elements, label):
    return next(element for element in elements if element.label == label)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_a_page_says_how_words_are_cut_what_is_lost_and_its_snippet_runs(open_other, run_snippet, tmp_path, name):
    app = open_other(name)
    is_fine(app)
    for words in MODELS[name][2]:
        assert words in said(app)
    assert f"**{SIZE}** entries" in said(app)

    widget(app.text_input, TEXT["character"]).set_value("🦊")
    app.run()
    is_fine(app)
    kept = name in ("gpt2", "llama")
    assert ("This character is not lost" in said(app)) == kept
    assert ("no entry for this character" in said(app)) != kept

    (tmp_path / "checkpoints").unlink()
    (tmp_path / "checkpoints").symlink_to(os.environ["GLASSFORMER_CHECKPOINTS"])
    printed = run_snippet(codes(app)[-1])
    assert printed.startswith("[") and ("MergeStep(" in printed) == ("byte-pair encoding" in MODELS[name][2])


WORDS = ("unbelievable", "é😀", "x" * 70, "zyx", "`$<b>", "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("gpt2", WORDS[:3]),
        ("t5", WORDS[3:]),
        *(pytest.param(name, WORDS, id=f"{name}, all", marks=pytest.mark.nightly) for name in MODELS),
    ],
)
def test_any_word_can_be_cut(open_other, name, words):
    """Words are typed one after the other on one page, so that leftovers of one would show in the next."""
    app = open_other(name, token="2")
    for word in words:
        widget(app.text_input, TEXT["word"]).set_value(word)
        app.run()
        is_fine(app)
        steps = [slider for slider in app.slider if slider.label == TEXT["step"]]
        for place in {0, steps[0].max // 2} if steps else ():
            steps[0].set_value(place)
            app.run()
            is_fine(app)


@pytest.mark.slow
@pytest.mark.parametrize("name", by_day(MODELS, ("bert", "llama")))
def test_every_pair_of_tokenizers_can_be_compared(open_other, name):
    app = open_other(name)
    for option in widget(app.selectbox, TEXT["second"]).options:
        widget(app.selectbox, TEXT["second"]).set_value(option)
        app.run()
        is_fine(app)
