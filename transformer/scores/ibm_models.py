"""IBM models 1 and 2: word alignment from sentence pairs alone (Brown et al. 1993, §4), by EM.

"The Mathematics of Statistical Machine Translation". The attention of translation models is compared with them; no
model is trained on them.

    p(f, a | e) = Π_j t(f_j | e_{a_j}) · d(a_j | j, l, m)      model 1: d = 1 / (l + 1)

f_1 … f_m: target words, e_1 … e_l: source words, e_0: no word. E step: a link (i, j) counts t · d, divided by the sum
over i. M step: t and d are the relative frequencies of these counts. Model 2 begins with the t of model 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

Words = Sequence[str]


@dataclass(frozen=True)
class Links:
    """Every possible link of every pair, one entry each.

    An entry holds which parameters of t and d the link uses, and which target word it belongs to. ``places`` holds for
    each parameter of d the (l, j, m) over which it sums to 1.
    """

    translation: np.ndarray
    distortion: np.ndarray
    target_word: np.ndarray
    places: np.ndarray


class IBMModel:
    """Model 1 or, with ``second``, model 2 after it, fitted to ``pairs`` of (source, target) words.

    Each takes ``rounds`` of EM. ``log_likelihoods`` are Σ log p of the pairs before every round.
    """

    def __init__(self, pairs: Sequence[tuple[Words, Words]], *, rounds: int = 5, second: bool = False) -> None:
        self._source = {word: k for k, word in enumerate(dict.fromkeys(w for e, _ in pairs for w in e), start=1)}
        self._target = {word: k for k, word in enumerate(dict.fromkeys(w for _, f in pairs for w in f))}
        self.log_likelihoods: list[float] = []
        links, self._translations, self._distortions = self._links(pairs)
        self._t = np.full(len(self._translations), 1 / max(1, len(self._target)))
        self._d = 1 / (1 + self._distortions[:, 1].astype(float))
        self._second = False
        for _ in range(rounds):
            self._round(links)
        if second:
            self._second = True
            for _ in range(rounds):
                self._round(links)
        self._find_t = {pair: k for k, pair in enumerate(self._translations.tolist())}
        self._find_d = {tuple(place): k for k, place in enumerate(self._distortions.tolist())}

    def links(self, source: Words, target: Words) -> list[int]:
        """Return the source word of every target word, −1 for none: argmax_i t(f_j | e_i) · d(i | j, l, m)."""
        found = []
        for j, word in enumerate(target):
            f = self._target.get(word)
            shares = [
                self._probability(
                    0 if i == 0 else self._source.get(source[i - 1], -1), f, (i, len(source), j, len(target))
                )
                for i in range(len(source) + 1)
            ]
            best = int(np.argmax(shares))
            found.append(best - 1 if shares[best] > 0 else -1)
        return found

    def _probability(self, e: int, f: int | None, place: tuple[int, int, int, int]) -> float:
        if f is None or (k := self._find_t.get(e * len(self._target) + f)) is None:
            return 0.0
        return float(self._t[k]) * (self._d[d] if (d := self._find_d.get(place)) is not None else 1 / (1 + place[1]))

    def _links(self, pairs: Sequence[tuple[Words, Words]]) -> tuple[Links, np.ndarray, np.ndarray]:
        keys, words, places, n_words = [], [], [], 0
        for source, target in pairs:
            e = np.array([0, *(self._source[word] for word in source)])
            f = np.array([self._target[word] for word in target])
            i, j = (grid.ravel() for grid in np.meshgrid(np.arange(len(e)), np.arange(len(f)), indexing="ij"))
            keys.append(e[i] * len(self._target) + f[j])
            words.append(n_words + j)
            places.append(np.stack([i, np.full_like(i, len(source)), j, np.full_like(i, len(target))], axis=1))
            n_words += len(target)
        translations, t = np.unique(np.concatenate(keys), return_inverse=True)
        distortions, d = np.unique(np.concatenate(places), axis=0, return_inverse=True)
        _, groups = np.unique(distortions[:, 1:], axis=0, return_inverse=True)  # (l, j, m), over which d sums to 1
        links = Links(t, d.ravel(), np.concatenate(words), groups.ravel())
        return links, translations, distortions

    def _round(self, links: Links) -> None:
        joint = self._t[links.translation] * self._d[links.distortion]
        total = np.bincount(links.target_word, joint)
        self.log_likelihoods.append(float(np.log(total).sum()))
        counts = joint / total[links.target_word]
        expected = np.bincount(links.translation, counts, minlength=len(self._t))
        sources = self._translations // len(self._target)
        self._t = expected / np.maximum(np.bincount(sources, expected)[sources], 1e-300)
        if self._second:
            expected = np.bincount(links.distortion, counts, minlength=len(self._d))
            self._d = expected / np.maximum(np.bincount(links.places, expected)[links.places], 1e-300)
