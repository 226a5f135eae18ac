"""Corpus scores equal sacreBLEU's, and invalid requests are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

import transformer
from tests.conftest import ROOT
from tests.transformer.training.conftest import shortened, train
from transformer import InputError, decode
from transformer.__main__ import main
from transformer.files.checkpoints import Checkpoint
from transformer.layer_norm import RMSNorm
from transformer.runs.next_sentence import next_sentence
from transformer.scores.baselines import bag_of_words_accuracy, unigram_accuracies
from transformer.scores.bleu_and_chrf import corpus_scores
from transformer.scores.masked_words import hide_words, recovered_words
from transformer.text.tokenizer import END_ID, START_ID
from transformer.training.evaluation import evaluate, translation_scores
from transformer.training.publication import publish
from transformer.training.recipe import load_recipe
from transformer.training.text_tasks import TEXT_TASKS
from transformer.training.validation import dev_bleu

HYPOTHESES = ["le chat est assis sur le tapis .", "il pleut beaucoup ce soir", "je ne sais pas", "tom dort"]
REFERENCES = [
    ["le chat est assis sur le tapis .", "le chat était sur le tapis ."],
    ["il pleut beaucoup ce matin"],
    ["je ne le sais pas", "je ne sais pas où", "aucune idée"],
    ["tom dort encore"],
]


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


ROW, LONG = "a\t1\n", "No.\n" + "x" * 200 + "\n"
TO_FRENCH = "translate English to French"
REFUSED = (  # kind of model, its file, options, message
    ("translator", ROW, {"train": ROW}, "tiny-translator translates: no baseline"),
    *((kind, ROW, {"lowercase": True}, "only translations can be scored") for kind in ("gpt", "bert", "sentiment")),
    ("tasks", ROW, {}, "cannot be scored with the task None; its tasks are 'translate English to French', .*'fill'"),
    ("tasks", ROW, {"task": "summarize"}, "cannot be scored with the task 'summarize'"),
    ("tasks", ROW, {"task": "fill", "lowercase": True}, "only translations can be scored without regard to case"),
    ("tasks", ROW, {"task": TO_FRENCH, "train": ROW}, "translates: no baseline of it needs a training"),
    *(("sentiment", f"It is raining.\t1\nNo.\t{label}\n", {}, f"class '{label}'") for label in ("2", "good")),
    *((kind, "\n\n", {}, "nothing to score") for kind in ("translator", "gpt", "bert", "sentiment")),
    *((kind, ROW, {"train": "\n\n"}, "nothing to score") for kind in ("gpt", "bert", "sentiment")),
    *((kind, LONG, {}, "1 texts are longer than the 96 tokens this model reads: xxx") for kind in ("gpt", "bert")),
)


@pytest.mark.parametrize(("kind", "content", "options", "message"), REFUSED)
def test_what_cannot_be_evaluated_is_refused(
    kind: str, content: str, options: dict, message: str, tiny_checkpoint, trained: Checkpoint, tmp_path: Path
) -> None:
    given = dict(options)
    for name, text in (("data", content), ("train", options.get("train"))):
        if text is not None:
            given[name] = tmp_path / f"{name}.tsv"
            given[name].write_text(text)
    with pytest.raises(InputError, match=message):
        evaluate(trained if kind == "tasks" else tiny_checkpoint(kind), **given)


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


# ---- several tasks in one model -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    folder = tmp_path_factory.mktemp("trained")
    recipe = shortened(load_recipe(ROOT / "configs" / "t5-small-tasks.toml"))
    publish(train(data, folder / "run", recipe), folder / "tasks")
    return transformer.load(folder / "tasks")


def test_the_checkpoint_knows_its_tasks(trained: Checkpoint) -> None:
    assert trained.framing.starts == tuple(TEXT_TASKS) == trained.config.task_prefixes
    assert "`sentiment:`, `fill:` |" in trained.card and "`mixing_temperature = 2.0`" in trained.card
    assert "pre-norm with RMSNorm" in trained.card
    norms = [module for module in trained.model.modules() if "Norm" in type(module).__name__]
    assert len(norms) == 7 and all(isinstance(norm, RMSNorm) for norm in norms)
    assert float(trained.model.encoder.position_bias.table.detach().abs().max()) > 0.0, "it is trained"


def test_every_task_has_scores_in_the_card(trained: Checkpoint, data: Path) -> None:
    dev = {
        "translate English to French": "tatoeba-en-fr/dev.tsv",
        "translate English to German": "multi30k-en-de/val.en",
        "sentiment": "sst2/dev.tsv",
        "fill": "tatoeba-en-fr/dev.tsv",
    }
    for task, file in dev.items():
        options = ["--checkpoint", str(trained.path), "--data", str(data / file), "--task", task, "--beam", "1"]
        assert main(["evaluate", *options, "--update-card"]) == 0
        card = transformer.load(trained.path).card
        assert f"### {file}, {task}\n" in card
    assert "--data DIR/sst2/dev.tsv --task sentiment --json" in card
    assert "--task 'translate English to French' --beam 1 --json" in card and "sacreBLEU signature" in card


def test_scores_of_a_task_are_those_of_the_answers(trained: Checkpoint, data: Path, tmp_path: Path) -> None:
    written = transformer.decode(trained, "translate English to French: Tom sees us.").text
    (tmp_path / "own.tsv").write_text(f"Tom sees us.\t{written}\n")
    scores = evaluate(trained, tmp_path / "own.tsv", task="translate English to French", beam=1)
    assert scores["chrf"] == pytest.approx(100)
    film = tmp_path / "film.tsv"
    film.write_text("so good\t1\n")
    right = transformer.decode(trained, "sentiment: so good").text == "positive"
    assert evaluate(trained, film, task="sentiment", train=film) == {
        "task": "sentiment",
        "accuracy": float(right),
        "most_frequent_answer_accuracy": 1.0,
        "sentences": 1,
        "sentences_also_in_train": 1,
    }
