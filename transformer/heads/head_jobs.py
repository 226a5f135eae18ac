"""The jobs that a head may have, in one list: what can be said of it in one sentence, and over many.

One sentence has too few rows for the tests of the literature: there a head has the *role* of the place that gets most
of its attention (``ROLES``). Over many sentences the tests say which *job* it has (``MEASURES``). Both look at the same
places: "previous" and "next" are the offsets −1 and +1, "punctuation" is the delimiter.
"""

from transformer.heads.aligned_words import SHIFTS
from transformer.heads.syntactic import DIRECTIONS

# In the order in which equal scores are decided: a first token that is special is called a sink.
PLACES = ("previous", "next", "same", "sink", "punctuation", "repeated", "first", "diagonal")
ROLES = (*PLACES, "monotone", "broad", "none")
UNCLEAR = ("broad", "none")  # roles that are no job: it looks everywhere, or at nothing that has a name

ALIGNED = tuple(SHIFTS)
MEASURES = ("offset", "same", *DIRECTIONS, *ALIGNED, "rare", "repeated", "induction", "sink", "delimiter", "diagonal")
MEASURES += ("monotone", "window", "broad", "copying")
GENERAL = ("diagonal", "monotone", "window", "broad")  # named only where no sharper measure is reached, in this order
NO_JOB = ("broad", "copying")  # a head that looks everywhere has none, and copying is what a head writes
