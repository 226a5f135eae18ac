"""Text-to-text tasks: inputs, targets, and how often each task occurs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import transformer
from transformer import InputError
from transformer.__main__ import main
from transformer.files.checkpoints import Checkpoint
from transformer.layer_norm import RMSNorm
from transformer.training.evaluation import evaluate
from transformer.training.text_tasks import BLANK, TEXT_TASKS, load_text_tasks, mixed_counts, one_blank, text_examples
from transformer.training.validation import dev_text_tasks


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """16 translations into French, 4 into German, 1 film review."""
    folder = tmp_path_factory.mktemp("tasks")
    for name in ("tatoeba-en-fr", "multi30k-en-de", "sst2"):
        (folder / name).mkdir()
    french = "".join(f"I see {n} red cats.\tJe vois {n} chats rouges.\n" for n in range(16))
    (folder / "tatoeba-en-fr" / "train.tsv").write_text(french)
    (folder / "tatoeba-en-fr" / "dev.tsv").write_text("Go.\tVa !\nTom sees us.\tTom nous voit.\n")
    for split, count in (("train", 4), ("val", 1)):
        (folder / "multi30k-en-de" / f"{split}.en").write_text("".join(f"A dog, {n} men.\n" for n in range(count)))
        (folder / "multi30k-en-de" / f"{split}.de").write_text("".join(f"Ein Hund, {n}.\n" for n in range(count)))
    for split in ("train", "dev"):
        (folder / "sst2" / f"{split}.tsv").write_text("so good\t1\n")
    return folder


def test_shares_are_those_of_the_paper() -> None:
    """r_m ∝ e_m^(1/T), with all examples of the largest task (Raffel et al. 2020, §3.5.2)."""
    sizes = [1600, 400, 100]
    assert mixed_counts(sizes, 1.0) == sizes
    assert mixed_counts(sizes, 2.0) == [1600, 800, 400]
    assert mixed_counts(sizes, 1e9) == [1600] * 3
    assert mixed_counts([5], 3.0) == [5]


def test_the_mixture_of_small_corpora(data: Path) -> None:
    corpus = load_text_tasks(list(TEXT_TASKS), data, temperature=2.0)
    tasks = Counter(source.split(": ")[0] for source, _ in corpus.train)
    assert tasks == {
        "translate English to French": 18,  # 20 · √(16 / 20)
        "translate English to German": 9,
        "sentiment": 4,
        "fill": 20,
    }
    assert ("translate English to French: I see 3 red cats.", "Je vois 3 chats rouges.") in corpus.train
    german = Counter(pair for pair in corpus.train if pair[0].startswith("translate English to German: "))
    assert len(german) == 4 and set(german.values()) <= {2, 3}, "all of them before any of them again"
    assert corpus.train.count(("sentiment: so good", "positive")) == 4
    assert corpus.train == load_text_tasks(list(TEXT_TASKS), data, temperature=2.0).train
    assert Counter(source.split(": ")[0] for source, _ in corpus.dev) == {
        "translate English to French": 2,
        "translate English to German": 1,
        "sentiment": 1,
        "fill": 2,
    }


def test_some_of_the_tasks_have_another_digest(data: Path) -> None:
    one, two = (load_text_tasks(list(TEXT_TASKS)[:n], data, temperature=1.0) for n in (1, 2))
    assert len(one.train) == 16 and len(two.train) == 20 and one.digest != two.digest


def test_a_blank_hides_one_word_which_is_the_answer() -> None:
    text = "Tom's dog, a small one, doesn't bark."
    blanks = {one_blank((text,), draw) for draw in range(60)}
    assert {answer for _, answer in blanks} == {"Tom's", "dog", "a", "small", "one", "doesn't", "bark"}
    for asked, answer in blanks:
        assert asked.count(BLANK) == 1 and asked.replace(BLANK, answer) == text
    assert one_blank((text,), 7) == one_blank((text,), 7)


def test_a_text_of_two_words_has_no_blank() -> None:
    assert one_blank(("Tom sleeps.",), 0) is None
    assert text_examples("fill: ", [("Go.",), ("Tom sees us.",)]) == [
        (f"fill: {asked}", answer) for asked, answer in [one_blank(("Tom sees us.",), 0)]
    ]


def test_opinions_are_words() -> None:
    assert text_examples("sentiment: ", [("so bad", 0), ("fine", "1")]) == [
        ("sentiment: so bad", "negative"),
        ("sentiment: fine", "positive"),
    ]


# ---- from the corpora to the scores in the card ---------------------------------------------------------------------

RECIPE = """
name = "tasks"
task = "text-to-text"
corpus = "sst2 + tatoeba-en-fr + multi30k-en-de"
mixing_temperature = 2.0
steps = 2
batch_tokens = 400
warmup_steps = 2
evaluate_every = 2
evaluate_sentences = 2
average_decay = 0.5

[model]
vocabulary_size = 300
d_model = 16
n_heads = 2
d_ff = 24
n_encoder_layers = 1
n_decoder_layers = 1
max_length = 128
positions = "relative"
rms_norm = true
task_prefixes = ["translate English to French: ", "translate English to German: ", "sentiment: ", "fill: "]
"""


@pytest.fixture(scope="module")
def trained(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    folder = tmp_path_factory.mktemp("trained")
    (folder / "tasks.toml").write_text(RECIPE)
    places = ["--data", str(data), "--run-directory", str(folder / "run"), "--output", str(folder / "tasks")]
    assert main(["train", str(folder / "tasks.toml"), *places]) == 0
    return transformer.load(folder / "tasks")


def test_the_checkpoint_knows_its_tasks(trained: Checkpoint) -> None:
    assert trained.framing.starts == tuple(TEXT_TASKS) == trained.config.task_prefixes
    assert "`sentiment:`, `fill:`, mixed with temperature 2 (Raffel et al. 2020" in trained.card
    assert "pre-norm with RMSNorm" in trained.card
    norms = [module for module in trained.model.modules() if "Norm" in type(module).__name__]
    assert len(norms) == 7 and all(isinstance(norm, RMSNorm) for norm in norms)
    assert float(trained.model.encoder.position_bias.table.detach().abs().max()) > 0.0, "it is trained"


def test_the_cache_changes_no_answer(trained: Checkpoint) -> None:
    """Relative distances and RMSNorm token by token, and all at once."""
    greedy = transformer.Greedy(max_new_tokens=6)
    one, other = (
        transformer.decode(trained, "fill: A dog, ___ men.", greedy, cached=cached).steps for cached in (True, False)
    )
    assert len(one) == len(other) > 1
    for step, again in zip(one, other, strict=True):
        np.testing.assert_allclose(step.logits, again.logits, rtol=0, atol=1e-5)


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


def test_scores_are_those_of_the_answers(trained: Checkpoint, data: Path, tmp_path: Path) -> None:
    written = transformer.decode(trained, "translate English to French: Tom sees us.").text
    (tmp_path / "own.tsv").write_text(f"Tom sees us.\t{written}\n")
    scores = evaluate(trained, tmp_path / "own.tsv", task="translate English to French", beam=1)
    assert scores["chrf"] == pytest.approx(100)
    film = data / "sst2" / "dev.tsv"
    scores = evaluate(trained, film, task="sentiment", train=film)
    right = transformer.decode(trained, "sentiment: so good").text == "positive"
    assert scores == {
        "task": "sentiment",
        "accuracy": float(right),
        "most_frequent_answer_accuracy": 1.0,
        "sentences": 1,
        "sentences_also_in_train": 1,
    }


def test_exact_answers_are_counted(trained: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transformer.training.validation.greedy_texts", lambda model, tokenizer, sources: ["a"] * 3)
    monkeypatch.setattr("transformer.training.validation.dev_bleu", lambda *given: 20.0)
    pairs = [("fill: x", "a"), ("fill: y", "b"), ("fill: z", "a"), *[("sentiment: x", "b")] * 3]
    assert dev_text_tasks(trained.model, trained.tokenizer, pairs, 3) == pytest.approx((20 + 20 + 0 + 200 / 3) / 4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "tasks cannot be scored with the task None; its tasks are 'translate English to French', .*'fill'"),
        ({"task": "summarize"}, "cannot be scored with the task 'summarize'"),
        ({"task": "fill", "lowercase": True}, "only translations can be scored without regard to case"),
        ({"task": "translate English to French", "train": "x"}, "translates: no baseline of it needs a training file"),
    ],
)
def test_a_task_that_the_model_does_not_have_is_refused(
    options: dict, message: str, trained: Checkpoint, data: Path
) -> None:
    with pytest.raises(InputError, match=message):
        evaluate(trained, data / "tatoeba-en-fr" / "dev.tsv", **options)


def test_a_model_of_one_task_takes_none(tiny_checkpoint, data: Path) -> None:
    with pytest.raises(InputError, match=r"the task 'fill'; its tasks are \(none: leave it out\)"):
        evaluate(tiny_checkpoint("translator"), data / "tatoeba-en-fr" / "dev.tsv", task="fill")
