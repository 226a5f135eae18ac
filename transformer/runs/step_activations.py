"""Activations of each decoding step, as slices of one pass over the whole text.

In a causal model no position depends on a later one. So the pass over the whole text holds, row by row, the numbers of
every step, at the cost of one pass instead of one recorded step per token.
"""

from collections.abc import Iterator, Mapping

from transformer.runs.activation import Activation


class StepActivations(Mapping[str, Activation]):
    """Activations of the step that fed positions ``start`` to ``stop`` − 1 to a decoder with a cache.

    ``whole`` holds those of the pass over the whole text. What a cache provides belongs to the first step only: the
    encoder, and keys and values of cross-attention. Logits are those of the step's last position.
    """

    def __init__(self, whole: Mapping[str, Activation], start: int, stop: int) -> None:
        self._whole, self._start, self._stop = whole, start, stop

    def __getitem__(self, name: str) -> Activation:
        if name not in self:
            raise KeyError(name)
        found = self._whole[name]
        if _is_cached(name):
            return found
        rows = slice(self._stop - 1 if name == "decoder.logits" else self._start, self._stop)
        keys = slice(None) if "cross_attention" in name else slice(self._stop)
        slices = {"position": rows, "query": rows, "key": keys}
        return Activation(name, found.axes, found.values[tuple(slices.get(axis, slice(None)) for axis in found.axes)])

    def __contains__(self, name: object) -> bool:
        return name in self._whole and not (self._start and _is_cached(str(name)))

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._whole if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _is_cached(name: str) -> bool:
    """Return whether a decoder with a cache computes this tensor once for all steps."""
    return name.startswith("encoder.") or name.endswith(("cross_attention.key", "cross_attention.value"))
