"""Text ↔ ids: nothing is lost, whatever is typed."""

from __future__ import annotations

from pathlib import Path

import pytest
import tokenizers
from hypothesis import example, given
from hypothesis import strategies as st

from transformer import CheckpointError, Tokenizer
from transformer.text.tokenizer import END_ID, MASK_ID, PAD_ID, SPECIAL_TOKENS, START_ID, byte_alphabet
from transformer.text.tokenizer_files import MAX_BYTES
from transformer.text.tokens import visible

# The tokenizer of the session never changes, so all examples can share it.
ANY_TEXT = st.text(st.characters(codec="utf-8"), max_size=60)
NASTY = (
    "🦊", "👩‍👩‍👧‍👦 family", "e\u0301 é ﷺ", "日本語", "שלום", "\u202eright to left", "\x00\x1f\x7f",
    "\u200b\u00a0\u3000", "tab\there", "line\nbreak\r\n", "  two  spaces  ", " ", "<b>bold</b>", "Ġthe Ċ",
    "$x_1$ **bold** [a](b)", "</s><pad><s><mask>", "\ufffd", "\U0010ffff", "aaaaaaaaaaaa", "'s 'll 're",
)  # fmt: skip


@pytest.mark.parametrize("text", NASTY)
def test_decoding_gives_back_exactly_what_was_encoded(text: str, tiny_tokenizer: Tokenizer) -> None:
    ids = tiny_tokenizer.encode(text)
    assert tiny_tokenizer.decode(ids) == text
    assert tiny_tokenizer.sequence(ids).text == text
    assert min(ids) >= len(SPECIAL_TOKENS)


@given(text=ANY_TEXT)
@example(text="")
def test_any_text_comes_back(text: str, tiny_tokenizer: Tokenizer) -> None:
    ids = tiny_tokenizer.encode(text)
    assert tiny_tokenizer.decode(ids) == text
    assert tiny_tokenizer.sequence(ids).text == text
    assert tiny_tokenizer.encode_many([text, text[:1]]) == [ids, tiny_tokenizer.encode(text[:1])]
    assert all(id >= len(SPECIAL_TOKENS) for id in ids)


@given(ids=st.lists(st.integers(0, 399), max_size=30))
def test_the_texts_of_all_tokens_together_are_the_decoded_text(ids: list[int], tiny_tokenizer: Tokenizer) -> None:
    """This holds even for generated ids that are not text: half a character appears as � and is not lost."""
    assert tiny_tokenizer.sequence(ids).text == tiny_tokenizer.decode(ids)
    assert tiny_tokenizer.sequence(ids).ids == tuple(ids)


def test_a_text_that_continues_gets_no_space_in_front(tiny_tokenizer: Tokenizer) -> None:
    def bytes_of(text: str, *, continues: bool) -> bytes:
        return b"".join(tiny_tokenizer.token_bytes[id] for id in tiny_tokenizer.encode(text, continues=continues))

    assert bytes_of(". Then", continues=True) == b". Then"
    assert bytes_of(". Then", continues=False) == b" . Then"
    assert tiny_tokenizer.encode(" sat", continues=True) == tiny_tokenizer.encode("sat")
    assert tiny_tokenizer.encode("", continues=True) == []


def test_lone_surrogates_become_the_replacement_character(tiny_tokenizer: Tokenizer) -> None:
    assert tiny_tokenizer.decode(tiny_tokenizer.encode("a\ud800b")) == "a\N{REPLACEMENT CHARACTER}b"
    assert tiny_tokenizer.encode_many(["a\ud800b"]) == [tiny_tokenizer.encode("a\ud800b")]
    assert "".join(tiny_tokenizer.words("\udfff"))


def test_special_tokens_have_fixed_ids_and_are_left_out_of_the_text(tiny_tokenizer: Tokenizer) -> None:
    assert (PAD_ID, START_ID, END_ID, MASK_ID) == (0, 1, 2, 3)
    ids = [START_ID, *tiny_tokenizer.encode("The cat"), MASK_ID, END_ID, PAD_ID]
    assert tiny_tokenizer.decode(ids) == "The cat"
    sequence = tiny_tokenizer.sequence(ids, "target")
    assert sequence.name == "target"
    assert [token.display for token in sequence if token.special] == ["<s>", "<mask>", "</s>", "<pad>"]
    assert sequence.text == "The cat"


def test_a_character_of_several_tokens_belongs_to_the_last_of_them(tiny_tokenizer: Tokenizer) -> None:
    sequence = tiny_tokenizer.sequence(tiny_tokenizer.encode("🦊"))
    texts = [token.text for token in sequence]
    assert texts[-1].endswith("🦊")
    assert "".join(texts) == " 🦊"
    assert [token.display for token in sequence][-1] == "⟨8A⟩"


def test_the_tables_of_a_tokenizer_agree(tiny_tokenizer: Tokenizer) -> None:
    assert tiny_tokenizer.vocabulary_size == len(tiny_tokenizer.pieces) == len(tiny_tokenizer.token_bytes) == 400
    assert tiny_tokenizer.pieces[:4] == SPECIAL_TOKENS
    assert len(tiny_tokenizer.merges) == 400 - 4 - 256
    for id in (4, 100, 259, 260, 399):
        assert tiny_tokenizer.to_id(tiny_tokenizer.pieces[id]) == id
    for left, right in tiny_tokenizer.merges:
        assert tiny_tokenizer.to_id(left + right) is not None
    assert sorted(tiny_tokenizer.token_bytes[4:260]) == [bytes([byte]) for byte in range(256)]
    assert tiny_tokenizer.to_id("never merged") is None


def test_words_are_what_merges_never_cross(tiny_tokenizer: Tokenizer) -> None:
    assert tiny_tokenizer.words("The cat, it's") == ["ĠThe", "Ġcat", ",", "Ġit", "'s"]
    assert tiny_tokenizer.words("") == []


def test_a_saved_tokenizer_is_the_same_one(tiny_tokenizer: Tokenizer, tmp_path: Path) -> None:
    tiny_tokenizer.save(tmp_path / "tokenizer.json")
    loaded = Tokenizer.load(tmp_path / "tokenizer.json")
    assert loaded.pieces == tiny_tokenizer.pieces
    assert loaded.merges == tiny_tokenizer.merges
    for text in NASTY:
        assert loaded.encode(text) == tiny_tokenizer.encode(text)


def test_training_is_deterministic() -> None:
    texts = ["the cat sat", "the dog sat", "the the the"]
    assert Tokenizer.train(texts, 270).merges == Tokenizer.train(texts, 270).merges


def test_whole_words_are_tokens_of_their_own_however_rare() -> None:
    texts = ["the cat sat", "the dog sat", "the the the"] * 100 + ["a xylophone"]
    assert len(Tokenizer.train(texts, 273).encode("xylophone")) > 1
    tokenizer = Tokenizer.train(texts, 273, whole_words=["xylophone", "the"])
    assert len(tokenizer.encode("xylophone")) == len(tokenizer.encode("the")) == 1
    with pytest.raises(ValueError, match=r"vocabulary_size is 262, too few for 2 whole words: 2 are split, 'xylo"):
        Tokenizer.train(texts, 262, whole_words=["xylophone", "the"])


def test_a_vocabulary_without_room_for_all_bytes_is_refused() -> None:
    with pytest.raises(ValueError, match=r"vocabulary_size is 259; .* need 260"):
        Tokenizer.train(["a"], 259)
    assert Tokenizer.train(["a"], 260).decode(Tokenizer.train(["a"], 260).encode("é🦊")) == "é🦊"


# ---- files that are not a tokenizer of this project -----------------------------------------------------------------


def test_a_huge_file_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "tokenizer.json"
    with path.open("wb") as opened:
        opened.truncate(MAX_BYTES + 1)  # a sparse file: nothing is written to the disk
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: pytest.fail("the file was read"))
    with pytest.raises(CheckpointError, match="at most"):
        Tokenizer.load(path)


def test_the_byte_alphabet_is_one_visible_character_per_byte() -> None:
    alphabet = byte_alphabet()
    assert sorted(alphabet) == list(range(256))
    assert len(set(alphabet.values())) == 256
    assert all(character.isprintable() and not character.isspace() for character in alphabet.values())
    assert (alphabet[ord("a")], alphabet[ord(" ")], alphabet[ord("\n")]) == ("a", "Ġ", "Ċ")
    assert set(alphabet.values()) == set(tokenizers.pre_tokenizers.ByteLevel.alphabet())


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b" the", "·the"),
        (b"a\nb\t", "a⏎b⇥"),
        (b"\xf0", "⟨F0⟩"),
        (b" \xc3", "·⟨C3⟩"),
        ("é".encode(), "é"),
        ("\u202e".encode(), "⟨202E⟩"),
        ("\u00a0".encode(), "⟨A0⟩"),
        (b"\x00", "⟨00⟩"),
        (b"<b>", "<b>"),
    ],
)
def test_what_is_invisible_is_made_visible(raw: bytes, shown: str) -> None:
    assert visible(raw) == shown
