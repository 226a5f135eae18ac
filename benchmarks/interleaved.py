"""Compare the speed of functions on a machine that does other work at the same time."""

import random
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Ratio:
    """How many times as long one function takes as another: median and quartiles over all rounds."""

    median: float
    lower: float
    upper: float


@dataclass(frozen=True)
class Timings:
    """``seconds[name][round]``: processor time of one call, that of helper threads included."""

    seconds: Mapping[str, tuple[float, ...]]

    def milliseconds(self, name: str) -> float:
        """Median time of one call."""
        return 1000 * statistics.median(self.seconds[name])

    def ratio(self, name: str, base: str, *, scale: float = 1.0) -> Ratio:
        """Ratio of the two times of each round, times ``scale``. Raises ``KeyError`` for a name that was not timed."""
        pairs = zip(self.seconds[name], self.seconds[base], strict=True)
        ratios = [scale * one / other for one, other in pairs]
        lower, median, upper = statistics.quantiles(ratios, n=4, method="inclusive")
        return Ratio(median, lower, upper)


def time_interleaved(functions: Mapping[str, Callable[[], object]], *, rounds: int, calls: int = 1) -> Timings:
    """Run every function once (``calls`` times in a row) in each of ``rounds`` rounds, in a new order each round.

    A slow moment of the machine slows all of them, so ratios within a round hold. The clock is the processor time of
    this process: it counts what is done in helper threads (``from_pretrained`` reads in some), and not the time when
    other programs have the core. The first round only warms up.

    Raises ``ValueError`` for fewer than 2 rounds: quartiles need two.
    """
    if rounds < 2:
        raise ValueError(f"rounds is {rounds}; at least 2 are needed for a spread")
    order = list(functions)
    shuffle = random.Random(0).shuffle
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for round_number in range(rounds + 1):
        shuffle(order)
        for name in order:
            start = time.process_time()
            for _ in range(calls):
                functions[name]()
            elapsed = (time.process_time() - start) / calls
            if round_number:
                seconds[name].append(elapsed)
    return Timings({name: tuple(values) for name, values in seconds.items()})
