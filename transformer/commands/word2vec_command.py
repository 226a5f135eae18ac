"""Command ``word2vec``: train both kinds of word vectors on the English side of a corpus."""

import sys
import time
from dataclasses import asdict
from pathlib import Path

from transformer.commands.command_line import Command, argument


def _word2vec(data: str, corpus: str, output: str) -> None:
    from transformer.disk.whole_files import write_text
    from transformer.training.corpora import SOURCES, corpus_folders, load_corpus
    from transformer.word_vectors.vector_files import save_vectors
    from transformer.word_vectors.vocabulary import Vocabulary
    from transformer.word_vectors.word2vec_objectives import OBJECTIVES
    from transformer.word_vectors.word2vec_training import WordRecipe, train_vectors

    recipe, read, folder = WordRecipe(), load_corpus(corpus, data), Path(output)
    texts = [text for text, *_ in read.train]
    vocabulary = Vocabulary.of(texts, min_count=recipe.min_count)
    tables, rows = {}, []
    for objective in OBJECTIVES:
        started = time.process_time()
        losses: list[float] = []

        def report(epoch: int, loss: float, objective: str = objective, losses: list[float] = losses) -> None:
            losses.append(loss)
            print(f"{objective}  epoch {epoch} of {recipe.epochs}  loss {loss:.4f}", file=sys.stderr)

        tables[objective] = train_vectors(vocabulary, texts, objective, recipe, report)
        minutes = (time.process_time() - started) / 60
        rows.append(f"| {objective} | {losses[0]:.3f} | {losses[-1]:.3f} | {minutes:.1f} |")
    save_vectors(folder, vocabulary, tables)
    sources = "; ".join(f"{name}: {SOURCES[name]}" for name in corpus_folders(corpus))
    settings = "\n".join(f"| {name} | {value} |" for name, value in asdict(recipe).items())
    write_text(
        folder / "README.md",
        _CARD.format(
            name=folder.name, n_words=len(vocabulary.words), sources=sources, digest=read.digest, n_texts=len(texts),
            n_counted=int(vocabulary.counts.sum()), settings=settings, rows="\n".join(rows), corpus=corpus,
        ),
    )  # fmt: skip
    print(f"{folder} holds the vectors of {len(vocabulary.words):,} words")


_CARD = """# {name}

Vectors of {n_words:,} English words by word2vec (Mikolov et al. 2013a, 2013b): skip-gram and CBOW, both with negative
sampling. They are not a Transformer: a word has one vector, whatever stands around it. The Embeddings page sets them
beside the rows of E. They repeat the biases of their data.

| | |
|---|---|
| data and its licence | {sources}; {n_texts:,} sentences of the training split, {n_counted:,} words |
| data digest | SHA-256 `{digest}` of the files read, in order |
{settings}

| objective | loss in the first epoch | in the last | CPU minutes |
|---|---|---|---|
{rows}

This command trains them again:

```
python -m transformer word2vec --data DIR --corpus {corpus}
```
"""

WORD2VEC = Command(
    "word2vec",
    "train word vectors by skip-gram and CBOW (some minutes)",
    _word2vec,
    (
        argument("--data", default="data", help="folder that holds the corpora (default: data)"),
        argument("--corpus", default="tatoeba-en", help="the first column is read (default: tatoeba-en)"),
        argument("--output", default="checkpoints/word2vec-en", metavar="DIR"),
    ),
)
