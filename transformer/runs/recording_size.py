"""Memory of a recorded pass, computed before it runs.

It is the sum over all probes of the product of their axes: numbers of four bytes, and one byte for ``allowed``.
Attention grows with the square of the length: with 16 layers of 16 heads and 3,900 tokens, weights and scores alone
take 31 GB, in a model whose own file is half a megabyte.
"""

from collections.abc import Collection, Mapping, MutableMapping
from math import prod
from weakref import WeakKeyDictionary

from transformer.config import NEXT_SENTENCE
from transformer.errors import InputError
from transformer.models import Model
from transformer.system.memory import free_memory

MAX_BYTES: int | None = None  # limit for one recorded pass; if None, only the free memory counts
ALWAYS = 10_000_000  # bytes; a smaller recording is always allowed, without checking the free memory
_NUMBER, _TRUTH = 4, 1  # bytes of a float32 and of a bool
_TEMPORARY = 3  # number of temporary arrays as large as the scores of one layer: masked, softmax, times allowed
_SPARED = 2  # use at most half of the free memory, since another visitor may ask at the same moment
_MANY = 64  # lengths of which the sizes of a model's probes are remembered: a click asks twenty times about one
_REMEMBERED: MutableMapping[Model, dict[tuple[int, int], Mapping[str, int]]] = WeakKeyDictionary()


def allow_bytes(most: int | None) -> None:
    """Set the limit of one recorded pass in this process; it never exceeds half of the free memory."""
    global MAX_BYTES
    MAX_BYTES = most


def allowed_bytes() -> int:
    """Return how many bytes one recorded pass may take now."""
    spared = free_memory() // _SPARED
    return spared if MAX_BYTES is None else min(MAX_BYTES, spared)


def pass_bytes(model: Model, *, source: int = 0, target: int = 0, names: Collection[str] | None = None) -> int:
    """Return the size in bytes of the recorded probes (``names``, or all) and of temporary arrays.

    The temporary arrays are those of the largest attention layer.
    """
    sizes = probe_bytes(model, source, target)
    largest = max((size for name, size in sizes.items() if name.endswith("attention.scores")), default=0)
    return sum(size for name, size in sizes.items() if names is None or name in names) + _TEMPORARY * largest


def part_of(name: str) -> str | None:
    """Return the part that a lazy pass computes again for a probe: its layer, or the logits.

    ``None`` stands for tensors that it keeps: the input of each layer, and everything outside of layers.
    """
    if name.endswith(".logits"):
        return name
    parts = name.split(".", 3)
    return ".".join(parts[:3]) if parts[1] == "layers" and not name.endswith(".residual.in") else None


def kept_bytes(model: Model, target: int) -> int:
    """Return the size in bytes of what a lazy pass keeps."""
    return sum(size for name, size in probe_bytes(model, 0, target).items() if part_of(name) is None)


def lazy_pass_bytes(model: Model, target: int) -> int:
    """Return the size of a lazy pass with one layer, or the logits."""
    sizes = probe_bytes(model, 0, target)
    kept = kept_bytes(model, target)
    first = sum(size for name, size in sizes.items() if name.startswith("decoder.layers.0."))
    scores = sizes["decoder.layers.0.self_attention.scores"]
    return kept + max(first + _TEMPORARY * scores, sizes["decoder.logits"])


def is_recorded_by_layer(model: Model, target: int) -> bool:
    """Return whether a text is too long to be recorded at once, but its layers can be recorded alone."""
    if model.config.kind != "decoder-only" or model.config.positions == "relative":
        return False
    needed = pass_bytes(model, target=target)
    return needed > ALWAYS and needed > allowed_bytes()


def check_recording(
    model: Model, *, source: int = 0, target: int = 0, most: int | None = None, by_layer: bool = False
) -> None:
    """Check that the recording of a text fits into the allowed memory, or into ``most`` bytes.

    Args:
        model: The model.
        source: Number of tokens of the encoder.
        target: Number of tokens of the decoder.
        most: Limit in bytes.
        by_layer: Whether it may be recorded layer by layer (``is_recorded_by_layer``).

    Raises:
        InputError: If it does not; the message states both numbers.
    """
    needed = pass_bytes(model, source=source, target=target)
    if needed <= ALWAYS:
        return
    scope, limit = "in every layer and head of this model", allowed_bytes()
    if by_layer and is_recorded_by_layer(model, target):
        scope, needed = "even one layer of this model at a time", lazy_pass_bytes(model, target)
    elif most is not None:
        limit = min(limit, most)
    if needed > limit:
        raise InputError(
            f"To record {source + target:,} tokens, {scope}, takes {needed / 1e6:,.0f} MB of memory; at most "
            f"{limit / 1e6:,.0f} MB are allowed. Nothing was cut: shorten the text."
        )


def rows_that_fit(
    model: Model, rows: int, *, source: int = 0, target: int = 0, names: Collection[str] | None = None
) -> int:
    """Return how many of ``rows`` texts of these lengths fit into one recorded pass, at least 1."""
    one = pass_bytes(model, source=source, target=target, names=names)
    return max(1, min(rows, allowed_bytes() // max(1, one)))


def probe_bytes(model: Model, source: int, target: int) -> Mapping[str, int]:
    """Return the bytes that each probe takes in a recorded pass of one text, in the order of the model.

    Their sum equals ``Recorded.n_bytes`` after the pass.
    """
    known = _REMEMBERED.setdefault(model, {})
    if (sizes := known.get((source, target))) is None:
        if len(known) >= _MANY:
            known.clear()
        sizes = known[source, target] = {name: _bytes(model, name, source, target) for name in model.probes}
    return sizes


def _bytes(model: Model, name: str, source: int, target: int) -> int:
    """Return the bytes of the probe ``name``."""
    config, stack, last = model.config, name.split(".", 1)[0], name.rsplit(".", 1)[-1]
    heads = config.heads_in(stack)
    own = target if stack == "decoder" else source
    keys = source if ".cross_attention." in name else own
    if last in ("key", "value"):
        own = keys
    if ".key_norm." in name:  # recorded before the keys are copied to the heads that share them
        own, heads = keys, config.n_key_heads or heads
    sizes = {
        "position": own,
        "query": own,
        "key": keys,
        "head": heads,
        "channel": config.d_head_in(stack),
        "model": config.d_model,
        "hidden": config.d_ff_in(stack),
        "vocabulary": config.vocabulary_size,
        "class": config.n_classes,
        "next_sentence": len(NEXT_SENTENCE),
        "expert": config.n_experts,
    }
    axes = model.probes[name].axes
    return prod(sizes[axis] for axis in axes) * (_TRUTH if last == "allowed" else _NUMBER)
