"""Corpus scores equal sacreBLEU's, and invalid requests are refused."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import sacrebleu
import torch

import transformer
from transformer import Greedy, InputError, decode
from transformer.runs.next_sentence import next_sentence
from transformer.scores.baselines import bag_of_words_accuracy, unigram_accuracies
from transformer.scores.bleu_and_chrf import corpus_scores
from transformer.scores.masked_words import hide_words, recovered_words
from transformer.text.tokenizer import END_ID, START_ID
from transformer.training.evaluation import evaluate, translation_scores
from transformer.training.validation import dev_bleu

HYPOTHESES = ["le chat est assis sur le tapis .", "il pleut beaucoup ce soir", "je ne sais pas", "tom dort"]
REFERENCES = [
    ["le chat est assis sur le tapis .", "le chat était sur le tapis ."],
    ["il pleut beaucoup ce matin"],
    ["je ne le sais pas", "je ne sais pas où", "aucune idée"],
    ["tom dort encore"],
]


def test_several_references_as_sacrebleu_scores_them() -> None:
    """sacreBLEU takes one list per reference number, with ``None`` where a sentence has fewer."""
    streams = [
        [references[k] if k < len(references) else None for references in REFERENCES] for k in range(3)
    ]  # fmt: skip
    scores = corpus_scores(HYPOTHESES, REFERENCES)
    assert scores["bleu"] == pytest.approx(sacrebleu.corpus_bleu(HYPOTHESES, streams).score)
    assert scores["chrf"] == pytest.approx(sacrebleu.corpus_chrf(HYPOTHESES, streams).score)
    assert 0 < scores["bleu"] < 100
    assert "nrefs:" in scores["bleu_signature"]
    assert "tok:13a" in scores["bleu_signature"]


def test_every_reference_counts() -> None:
    first_only = [references[:1] for references in REFERENCES]
    assert corpus_scores(HYPOTHESES, REFERENCES)["bleu"] > corpus_scores(HYPOTHESES, first_only)["bleu"]
    assert corpus_scores(HYPOTHESES, REFERENCES)["chrf"] > corpus_scores(HYPOTHESES, first_only)["chrf"]


def test_a_perfect_translation_scores_100() -> None:
    scores = corpus_scores([references[-1] for references in REFERENCES], REFERENCES)
    assert scores["bleu"] == pytest.approx(100)
    assert scores["chrf"] == pytest.approx(100)


@pytest.mark.parametrize(
    ("hypotheses", "references", "message"),
    [
        (["a"], [["a"], ["b"]], "1 translations but references for 2 sentences"),
        ([], [], "there is nothing to score"),
        (["a", "b"], [["a"], []], "sentence 1 has no reference"),
    ],
)
def test_what_cannot_be_scored_is_refused(hypotheses: list[str], references: list[list[str]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        corpus_scores(hypotheses, references)


def test_without_regard_to_case(tiny_checkpoint) -> None:
    shouted = [[reference.upper() for reference in group] for group in REFERENCES]
    assert corpus_scores(HYPOTHESES, shouted)["bleu"] < 5
    scores = corpus_scores(HYPOTHESES, shouted, lowercase=True)
    plain = corpus_scores(HYPOTHESES, REFERENCES)
    assert (scores["bleu"], scores["chrf"]) == (plain["bleu"], plain["chrf"])
    assert "case:lc" in scores["bleu_signature"] and "case:lc" in scores["chrf_signature"]
    assert "case:mixed" in plain["bleu_signature"] and "case:mixed" in plain["chrf_signature"]
    checkpoint = tiny_checkpoint("translator")
    pairs = [("It is raining.", decode(checkpoint, "It is raining.").text.swapcase())]
    assert translation_scores(checkpoint, pairs, beam=1)["chrf"] < 50
    assert translation_scores(checkpoint, pairs, beam=1, lowercase=True)["chrf"] == pytest.approx(100)


def test_translation_scores_are_those_of_the_decoded_sentences(tiny_checkpoint, tmp_path: Path) -> None:
    checkpoint = tiny_checkpoint("translator")
    path = tmp_path / "test.tsv"
    path.write_text("It is raining.\tIl pleut.\nNo.\tNon.\nIt is raining.\tIl pleut ici.\n", encoding="utf-8")
    scores = evaluate(checkpoint, path, beam=1)
    written = [decode(checkpoint, sentence, Greedy()).text for sentence in ("It is raining.", "No.")]
    assert scores["chrf"] == corpus_scores(written, [["Il pleut.", "Il pleut ici."], ["Non."]])["chrf"]
    assert (scores["sentences"], scores["beam"]) == (2, 1)


def test_bleu_while_training_is_that_of_the_decoded_sentences(tiny_checkpoint) -> None:
    checkpoint = tiny_checkpoint("translator")
    pairs = [("It is raining.", "Il pleut."), ("It is raining.", "Il pleut ici.")]
    written = decode(checkpoint, "It is raining.").text
    own = [("It is raining.", f"{written} encore")]
    for references in (pairs, pairs + own):
        expected = corpus_scores([written], [[target for _, target in references]])["bleu"]
        assert dev_bleu(checkpoint.model, checkpoint.tokenizer, references, 10) == pytest.approx(expected)
    assert expected > 50, "a score of 0 would prove nothing"
    assert dev_bleu(checkpoint.model, checkpoint.tokenizer, pairs + own + [("No.", "Non.")], 1) == expected


def test_perplexity_per_word_by_hand(tiny_checkpoint, tmp_path: Path) -> None:
    checkpoint = tiny_checkpoint("gpt")
    path = tmp_path / "text.txt"
    path.write_text("It is raining.\nNo.\n")
    total, n_tokens = 0.0, 0
    for text in ("It is raining.", "No."):
        ids = [START_ID, *checkpoint.tokenizer.encode(text), END_ID]
        with torch.inference_mode():
            log_p = torch.log_softmax(checkpoint.model(torch.tensor([ids[:-1]]))[0], dim=-1)
        total -= sum(float(row[id]) for row, id in zip(log_p, ids[1:], strict=True))
        n_tokens += len(ids) - 1
    scores = evaluate(checkpoint, path)
    assert scores["perplexity_per_word"] == pytest.approx(math.exp(total / 4), rel=1e-4)
    assert scores["perplexity_per_token"] == pytest.approx(math.exp(total / n_tokens), rel=1e-4)


def test_accuracy_counts_right_classes(tiny_checkpoint, tmp_path: Path) -> None:
    checkpoint = tiny_checkpoint("sentiment")
    path = tmp_path / "test.tsv"
    path.write_text("It is raining.\t1\nNo.\t1\nI love you.\t1\n")
    share = evaluate(checkpoint, path)["accuracy"]
    path.write_text("It is raining.\t0\nNo.\t0\nI love you.\t0\n")
    assert evaluate(checkpoint, path)["accuracy"] == pytest.approx(1 - share)


def test_masked_accuracy_is_the_share_of_recovered_words(tiny_checkpoint, tmp_path: Path) -> None:
    checkpoint = tiny_checkpoint("bert")
    path = tmp_path / "text.txt"
    texts = ["The cat sat on the mat.", "Stop!", "!", "The dog sleeps under the table, and so does the cat."]
    path.write_text("\n".join(texts))
    examples = [[START_ID, *checkpoint.tokenizer.encode(text), END_ID] for text in texts]
    hidden = hide_words(checkpoint.tokenizer, examples)
    right = recovered_words(checkpoint.model, examples, hidden, 100)
    letters = [found for found, word in zip(right, hidden, strict=True) if word.has_letters]
    assert len(letters) < len(right)
    scores = evaluate(checkpoint, path)
    assert scores["masked_accuracy"] == sum(right) / len(right)
    assert scores["masked_accuracy_letters"] == sum(letters) / len(letters)
    assert (scores["masked_words"], scores["masked_words_letters"]) == (len(right), len(letters))
    assert evaluate(checkpoint, path) == scores, "the same words are hidden every time"
    path.write_text("!\n?\n")
    assert evaluate(checkpoint, path)["masked_accuracy_letters"] is None


@pytest.mark.parametrize("kind", ["gpt", "bert", "sentiment"])
def test_baselines_stand_beside_the_scores_and_change_none(kind: str, tiny_checkpoint, tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    checkpoint = tiny_checkpoint(kind)
    data, train = tmp_path / "dev.tsv", tmp_path / "train.tsv"
    rows = [("A good film.", 1), ("A bad film.", 0), ("It is raining.", 1)]
    data.write_text("".join(f"{text}\t{label}\n" for text, label in rows))
    lines = [f"A {word} {noun}.\t{label}\n" for noun in "abcde" for word, label in (("good", 1), ("bad", 0))]
    train.write_text("".join([*lines, *lines[:3], "It is raining.\t1\n"]))
    scores = evaluate(checkpoint, data, train=train)
    plain = evaluate(checkpoint, data)
    assert {name: scores[name] for name in plain} == plain
    texts = list(dict.fromkeys(line.split("\t")[0] for line in train.read_text().splitlines()))
    if kind == "gpt":
        expected = {}
    elif kind == "bert":
        examples = [[START_ID, *checkpoint.tokenizer.encode(text), END_ID] for text, _ in rows]
        expected = unigram_accuracies(checkpoint.tokenizer, texts, hide_words(checkpoint.tokenizer, examples))
    else:
        labelled = [(text, int(label)) for text, label in (line.split("\t") for line in train.read_text().splitlines())]
        expected = {"bag_of_words_accuracy": bag_of_words_accuracy(labelled, rows)}
    expected["sentences_also_in_train"] = 1
    assert {name: scores[name] for name in set(scores) - set(plain)} == pytest.approx(expected)


def test_an_option_that_a_checkpoint_has_no_use_for_is_refused(tiny_checkpoint, tmp_path: Path) -> None:
    path = tmp_path / "data.tsv"
    path.write_text("a\t1\n")
    with pytest.raises(InputError, match="tiny-translator translates: no baseline"):
        evaluate(tiny_checkpoint("translator"), path, train=path)
    for kind in ("gpt", "bert", "sentiment"):
        with pytest.raises(InputError, match="only translations can be scored without regard to case"):
            evaluate(tiny_checkpoint(kind), path, lowercase=True)


def test_a_class_that_the_model_does_not_have_is_refused(tiny_checkpoint, tmp_path: Path) -> None:
    path = tmp_path / "test.tsv"
    for label in ("2", "good"):
        path.write_text(f"It is raining.\t1\nNo.\t{label}\n")
        with pytest.raises(InputError, match=f"has the class '{label}'; this model's are numbered 0 to 1"):
            evaluate(tiny_checkpoint("sentiment"), path)


@pytest.mark.parametrize("kind", ["gpt", "bert", "sentiment"])
def test_an_empty_training_file_is_refused(kind: str, tiny_checkpoint, tmp_path: Path) -> None:
    data, empty = tmp_path / "data.tsv", tmp_path / "empty.tsv"
    data.write_text("a\t1\n")
    empty.write_text("\n")
    with pytest.raises(InputError, match=r"nothing to score in .*empty\.tsv"):
        evaluate(tiny_checkpoint(kind), data, train=empty)


@pytest.mark.parametrize("kind", ["translator", "gpt", "bert", "sentiment"])
def test_an_empty_file_is_refused(kind: str, tiny_checkpoint, tmp_path: Path) -> None:
    path = tmp_path / "empty.tsv"
    path.write_text("\n\n")
    with pytest.raises(InputError, match="nothing to score"):
        evaluate(tiny_checkpoint(kind), path)


def test_a_text_that_is_too_long_is_refused_rather_than_left_out(tiny_checkpoint, tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("No.\n" + "x" * 200 + "\n")
    for kind in ("gpt", "bert"):
        with pytest.raises(InputError, match="1 texts are longer than the 96 tokens this model reads: xxx"):
            evaluate(tiny_checkpoint(kind), path)


def test_next_sentences_are_scored_beside_two_baselines(tiny_checkpoint, tmp_path: Path) -> None:
    checkpoint = tiny_checkpoint("bert")
    rows = [("The cat sat.", "The cat slept.", 0), ("The dog sleeps.", "It is raining.", 1), ("Stop!", "No.", 1)]
    data, train = tmp_path / "dev.tsv", tmp_path / "train.tsv"
    data.write_text("".join(f"{first}\t{second}\t{label}\n" for first, second, label in rows))
    train.write_text("I go.\tI stay.\t0\nI go.\tShe sleeps.\t1\nYou go.\tShe stays.\t1\nStop!\tNo.\t1\n")
    answers = [next_sentence(transformer.trace(checkpoint, f"{first} || {second}")).name for first, second, _ in rows]
    right = [name == ("IsNext", "NotNext")[label] for name, (_, _, label) in zip(answers, rows, strict=True)]
    scores = evaluate(checkpoint, data, train=train)
    assert scores == {
        "next_sentence_accuracy": pytest.approx(sum(right) / 3),
        "majority_accuracy": pytest.approx(2 / 3),
        "word_overlap_accuracy": 1.0,
        "pairs": 3,
        "pairs_also_in_train": 1,
    }
    assert evaluate(checkpoint, data) == {name: scores[name] for name in ("next_sentence_accuracy", "pairs")}
