"""Corpus scores by sacreBLEU (Post 2018)."""

from __future__ import annotations

from collections.abc import Sequence


def corpus_scores(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, float | str]:
    """BLEU and chrF with any number of references per sentence, and the signature that makes BLEU comparable.

    ``references[i]`` are all translations of sentence i. A sentence with fewer references than another is padded with
    repetitions of its own first one, which changes neither score.
    """
    from sacrebleu.metrics import BLEU, CHRF

    if len(hypotheses) != len(references):
        raise ValueError(f"{len(hypotheses)} translations but references for {len(references)} sentences")
    most = max(len(group) for group in references)
    streams = [[group[k] if k < len(group) else group[0] for group in references] for k in range(most)]
    bleu = BLEU()
    return {
        "bleu": bleu.corpus_score(hypotheses, streams).score,
        "chrf": CHRF().corpus_score(hypotheses, streams).score,
        "bleu_signature": str(bleu.get_signature()),
    }
