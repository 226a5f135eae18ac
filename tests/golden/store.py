"""How golden values are kept, as a sample of every array, and when two of them differ."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent
MOST = 96  # entries of an array that are kept; of a longer one, as many that are spread over it, and its sums
TOLERANCE = 3e-5  # of the largest absolute value of the array; two processors of one kind are up to 2.3e-5 apart
# Logits of about 10 are rounded at 10⁻⁶ of their size, and differently on every processor; changes of log p are small
# differences of them: this much may differ always, but never more than this part of the largest value. Below ZERO there
# is nothing but rounding. Exponentials (p × 10²⁵) carry the rounding of their logarithm.
ROUNDING, LARGEST_PART, ZERO, EXPONENTIALS = 5e-5, 1e-3, 1e-6, 1e6
STEPS_PART = 0.02  # part of the entries of a quantised array that may differ by a step


@dataclass(frozen=True)
class Value:
    """What is kept of an array, or a list of texts.

    Attributes:
        kind: "float"; "step" for whole numbers that stand for fractions; "exact" for counts, ids and masks; "text".
        shape: Of the whole array.
        entries: The kept entries, in float32, or the texts.
        sums: Of a longer array: smallest, largest, sum, and a sum in which every place has its own weight.
    """

    kind: str
    shape: tuple[int, ...]
    entries: np.ndarray | list[str]
    sums: tuple[float, ...] = ()


def value_of(array: np.ndarray | Iterable[str], kind: str = "float") -> Value:
    """Return what is kept of an array."""
    if kind == "text":
        texts = [str(text) for text in array]
        return Value(kind, (len(texts),), texts)
    array = np.asarray(array)
    flat = array.astype(np.float64).ravel()
    if flat.size <= MOST:
        return Value(kind, array.shape, flat.astype(np.float32))
    known = flat[np.isfinite(flat)]
    weighted = float(known @ np.cos(np.arange(known.size)))
    sums = (float(known.min()), float(known.max()), float(known.sum()), weighted) if known.size else ()
    return Value(kind, array.shape, flat[kept_places(flat.size)].astype(np.float32), sums)


def kept_places(size: int) -> np.ndarray:
    """Return the places of a flat array of this size that are kept, in no regular distance."""
    return np.unique(np.arange(1, MOST + 1) * 0.6180339887498949 % 1 * size).astype(np.int64)


def difference(old: Value, new: Value) -> str:
    """Say how two values differ; "" if they are equal within ``TOLERANCE``."""
    if old.kind != new.kind or old.shape != new.shape:
        return f"was {old.kind} {old.shape}, is {new.kind} {new.shape}"
    if old.kind == "text":
        return "" if old.entries == new.entries else _first_text(old.entries, new.entries)
    size = int(np.prod(old.shape))
    largest = max(np.abs(old.sums[:2]).max() if old.sums else 0.0, _largest(old.entries))
    of_floats = max(TOLERANCE * largest, min(ROUNDING, LARGEST_PART * largest))
    if largest > EXPONENTIALS:
        of_floats = LARGEST_PART * largest
    elif largest < ZERO:
        of_floats = ZERO
    allowed = {"float": of_floats, "step": 1.0, "exact": 0.0}[old.kind]
    of_sums = {"float": size * allowed, "step": max(1.0, STEPS_PART * size), "exact": 1e-6 * size * largest}[old.kind]
    if not np.array_equal(np.isfinite(old.entries), np.isfinite(new.entries)):
        return "other entries are NaN or infinite"
    apart = np.abs(np.nan_to_num(old.entries, posinf=0, neginf=0) - np.nan_to_num(new.entries, posinf=0, neginf=0))
    if apart.size and apart.max() > allowed:
        place = int(apart.argmax())
        return f"entry {place} was {old.entries[place]:.7g}, is {new.entries[place]:.7g} (allowed: ±{allowed:.2g})"
    for name, was, now in zip(("smallest", "largest", "sum", "weighted sum"), old.sums, new.sums, strict=False):
        limit = allowed if name in ("smallest", "largest") else of_sums
        if abs(was - now) > limit + 1e-12:
            return f"its {name} was {was:.9g}, is {now:.9g} (allowed: ±{limit:.2g})"
    return "" if len(old.sums) == len(new.sums) else "other entries are NaN or infinite"


def _largest(entries: np.ndarray) -> float:
    finite = np.abs(entries[np.isfinite(entries)])
    return float(finite.max()) if finite.size else 0.0


def _first_text(old: list[str], new: list[str]) -> str:
    place = next(number for number, pair in enumerate(zip(old, new, strict=True)) if pair[0] != pair[1])
    return f"text {place} was {old[place]!r}, is {new[place]!r}"


@dataclass(frozen=True)
class Recorded:
    """One opening of a page, or one question to the library.

    Attributes:
        name: model / input / page / view, as it begins every key.
        page: "" for a question to the library.
        address: Everything that fixes the view.
        seconds: Seconds of the processor that it took when it was recorded, for choosing a sample.
        values: By figure and array.
    """

    name: str
    page: str
    address: Mapping[str, Any]
    seconds: float
    values: dict[str, Value] = field(default_factory=dict)

    @property
    def model(self) -> str:
        """Return the name of the model."""
        return self.name.split(" / ")[0]


def write(model: str, about: Mapping[str, str], recorded: Iterable[Recorded]) -> Path:
    """Write ``values/<model>.npz``: all numbers in one array, each different part once, and an index."""
    numbers: list[np.ndarray] = []
    places: dict[bytes, int] = {}
    index, offset = [], 0
    for one in recorded:
        values = {}
        for key, value in one.values.items():
            place: Any = value.entries
            if value.kind != "text":
                packed = value.entries.tobytes()
                if packed not in places:
                    places[packed] = offset
                    numbers.append(value.entries)
                    offset += len(value.entries)
                place = [places[packed], len(value.entries)]
            values[key] = [value.kind, value.shape, place, value.sums]
        index.append({**asdict(one), "values": values})
    text = json.dumps({"about": about, "recorded": index}, ensure_ascii=False, separators=(",", ":"))
    file = FOLDER / "values" / f"{model}.npz"
    file.parent.mkdir(exist_ok=True)
    np.savez_compressed(
        file,
        numbers=np.concatenate(numbers or [np.zeros(0, np.float32)]),
        index=np.frombuffer(text.encode("utf-8", errors="surrogatepass"), np.uint8),
    )
    return file


def read(model: str) -> tuple[dict[str, str], list[Recorded]]:
    """Return what ``write`` was given."""
    with np.load(FOLDER / "values" / f"{model}.npz") as file:
        numbers, index = file["numbers"], json.loads(file["index"].tobytes().decode("utf-8", errors="surrogatepass"))
    recorded = []
    for one in index["recorded"]:
        values = {}
        for key, (kind, shape, place, sums) in one["values"].items():
            entries = place if kind == "text" else numbers[place[0] : place[0] + place[1]]
            values[key] = Value(kind, tuple(shape), entries, tuple(sums))
        recorded.append(Recorded(**{**one, "values": values}))
    return index["about"], recorded
