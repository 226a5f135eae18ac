"""The data of the Decoding page, built once per run; one class for each of its sections.

They need neither Streamlit nor figures, so a notebook builds the same objects:

    >>> import transformer
    >>> from transformer.runs.run import Run
    >>> from views.decoding.decoding_view_model import DecodingChoices, Location, WrittenText
    >>> run = Run(transformer.load("checkpoints/en-fr"), "I love you.")
    >>> decoding = transformer.decode(run.checkpoint, run.sentence, record_steps=True)
    >>> text = WrittenText(run, Location(layer=2), DecodingChoices(step=1), {(): decoding})
    >>> text.here.how, text.here.before, text.here.chosen.display, text.here.rank
    ('greedy', 'Je', '·t', 1)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from transformer import Beam, Checkpoint, Decoding, Greedy, Sample
from transformer.attribution.leave_one_out import LeaveOneOut
from transformer.errors import CheckpointError
from transformer.heads.role_files import load_corpus_roles
from transformer.predictions.answer_probabilities import Filling, Fillings, blanks, fill_blanks, fillings
from transformer.predictions.decoding_steps import (
    Confidence,
    Reshaping,
    StepAttention,
    confidence,
    likeliest,
    n_forced,
    rank,
    reshape_step,
    step_attention,
    token_log_probabilities,
)
from transformer.predictions.hypothesis_tree import FINISHED, PRUNED, BeamNode, BeamTree
from transformer.predictions.word_alignment import WordAlignment, align
from transformer.runs.decoding import Candidate, Step
from transformer.runs.decoding_strategies import Strategy, length_penalty
from transformer.runs.inputs import prompt_of
from transformer.runs.masked_word import hidden_id
from transformer.runs.run import Run
from transformer.runs.traces import Trace
from transformer.text.tokens import TokenSequence

SHOWN = 10  # candidates of a step
STEPS_OF_TREE = 12  # candidates that fit on one screen
MOST_BRANCHES = 8
_END_OF_PREFIX = 60  # characters of the text so far that the sentence about a step repeats


@dataclass(frozen=True)
class Location:
    """The layer, the head and the token in focus."""

    layer: int = 0
    head: int = 0
    token: int = 0


@dataclass(frozen=True)
class Branch:
    """A text in which another word was forced at some step, and which the model continued.

    Attributes:
        kept: Ids that it shares with the text from which it branches off.
        word: The ids that were forced at that step.
    """

    kept: tuple[int, ...] = ()
    word: tuple[int, ...] = ()

    @property
    def forced(self) -> tuple[int, ...]:
        """All ids that the text must begin with."""
        return (*self.kept, *self.word)


ORIGINAL = Branch()


@dataclass(frozen=True)
class DecodingChoices:
    """What the reader chose on the page; the defaults are those of the controls.

    Attributes:
        strategy: "greedy" or "sampling", which generates the text that is shown step by step.
        seed, temperature, top_k, top_p: Settings of sampling.
        beam_width, length_penalty: Settings of beam search.
        attention_kind: "cross" or "self"; empty for the first that the model has.
        one_head: Whether attention is that of one head, not the mean of all.
        step: The step in focus, from 0; ``None`` for the least likely one.
        branches: All branches of the text.
        branch: The one that is read, or ``ORIGINAL``.
        pruned: How many pruned branches of each text of a beam are drawn.
        first_step: First step of the tree that is shown, from 1.
        when: Whether a word's row is the one that predicted it ("written") or the one that reads it ("read").
        specials: Whether words are also aligned with special tokens.
        alignment_layer: "best" for the layer that aligns best, where that is known; "chosen" for that of the location.
        blank: The position of the blank that is shown, if a sentence has several.
        class_index: The class whose contributions are shown; ``None`` for the predicted one.
    """

    strategy: str = "greedy"
    seed: int = 0
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    beam_width: int = 4
    length_penalty: float = 0.6
    attention_kind: str = ""
    one_head: bool = False
    step: int | None = None
    branches: tuple[Branch, ...] = ()
    branch: Branch = ORIGINAL
    pruned: int = 2
    first_step: int = 1
    when: str = "written"
    specials: bool = False
    alignment_layer: str = "best"
    blank: int | None = None
    class_index: int | None = None

    @property
    def sampling(self) -> Sample:
        """The strategy that draws each token."""
        return Sample(self.temperature, self.top_k, self.top_p, seed=self.seed)

    @property
    def beam(self) -> Beam:
        """The strategy that searches."""
        return Beam(self.beam_width, length_penalty=self.length_penalty)

    @property
    def writes_by(self) -> Strategy:
        """The strategy of the text that is shown step by step; reshaping does not change greedy decoding."""
        return Greedy() if self.strategy == "greedy" else self.sampling

    @property
    def compared(self) -> dict[str, Strategy]:
        """The strategies that are shown side by side."""
        return {"greedy": Greedy(), "sampling": self.sampling, "beam": self.beam}


@dataclass(frozen=True)
class DecodingViewModel:
    """The data that all sections have in common.

    Attributes:
        run: The model, what it reads, and the target that each text must begin with.
        location: The location in focus on all pages.
        choices: What the reader chose on this page.
    """

    run: Run = field(repr=False)
    location: Location
    choices: DecodingChoices

    @property
    def checkpoint(self) -> Checkpoint:
        """The model."""
        return self.run.checkpoint

    @property
    def given(self) -> str:
        """The target text that every output must begin with; often empty."""
        return given_of(self.run)

    @property
    def stack(self) -> str:
        """The stack whose attention is shown."""
        return "decoder" if self.checkpoint.config.has_decoder else "encoder"

    @property
    def layer(self) -> int:
        """The layer whose attention is shown, counted in ``stack``; the focus may be in the other one."""
        config = self.checkpoint.config
        return min(
            self.location.layer, (config.n_decoder_layers if config.has_decoder else config.n_encoder_layers) - 1
        )

    @property
    def head(self) -> int | None:
        """The head whose attention is shown; ``None``: the mean of all."""
        return self.location.head if self.choices.one_head else None

    @cached_property
    def end(self) -> str:
        """The token that ends a text, as it is shown."""
        return "".join([self.checkpoint.tokenizer.display(id) for id in self.checkpoint.framing.end]) or "–"

    def arguments_of(self, strategy: Strategy, *, forced: tuple[int, ...] = ()) -> str:
        """Return the arguments of ``transformer.decode`` after the checkpoint, as Python."""
        arguments = [repr(self.run.sentence), f"transformer.{strategy!r}"]
        arguments += [f"forced={forced or self.given!r}"] if forced or self.given else []
        arguments += [f"source_pads={self.run.source_pads}"] if self.run.source_pads else []
        return ", ".join(arguments)


@dataclass(frozen=True)
class WrittenStep:
    """One step of a text.

    Attributes:
        how: How its token was chosen: "given", "given_first" (given, and the most likely), "kept" or "forced" (of a
            branch), "greedy", "greedy_end" or "sampling".
        before: The end of what was there before; empty at the beginning.
        step: Its logits and candidates.
        candidates: The most likely tokens, and the chosen one.
    """

    how: str
    before: str
    step: Step = field(repr=False)
    candidates: tuple[Candidate, ...] = field(repr=False)

    @property
    def chosen(self) -> Candidate:
        """The chosen token."""
        return self.step.chosen

    @property
    def rank(self) -> int:
        """The rank of the chosen token by the model's own probability: 1 for the most likely."""
        return rank(self.step)

    @property
    def rest(self) -> float:
        """The probability of all tokens that are not listed."""
        return max(0.0, 1.0 - sum([candidate.probability for candidate in self.candidates]))


@dataclass(frozen=True)
class WrittenText(DecodingViewModel):
    """A text that is generated one token at a time, and its branches.

    Attributes:
        texts: The outputs with ``record_steps=True``, keyed by the ids that were forced: ``()`` for the original.
            The branch that is read must be among them; a branch that is missing is not compared.
    """

    texts: Mapping[tuple[int, ...], Decoding] = field(repr=False)

    @cached_property
    def decoding(self) -> Decoding:
        """The text that is read."""
        return self.texts[self.choices.branch.forced]

    @property
    def original(self) -> Decoding:
        """The text without any branch."""
        return self.texts[()]

    @property
    def step(self) -> int:
        """The step in focus; the last one if the text is shorter."""
        return (
            self.hesitant_step if self.choices.step is None else min(self.choices.step, len(self.decoding.tokens) - 1)
        )

    @cached_property
    def hesitant_step(self) -> int:
        """The step with the least likely word among those that the model chose, if there are any.

        If no whole word is chosen from other words, it is the least likely token. If all but the end was given, it is
        the step at which the model most clearly expects another token.
        """
        probability = self.confidence.probability
        if self.n_given + 1 >= len(probability) > 1:
            return int((self.confidence.runner_up - probability).argmax())
        begin = self.n_given if self.n_given < len(probability) else 0
        words = [step for step in range(begin, len(probability)) if is_choice_of_words(self.decoding, step)]
        return min(words, key=probability.__getitem__) if words else begin + int(probability[begin:].argmin())

    @cached_property
    def n_given(self) -> int:
        """How many of its tokens were given."""
        return len(self.choices.branch.forced) or n_forced(self.checkpoint, self.given, self.run.sentence)

    @property
    def adds_words(self) -> bool:
        """Whether the model continues what was given, and does not just end the text."""
        return len(self.steps) - self.decoding.finished > self.n_given

    @cached_property
    def prompt(self) -> TokenSequence:
        """What the decoding stack had read before the first step."""
        return self.checkpoint.tokenizer.sequence(self._prompt)

    @cached_property
    def _prompt(self) -> tuple[int, ...]:
        return tuple(prompt_of(self.checkpoint, self.run.sentence))

    @property
    def kind(self) -> str:
        """The attention that is shown: "cross" or "self"."""
        return self.choices.attention_kind or kinds_of(self.checkpoint)[0]

    @cached_property
    def steps(self) -> tuple[WrittenStep, ...]:
        """All steps of the text."""
        return tuple([self.step_at(index) for index in range(len(self.decoding.steps))])

    @cached_property
    def here(self) -> WrittenStep:
        """The step in focus."""
        return self.step_at(self.step)

    def step_at(self, index: int) -> WrittenStep:
        """Return one step; ``steps`` has all of them."""
        step, text = self.decoding.steps[index], self.text_before(index)
        return WrittenStep(
            how=self._how(step),
            before=f"… {text[-_END_OF_PREFIX:]}" if len(text) > _END_OF_PREFIX else text,
            step=step,
            candidates=likeliest(step, shown=SHOWN),
        )

    def attention_at(self, step: int) -> StepAttention:
        """Return the attention of the row that predicts the token of a step."""
        arguments = {"step": step, "layer": self.layer, "kind": self.kind, "prompt": self._prompt}
        return step_attention(self.checkpoint, self.decoding, self.run.sentence, **arguments)

    def text_before(self, step: int) -> str:
        """Return the text before a step, including the prompt of a decoder-only model."""
        return self.checkpoint.tokenizer.decode([*self._prompt, *self._ids[:step]])

    @cached_property
    def _ids(self) -> tuple[int, ...]:
        return self.decoding.tokens.ids

    def _how(self, step: Step) -> str:
        branch = self.choices.branch
        if step.index < self.n_given:
            given = "given_first" if rank(step) == 1 else "given"
            return given if branch == ORIGINAL else "kept" if step.index < len(branch.kept) else "forced"
        ends = self.choices.strategy == "greedy" and step.chosen.id in self.checkpoint.framing.ends
        return "greedy_end" if ends else self.choices.strategy

    @cached_property
    def reshaped(self) -> Reshaping:
        """The candidates of the step from logits to sampling probabilities."""
        reshaping = {name: getattr(self.choices, name) for name in ("temperature", "top_k", "top_p")}
        return reshape_step(self.decoding.steps[self.step], **reshaping, shown=SHOWN)

    @cached_property
    def confidence(self) -> Confidence:
        """The probability of the chosen token and of the most likely other token at every step."""
        return confidence(self.decoding)

    @cached_property
    def others(self) -> tuple[Candidate, ...]:
        """The candidates of the step that were not chosen, one of which may be forced."""
        step = self.decoding.steps[self.step]
        return tuple([candidate for candidate in step.candidates if candidate.id != step.chosen.id])

    @property
    def branch_here(self) -> Branch:
        """The branch that begins by forcing a word at this step, without the word itself."""
        return Branch(self._ids[: self.step])

    @cached_property
    def compared(self) -> tuple[tuple[Branch, Decoding, TextNumbers], ...]:
        """The original and all branches, each with its text and its numbers."""
        branches = (ORIGINAL, *self.choices.branches)
        texts = [(branch, self.texts[branch.forced]) for branch in branches if branch.forced in self.texts]
        return tuple([(branch, text, TextNumbers.of(text)) for branch, text in texts])


@dataclass(frozen=True)
class TextNumbers:
    """The log-probability of a text, its number of tokens, and the score that ranks it in a beam."""

    total: float
    count: int
    exponent: float = 0.0

    @classmethod
    def of(cls, decoding: Decoding, exponent: float = 0.0) -> TextNumbers:
        """Return the numbers of a text; ``exponent``: that of the length penalty."""
        return cls(decoding.log_probability, len(decoding.tokens), exponent)

    @property
    def each(self) -> float:
        """The mean log p per token."""
        return self.total / self.count

    @property
    def penalty(self) -> float:
        """The length penalty of a text of that many tokens."""
        return length_penalty(self.count, self.exponent)

    @property
    def score(self) -> float:
        """Σ log p divided by the length penalty."""
        return self.total / self.penalty


@dataclass(frozen=True)
class ComparedTexts(DecodingViewModel):
    """The texts of greedy decoding, sampling and beam search side by side.

    Attributes:
        texts: One text per strategy, keyed by the names of ``DecodingChoices.compared``.
    """

    texts: Mapping[str, Decoding] = field(repr=False)

    @cached_property
    def numbers(self) -> dict[str, TextNumbers]:
        """The log-probability of each text."""
        return {name: TextNumbers.of(text, self.choices.length_penalty) for name, text in self.texts.items()}

    @property
    def log_probabilities(self) -> dict[str, np.ndarray]:
        """For each text [step], log p of the chosen token."""
        return {name: token_log_probabilities(text) for name, text in self.texts.items()}

    def is_greedy(self, name: str) -> bool:
        """Whether a strategy found the same tokens as greedy decoding."""
        return self.texts[name].tokens.ids == self.texts["greedy"].tokens.ids

    @property
    def verdict(self) -> tuple[str, float]:
        """The verdict on the beam's text ("same", "likelier" or "less_likely"), and the factor."""
        gain = self.numbers["beam"].total - self.numbers["greedy"].total
        found = "same" if self.is_greedy("beam") else "likelier" if gain >= 0 else "less_likely"
        return found, float(np.exp(min(abs(gain), 700.0)))


@dataclass(frozen=True)
class SearchedTree(DecodingViewModel):
    """A beam search as a tree.

    Attributes:
        tree: Every branch that the search expanded.
    """

    tree: BeamTree = field(repr=False)

    @property
    def first_steps(self) -> int:
        """Number of steps at which the drawn part of the tree can start; 1 if the whole tree fits."""
        return max(1, self.tree.n_steps - STEPS_OF_TREE + 1)

    @property
    def first(self) -> int:
        """The first step that is drawn, from 1."""
        return min(self.choices.first_step, self.first_steps)

    @property
    def n_drawn(self) -> int:
        """How many steps are drawn."""
        return min(STEPS_OF_TREE, self.tree.n_steps)

    @cached_property
    def counts(self) -> dict[str, int]:
        """The numbers of expanded branches ("count"), and of the "pruned" and "finished" among them."""
        fates = [node.fate for node in self.tree.nodes]
        return {"count": len(fates), "pruned": fates.count(PRUNED), "finished": fates.count(FINISHED)}

    @cached_property
    def lowest(self) -> BeamNode | None:
        """The token of the output with the lowest rank, which shows how close the output came to being pruned."""
        words = [node for node in self.tree.winner if node.fate != FINISHED and node.step > self.tree.n_forced]
        return max(words, key=lambda node: node.rank, default=None)

    @cached_property
    def numbers(self) -> tuple[TextNumbers, ...]:
        """The log-probability of each text that the search returned, best first."""
        exponent = self.tree.strategy.length_penalty
        return tuple([TextNumbers(text.log_probability, len(text.ids), exponent) for text in self.tree.hypotheses])


@dataclass(frozen=True)
class AlignedWords(DecodingViewModel):
    """The source word that each word of the output attends to most.

    Attributes:
        trace: The sentence with its output.
        best_layer: The layer that aligns best over many sentences (``best_alignment``), where that is known.
    """

    trace: Trace = field(repr=False)
    best_layer: int | None = None

    @property
    def layer_is_chosen(self) -> bool:
        """Whether the layer is the one in focus."""
        return self.best_layer is None or self.choices.alignment_layer == "chosen"

    @property
    def layer(self) -> int:
        """The layer whose cross-attention aligns the words."""
        return super().layer if self.layer_is_chosen else self.best_layer

    @cached_property
    def found(self) -> WordAlignment:
        """Attention between words."""
        return align(self.trace, layer=self.layer, head=self.head, when=self.choices.when)

    @cached_property
    def best(self) -> np.ndarray:
        """The index of the source word of each output word, [word]."""
        return self.found.best(specials=self.choices.specials)

    @cached_property
    def second(self) -> tuple[int | None, ...]:
        """The index of the source word with the second largest weight, for each output word."""
        ranked = np.argsort(-self.found.weights, axis=1, kind="stable")
        rows = zip(ranked.tolist(), self.best.tolist(), strict=True)
        return tuple([next((column for column in row if column != best), None) for row, best in rows])

    @property
    def specials(self) -> str:
        """The special tokens of the source, in displayed form."""
        return special_tokens(self.trace)

    @cached_property
    def longest(self) -> int:
        """The word of the output with the most tokens, an example for the formula."""
        return int(np.argmax([word.end - word.start for word in self.found.target]))


@dataclass(frozen=True)
class FilledBlank(DecodingViewModel):
    """The candidates for a blank; without a blank, for the token of the location.

    Attributes:
        trace: The sentence.
        typed: The text as it was typed, if one of its words is masked.
    """

    trace: Trace = field(repr=False)
    typed: str = ""

    @cached_property
    def blanks(self) -> tuple[int, ...]:
        """The positions of all blanks."""
        return blanks(self.trace)

    @property
    def position(self) -> int:
        """The position of the blank that is filled in."""
        return answered_position(self.trace, self.choices.blank, self.location.token)

    @cached_property
    def fillings(self) -> Fillings:
        """The most likely tokens there."""
        return fillings(self.trace, self.position, typed=hidden_id(self.trace, self.typed) if self.typed else None)

    @property
    def masked(self) -> Filling | None:
        """The word of the typed text in place of which the model reads a mask, if it is one token."""
        return next((row for row in self.fillings.rows if row.stands_there), None) if self.blanks else None

    @property
    def coloured(self) -> list[bool]:
        """For each candidate, whether it would be filled in or, without a blank, is the token there."""
        rows = self.fillings.rows
        return [row is rows[0] if self.blanks else row.stands_there for row in rows]

    @cached_property
    def filled(self) -> str:
        """The sentence with the most likely word in each blank."""
        return fill_blanks(self.trace)

    @cached_property
    def attention(self) -> StepAttention:
        """The attention of that position."""
        view = self.trace.attention("encoder", self.layer)
        return StepAttention(view.weights[:, self.position], view.allowed[self.position], view.key)


@dataclass(frozen=True)
class Verdict(DecodingViewModel):
    """The class of a sentence, and what each word contributes to a class.

    Attributes:
        found: The probabilities of the sentence, and without each word.
    """

    found: LeaveOneOut = field(repr=False)

    @property
    def best(self) -> int:
        """The class with the highest probability."""
        return int(self.found.probabilities.argmax())

    @property
    def class_index(self) -> int:
        """The class whose contributions are shown."""
        return self.best if self.choices.class_index is None else self.choices.class_index

    @property
    def contributions(self) -> np.ndarray:
        """How much the probability of that class falls without the word: [word]."""
        return self.found.contributions[:, self.class_index]


def given_of(run: Run) -> str:
    """Return the target text that every output of a run must begin with; often empty."""
    return run.target if run.target and run.target.strip() else ""


def kinds_of(checkpoint: Checkpoint) -> tuple[str, ...]:
    """Return the kinds of attention of the decoding stack, the default first."""
    return ("cross", "self") if checkpoint.config.has_encoder else ("self",)


def special_tokens(trace: Trace) -> str:
    """Return the special tokens of a source without padding, each once, as they are shown."""
    return " ".join(dict.fromkeys([t.display for t in trace.source if t.special and t.role != "pad"])) or "–"


def is_choice_of_words(decoding: Decoding, step: int) -> bool:
    """Return whether a whole word was chosen, and the most likely other token is a word as well."""
    tokens, chosen = decoding.tokens, decoding.steps[step].chosen
    other = next((one for one in decoding.steps[step].candidates if one.id != chosen.id), None)
    ends = step + 1 == len(tokens) or not tokens[step + 1].text[:1].isalnum()
    begins = tokens[step].text[:1].isspace() or (step > 0 and not tokens[step - 1].text[-1:].isalnum())
    words = [one.display.lstrip("·") for one in (chosen, other) if one]
    return begins and ends and len(words) == 2 and all(len(word) > 2 and word.isalpha() for word in words)


def answered_position(trace: Trace, blank: int | None, token: int) -> int:
    """Return the position of the blank that is filled in; without a blank, that of the token in focus.

    A special token in focus gives way to the last word, because its prediction is itself.
    """
    found = blanks(trace)
    if not found:
        words = [one.index for one in trace.source if any(letter.isalnum() for letter in one.text) and not one.special]
        return words[-1] if words and trace.source[token].special else token
    return blank if blank in found else first_blank(found, token)


def first_blank(positions: tuple[int, ...], token: int) -> int:
    """Return the default blank: that at the token in focus."""
    return token if token in positions else positions[0]


def best_alignment(checkpoint: Checkpoint) -> int | None:
    """Return the layer whose cross-attention moves most steadily through the source.

    It is measured over many sentences (``head_roles.json``); ``None`` where nothing was measured.
    """
    try:
        saved = load_corpus_roles(checkpoint)
    except CheckpointError:  # the file belongs to other weights or definitions; the Heads page reports it
        return None
    layers = defaultdict(list)
    for role in saved.roles.of("decoder", "cross") if saved else ():
        layers[role.layer].append(role.scores["monotone"])
    steady = {layer: float(np.nanmean(scores)) for layer, scores in layers.items()}
    return max(steady, key=steady.__getitem__, default=None)


def write_branches(branches: tuple[Branch, ...]) -> str:
    """Return branches for the URL, separated by commas: "5.17-300" if 300 was forced after 5 and 17."""
    return ",".join([f"{'.'.join(map(str, b.kept))}-{'.'.join(map(str, b.word))}" for b in branches])


def read_branches(text: str, checkpoint: Checkpoint) -> tuple[Branch, ...]:
    """Read the result of ``write_branches``: at most ``MOST_BRANCHES``, without impossible ones."""
    size, longest, framing = checkpoint.config.vocabulary_size, checkpoint.config.max_length, checkpoint.framing
    branches: list[Branch] = []
    for part in text.split(",") if text else ():
        kept, _, word = part.partition("-")
        numbers = [piece.split(".") if piece else [] for piece in (kept, word)]
        if not word or not all(n.isascii() and n.isdecimal() and len(n) < 8 for piece in numbers for n in piece):
            continue
        branch = Branch(*(tuple(map(int, piece)) for piece in numbers))
        inner = branch.forced[:-1]
        known = all(id < size and id not in framing.never for id in branch.forced)
        known = known and not set(inner) & set(framing.ends)
        if known and len(branch.forced) < longest and branch not in branches:
            branches.append(branch)
        if len(branches) == MOST_BRANCHES:
            break
    return tuple(branches)
