"""What a model reads of a text: valid input, and the messages for invalid input."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tokenizers
import torch
from tokenizers import models

import transformer
from tests.kinds_of_text import KINDS_OF_TEXT, UNREADABLE
from tests.transformer.guests.hugging_face import build
from transformer import Checkpoint, InputError
from transformer.embedding import segment_numbers
from transformer.files.chats import with_prompt
from transformer.predictions.answer_probabilities import blanks
from transformer.runs.inputs import prompt_ids, source_tensor, target_ids
from transformer.runs.masked_word import NONE, hidden_id, masked_word, masks_a_word, words_in
from transformer.runs.next_sentence import letters_of, next_sentence, segments_of
from transformer.runs.typed_tokens import added_tokens, prompt_tokens, special_uses, text_of, typed_tokens
from transformer.text.prompt import Prompt
from transformer.text.tokenizer import END_ID, MASK_ID, PAD_ID, START_ID

Tiny = Callable[[str], Checkpoint]


def ids(checkpoint: Checkpoint, text: str) -> list[int]:
    return source_tensor(checkpoint, text)[0].tolist()


def test_each_model_reads_the_tokens_in_its_frame(tiny_checkpoint: Tiny) -> None:
    for kind, before in (("translator", []), ("bert", [START_ID]), ("sentiment", [START_ID])):
        checkpoint = tiny_checkpoint(kind)
        framed = [*before, *checkpoint.tokenizer.encode("The cat sat."), END_ID]
        assert source_tensor(checkpoint, "The cat sat.", pads=3).tolist() == [[*framed, PAD_ID, PAD_ID, PAD_ID]]
    gpt, translator = tiny_checkpoint("gpt"), tiny_checkpoint("translator")
    assert prompt_ids(gpt, "The cat") == [START_ID, *gpt.tokenizer.encode("The cat")]
    assert target_ids(translator, "Le chat.") == translator.tokenizer.encode("Le chat.")


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


def test_where_a_blank_is_a_blank(tiny_checkpoint: Tiny) -> None:
    """Two underscores are text, and so is a blank for other models."""
    bert = tiny_checkpoint("bert")
    encode = bert.tokenizer.encode
    for text, inside in {
        "___": [MASK_ID],
        "[MASK] [MASK]": [MASK_ID, MASK_ID],
        "___ sat": [MASK_ID, *encode("sat")],
        "The ___ sat ___": [*encode("The"), MASK_ID, *encode("sat"), MASK_ID],
        "a __ b": encode("a __ b"),
    }.items():
        assert ids(bert, text) == [START_ID, *inside, END_ID]
    for kind in ("translator", "sentiment"):
        read = ids(tiny_checkpoint(kind), "a ___ [MASK]")
        assert MASK_ID not in read and tiny_checkpoint(kind).tokenizer.decode(read) == "a ___ [MASK]"


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
    fits = 96 - len(checkpoint.tokenizer.encode("The cat")) - 1
    assert source_tensor(checkpoint, "The cat", pads=fits).shape == (1, 96)
    with pytest.raises(InputError, match=rf"97 tokens \(of which {fits + 1} are padding\)"):
        source_tensor(checkpoint, "The cat", pads=fits + 1)


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


# ---- a word that is masked -------------------------------------------------------------------------------------------

SENTENCE = "The old man told us a story."


def test_the_last_longer_word_that_is_one_token_is_masked(tiny_checkpoint: Callable) -> None:
    bert = tiny_checkpoint("bert")
    masked = masked_word(bert, SENTENCE)
    assert (masked.number, masked.text, masked.sentence) == (2, "man", "The old ___ told us a story.")
    whole, read = (source_tensor(bert, text)[0].tolist() for text in (SENTENCE, masked.sentence))
    assert [after for before, after in zip(whole, read, strict=True) if before != after] == [bert.special.mask]
    assert masked_word(bert, "to us") is None


def test_the_masked_word_is_known_by_its_id_if_it_is_one_token(tiny_checkpoint: Callable) -> None:
    bert = tiny_checkpoint("bert")
    masked = masked_word(bert, SENTENCE)
    trace = transformer.trace(bert, masked.sentence)
    (blank,) = blanks(trace)
    assert hidden_id(trace, SENTENCE) == source_tensor(bert, SENTENCE)[0, blank]
    assert hidden_id(trace, masked.sentence) is None
    assert hidden_id(trace, SENTENCE.replace("man", "grandmotherly man")) is None


def test_any_word_can_be_chosen_or_none(tiny_checkpoint: Callable) -> None:
    bert = tiny_checkpoint("bert")
    assert masked_word(bert, "The old man’s dog.", "2").sentence == "The old ___ dog."
    assert masked_word(bert, SENTENCE, NONE) is None
    assert masked_word(bert, SENTENCE, "99") == masked_word(bert, SENTENCE), "an unknown word is the default"
    assert words_in("The old man’s dog.") == ("The", "old", "man’s", "dog")


@pytest.mark.parametrize(
    ("checkpoint", "sentence"),
    [("bert", "The ___ man."), ("bert", "The [MASK] man."), ("gpt", SENTENCE), ("sentiment", SENTENCE)],
)
def test_nothing_is_masked_where_the_model_reads_a_text_as_it_is(
    tiny_checkpoint: Callable, checkpoint: str, sentence: str
) -> None:
    loaded = tiny_checkpoint(checkpoint)
    assert not masks_a_word(loaded, sentence) and masked_word(loaded, sentence, "1") is None


# ---- what was typed and what was added -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tiny-translator", "tiny-gpt", "tiny-bert", "tiny-sentiment"])
def test_what_was_typed_and_what_was_added(tiny_checkpoint, name: str) -> None:
    checkpoint = tiny_checkpoint(name)
    trace = transformer.trace(checkpoint, SENTENCE)
    stack = trace.stacks[0]
    prompt, typed, added = prompt_tokens(trace, stack), typed_tokens(trace, stack), added_tokens(trace, stack)
    assert text_of(typed) == SENTENCE and typed == prompt.tokens, "there is no chat"
    assert all(token.special for token in (*added.before, *added.after))
    assert not added.between
    ids = [token.id for token in typed if not token.special]
    assert ids == [id for id in checkpoint.tokenizer.encode(SENTENCE) if id > 3]
    assert len(added.before) + len(ids) + len(added.after) == len(prompt)
    assert (len(trace.tokens(stack)) > len(prompt)) == (name == "tiny-gpt")


def test_special_tokens_have_their_roles(tiny_checkpoint) -> None:
    checkpoint = tiny_checkpoint("tiny-bert")
    uses = special_uses(transformer.trace(checkpoint, "The ___ man."))
    special = checkpoint.tokenizer.special
    assert uses[special.pad] == ("pad",) and uses[special.mask] == ("mask",)


# ---- two sentences in one text ---------------------------------------------------------------------------------------

PAIRED_TEXT = "The cat sat. || The dog sleeps under the table."


def test_a_separator_ends_its_segment_and_padding_belongs_to_the_first() -> None:
    ids = torch.tensor([[1, 9, 2, 8, 7, 2, 0, 0], [1, 9, 8, 2, 0, 0, 0, 0], [1, 9, 2, 5, 2, 6, 2, 3]])
    expected = [[0, 0, 0, 1, 1, 1, 0, 0], [0] * 8, [0, 0, 0, 1, 1, 1, 1, 1]]
    assert segment_numbers(ids, separator_id=2, pad_id=0, n_segments=2).tolist() == expected
    assert segment_numbers(ids, separator_id=2, pad_id=0, n_segments=1).tolist() == [[0] * 8] * 3


def test_two_sentences_in_one_text(tiny_checkpoint) -> None:
    checkpoint = tiny_checkpoint("bert")
    encode = checkpoint.tokenizer.encode
    ids = source_tensor(checkpoint, PAIRED_TEXT)[0].tolist()
    assert ids == [1, *encode("The cat sat."), 2, *encode("The dog sleeps under the table."), 2]
    trace = transformer.trace(checkpoint, PAIRED_TEXT)
    n_first = 2 + len(encode("The cat sat."))
    assert segments_of(trace) == (0,) * n_first + (1,) * (len(ids) - n_first)
    assert trace.text == PAIRED_TEXT
    rows = checkpoint.model.encoder.embedding.segment_table.weight.detach().numpy()
    assert (trace.values("encoder.embedding.segment") == rows[list(segments_of(trace))]).all()


def test_the_answer_is_the_softmax_of_the_head(tiny_checkpoint) -> None:
    trace = transformer.trace(tiny_checkpoint("bert"), PAIRED_TEXT)
    answer = next_sentence(trace)
    expected = torch.softmax(torch.tensor(trace.values("next_sentence.logits")), dim=-1)
    assert answer.probabilities == pytest.approx(expected.tolist())
    assert answer.name == ("IsNext", "NotNext")[int(expected.argmax())]
    assert answer.probability == max(answer.probabilities)


def test_one_sentence_has_no_next_one(tiny_checkpoint) -> None:
    trace = transformer.trace(tiny_checkpoint("bert"), "The cat sat.", source_pads=2)
    assert set(segments_of(trace)) == {0}
    assert next_sentence(trace) is None
    assert trace.text == "The cat sat."
    assert next_sentence(transformer.trace(tiny_checkpoint("sentiment"), PAIRED_TEXT)) is None


def test_a_blank_on_either_side(tiny_checkpoint) -> None:
    trace = transformer.trace(tiny_checkpoint("bert"), "The ___ sat. || The dog ___.")
    assert [token.role for token in trace.source].count("mask") == 2
    assert trace.text.count("||") == 1 and "___" not in trace.text


@pytest.mark.parametrize("text", ["a || b || c", "a ||", " || b", "||"])
def test_more_or_fewer_than_two_sentences_are_refused(text: str, tiny_checkpoint) -> None:
    with pytest.raises(InputError, match=r"\|\| separates two sentences"):
        source_tensor(tiny_checkpoint("bert"), text)


def test_the_mark_is_text_for_a_model_without_segments(tiny_checkpoint) -> None:
    checkpoint = tiny_checkpoint("sentiment")
    assert source_tensor(checkpoint, "a || b")[0].tolist() == [1, *checkpoint.tokenizer.encode("a || b"), 2]


def test_a_third_segment_has_a_letter_of_its_own(monkeypatch: pytest.MonkeyPatch, tiny_checkpoint) -> None:
    trace = transformer.trace(tiny_checkpoint("bert"), "The cat sat.")
    assert letters_of(trace) == ("A",) * len(trace.source)
    monkeypatch.setattr("transformer.runs.next_sentence.segments_of", lambda _trace: (0, 1, 2))
    assert letters_of(trace) == ("A", "B", "C")


# ---- any text --------------------------------------------------------------------------------------------------------

KINDS = ("tiny-translator", "tiny-gpt", "tiny-bert", "tiny-sentiment", "hf-gpt2")


@pytest.mark.sample("name", of=12)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", KINDS_OF_TEXT)
def test_a_text_is_traced_or_refused(tiny_checkpoint: Callable, guest: Callable, kind: str, name: str) -> None:
    checkpoint = (guest if kind.startswith("hf-") else tiny_checkpoint)(kind)
    try:
        trace = transformer.trace(checkpoint, KINDS_OF_TEXT[name])
    except InputError as refused:
        assert name in UNREADABLE or "surrogate" in name, refused
        assert str(refused).strip() and "Traceback" not in str(refused)
        return
    logits = next(values for values in map(trace.values, trace.names()) if values.ndim)
    assert np.isfinite(logits).all()
    assert all(token.display for stack in trace.stacks for token in trace.tokens(stack))
