"""Similarity of translations to references: BLEU (Papineni et al. 2002), chrF (Popović 2015)."""

import re
from collections.abc import Mapping, Sequence


def corpus_scores(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], *, lowercase: bool = False
) -> dict[str, float | str]:
    """Return BLEU and chrF by sacreBLEU (Post 2018), with both signatures.

    Args:
        hypotheses: The translations.
        references: ``references[i]`` are all reference translations of sentence i. A sentence with fewer references
            than another is padded with repetitions of its first one, which changes neither score.
        lowercase: Whether case is ignored.

    Raises:
        ValueError: If a reference is missing.
    """
    from sacrebleu.metrics import BLEU, CHRF

    if len(hypotheses) != len(references):
        raise ValueError(f"{len(hypotheses)} translations but references for {len(references)} sentences")
    if not references:
        raise ValueError("there is nothing to score: no sentence was given")
    if without := [index for index, group in enumerate(references) if not group]:
        raise ValueError(f"sentence {without[0]} has no reference; each needs at least one")
    most = max(len(group) for group in references)
    streams = [[group[k] if k < len(group) else group[0] for group in references] for k in range(most)]
    bleu, chrf = BLEU(lowercase=lowercase), CHRF(lowercase=lowercase)
    return {
        "bleu": bleu.corpus_score(list(hypotheses), streams).score,
        "chrf": chrf.corpus_score(list(hypotheses), streams).score,
        "bleu_signature": str(bleu.get_signature()),
        "chrf_signature": str(chrf.get_signature()),
    }


def reference_note(scores: Mapping[str, object]) -> str:
    """Return a note on a BLEU with several references per sentence; "" if there is none."""
    found = re.search(r"nrefs:(\d+)", str(scores.get("bleu_signature", "")))
    if found is None or (most := int(found[1])) < 2:
        return ""
    return (
        f"Scored against up to {most} reference translations per sentence. BLEU rises with the number of references, "
        "so this figure cannot be compared with single-reference BLEU."
    )
