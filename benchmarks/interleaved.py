"""Comparison of functions' speed on a machine that does other work at the same time."""

import random
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Ratio:
    """Ratio of two functions' times: median and quartiles over all rounds."""

    median: float
    lower: float
    upper: float


@dataclass(frozen=True)
class Timings:
    """``seconds[name][round]``, the processor time of one call, including helper threads."""

    seconds: Mapping[str, tuple[float, ...]]

    def milliseconds(self, name: str) -> float:
        """Return the median time of one call."""
        return 1000 * statistics.median(self.seconds[name])

    def ratio(self, name: str, base: str, *, scale: float = 1.0) -> Ratio:
        """Return the ratio of two functions' times per round, multiplied by ``scale``.

        Raises:
            KeyError: If a name was not timed.
        """
        pairs = zip(self.seconds[name], self.seconds[base], strict=True)
        ratios = [scale * one / other for one, other in pairs]
        lower, median, upper = statistics.quantiles(ratios, n=4, method="inclusive")
        return Ratio(median, lower, upper)


def time_interleaved(functions: Mapping[str, Callable[[], object]], *, rounds: int, calls: int = 1) -> Timings:
    """Run every function ``calls`` times in a row in each round, in a new order each time.

    A slow moment of the machine slows all of them, so ratios within a round are reliable. The clock is the processor
    time of this process: it includes helper threads (``from_pretrained`` reads in some), and not the time when other
    programs have the core. The first round is a warm-up.

    Raises:
        ValueError: If there are fewer than 2 rounds, which quartiles need.
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
