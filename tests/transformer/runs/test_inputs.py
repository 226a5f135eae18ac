"""Valid input, and the messages for invalid input."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import tokenizers
import torch
from tokenizers import models

import transformer
from tests.transformer.guests.hugging_face import build
from transformer import Checkpoint, InputError
from transformer.files.chats import with_prompt
from transformer.runs.inputs import check_length, prompt_ids, source_tensor, target_ids
from transformer.text.prompt import Prompt
from transformer.text.tokenizer import END_ID, MASK_ID, PAD_ID, START_ID

Tiny = Callable[[str], Checkpoint]


def ids(checkpoint: Checkpoint, text: str) -> list[int]:
    return source_tensor(checkpoint, text)[0].tolist()


def test_translation_reads_tokens_and_the_end(tiny_checkpoint: Tiny) -> None:
    checkpoint = tiny_checkpoint("translator")
    tokens = checkpoint.tokenizer.encode("The cat sat.")
    assert ids(checkpoint, "The cat sat.") == [*tokens, END_ID]
    padded = source_tensor(checkpoint, "The cat sat.", pads=3)
    assert padded.shape == (1, len(tokens) + 4)
    assert padded[0].tolist() == [*tokens, END_ID, PAD_ID, PAD_ID, PAD_ID]
    assert target_ids(checkpoint, "Le chat.") == checkpoint.tokenizer.encode("Le chat.")


def test_an_encoder_alone_reads_start_tokens_end(tiny_checkpoint: Tiny) -> None:
    for kind in ("bert", "sentiment"):
        checkpoint = tiny_checkpoint(kind)
        assert ids(checkpoint, "The cat.") == [START_ID, *checkpoint.tokenizer.encode("The cat."), END_ID]


def test_a_writer_reads_start_and_tokens(tiny_checkpoint: Tiny) -> None:
    checkpoint = tiny_checkpoint("gpt")
    assert prompt_ids(checkpoint, "The cat") == [START_ID, *checkpoint.tokenizer.encode("The cat")]


@pytest.mark.parametrize("special", ["<pad>", "<s>", "</s>", "<mask>"])
def test_special_tokens_that_are_typed_stay_text(special: str, tiny_checkpoint: Tiny) -> None:
    for kind in ("translator", "bert", "sentiment"):
        checkpoint = tiny_checkpoint(kind)
        sequence = checkpoint.tokenizer.sequence(ids(checkpoint, f"a {special} b"))
        assert sequence.text == f"a {special} b"
        assert [token.display for token in sequence if token.special] == (
            ["</s>"] if kind == "translator" else ["<s>", "</s>"]
        )


# ---- blanks ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("blank", ["[MASK]", "___", "_______"])
def test_a_blank_stands_for_one_word_with_the_space_before_it(blank: str, tiny_checkpoint: Tiny) -> None:
    """The tokens around the blank are those of the full sentence, so only the word itself is missing."""
    checkpoint = tiny_checkpoint("bert")
    encode = checkpoint.tokenizer.encode
    whole = encode("The cat sat on the table.")
    word = encode("table")
    n_word = len(word)
    place = next(i for i in range(len(whole)) if whole[i : i + n_word] == word)
    expected = [START_ID, *whole[:place], MASK_ID, *whole[place + n_word :], END_ID]
    assert ids(checkpoint, f"The cat sat on the {blank}.") == expected


def test_blanks_at_the_borders_and_beside_each_other(tiny_checkpoint: Tiny) -> None:
    checkpoint = tiny_checkpoint("bert")
    encode = checkpoint.tokenizer.encode
    assert ids(checkpoint, "___") == [START_ID, MASK_ID, END_ID]
    assert ids(checkpoint, "[MASK] [MASK]") == [START_ID, MASK_ID, MASK_ID, END_ID]
    assert ids(checkpoint, "___ sat") == [START_ID, MASK_ID, *encode("sat"), END_ID]
    assert ids(checkpoint, "The ___ sat ___") == [START_ID, *encode("The"), MASK_ID, *encode("sat"), MASK_ID, END_ID]


def test_two_underscores_are_text_and_so_is_a_blank_for_other_models(tiny_checkpoint: Tiny) -> None:
    bert = tiny_checkpoint("bert")
    assert MASK_ID not in ids(bert, "a __ b")
    for kind in ("translator", "sentiment"):
        checkpoint = tiny_checkpoint(kind)
        assert MASK_ID not in ids(checkpoint, "a ___ [MASK]")
        assert checkpoint.tokenizer.decode(ids(checkpoint, "a ___ [MASK]")) == "a ___ [MASK]"


def test_a_sentence_without_a_blank_is_taken_as_it_is(tiny_checkpoint: Tiny) -> None:
    checkpoint = tiny_checkpoint("bert")
    for text in ("ends with spaces  ", "  begins with spaces", "two  spaces"):
        assert checkpoint.tokenizer.decode(ids(checkpoint, text)) == text


# ---- refusals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", " ", "\n\t ", " "])
@pytest.mark.parametrize("kind", ["translator", "gpt", "bert", "sentiment"])
def test_an_empty_text_is_refused_with_what_to_do(kind: str, text: str, tiny_checkpoint: Tiny) -> None:
    checkpoint = tiny_checkpoint(kind)
    read = prompt_ids if kind == "gpt" else source_tensor
    with pytest.raises(InputError, match="The sentence is empty. Type at least one word"):
        read(checkpoint, text)
    with pytest.raises(InputError, match="The target is empty"):
        target_ids(checkpoint, text)


def test_a_text_that_is_too_long_is_refused_with_both_numbers(tiny_checkpoint: Tiny) -> None:
    checkpoint = tiny_checkpoint("translator")
    text = "x" * 200
    n_tokens = len(checkpoint.tokenizer.encode(text)) + 1
    with pytest.raises(InputError, match=rf"sentence has {n_tokens} tokens.* at most 96.* about {n_tokens - 96} tok"):
        source_tensor(checkpoint, text)
    with pytest.raises(InputError, match=rf"target has {n_tokens} tokens"):
        target_ids(checkpoint, text)
    with pytest.raises(InputError, match=rf"text has {n_tokens} tokens"):
        prompt_ids(tiny_checkpoint("gpt"), text)


def test_the_longest_text_fits_and_one_token_more_does_not(tiny_checkpoint: Tiny) -> None:
    checkpoint = tiny_checkpoint("translator")
    n_tokens = len(checkpoint.tokenizer.encode("The cat")) + 1
    fits = 96 - n_tokens
    assert source_tensor(checkpoint, "The cat", pads=fits).shape == (1, 96)
    with pytest.raises(InputError, match=rf"97 tokens \(of which {fits + 1} are padding\)"):
        source_tensor(checkpoint, "The cat", pads=fits + 1)
    check_length(checkpoint, 96, "The target")
    with pytest.raises(InputError, match="The target has 97 tokens, special tokens included"):
        check_length(checkpoint, 97, "The target")


@pytest.mark.parametrize(
    "text", ["🦊", "日本語のテキスト", "<b>bold</b> & **stars** $x$", "a\nb", "\x00\x07", "\ud83d", "ﷺ e\u0301"]
)
def test_odd_characters_are_taken(text: str, tiny_checkpoint: Tiny) -> None:
    checkpoint = tiny_checkpoint("translator")
    tensor = source_tensor(checkpoint, text)
    expected = text.replace("\ud83d", "\N{REPLACEMENT CHARACTER}")
    assert checkpoint.tokenizer.decode(tensor[0].tolist()) == expected
    with torch.inference_mode():
        assert torch.isfinite(checkpoint.model.encode(tensor)).all()


@pytest.mark.parametrize("case", ["qwen2", "t5"])
def test_a_text_that_the_tokenizer_leaves_out_is_refused_in_a_sentence(case: str, tmp_path: Path) -> None:
    """A Qwen2 folder with a word-level ``tokenizer.json`` used to ask torch to embed an empty list."""
    backend = tokenizers.Tokenizer(models.BPE({token: id_ for id_, token in enumerate((*"ACGT", "<s>", "<pad>"))}, []))
    backend.save(str(tmp_path / "tokenizer.json"))
    build(case, vocab_size=8).save_pretrained(tmp_path)
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": None, "eos_token": None}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    checkpoint = transformer.load(tmp_path)
    assert checkpoint.tokenizer.encode("hello there") == []
    for ask in (transformer.trace, transformer.decode):
        with pytest.raises(InputError, match="^The sentence has no token: the tokenizer of this model omits"):
            ask(checkpoint, "hello there")
    if case == "qwen2":
        with pytest.raises(InputError, match="^The sentence has no token"):
            prompt_ids(with_prompt(checkpoint, Prompt()), "hello there")
    with pytest.raises(InputError, match="^The target has no token"):
        target_ids(checkpoint, "hello there", "")
