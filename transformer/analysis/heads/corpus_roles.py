"""What every head does over many sentences: the roles of ``head_roles``, sentence by sentence, and their means.

Voita et al. 2019 ("Analyzing Multi-Head Self-Attention", §4 and §5) name a head only if it plays one role in most
sentences, and is sure of itself. One sentence cannot tell.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch

from transformer.analysis.heads.head_roles import PLACES, ROLES, HeadRole, head_roles
from transformer.analysis.heads.induction import LEAST_INDUCTION, InductionTest, induction_test
from transformer.errors import InputError
from transformer.files.checkpoints import Checkpoint
from transformer.probes import Recording, fast_path, record
from transformer.runs.attention_view import AttentionView
from transformer.runs.decoding_state import greedy_batch
from transformer.runs.inputs import prompt_ids, source_tensor
from transformer.text.sentence_files import sentence_digest
from transformer.text.tokens import TokenSequence
from transformer.training.batches import pad

LEAST_CONSISTENT = 0.5  # a head has the role that it has in at least half of the sentences
LEAST_LEANING = 0.1  # a rarer role is not mentioned
BATCH_SIZE = 16
_MOST_CELLS = 200_000  # sentences × longest² in a batch: what its maps take in memory
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class CorpusRole:
    """One head over many sentences.

    ``shares``: for every role the share of the ``n_sentences`` in which the head has it; sentences that are too short
    for roles do not count. ``role``: the most frequent one if its share is at least ``LEAST_CONSISTENT``, else "none".
    ``scores``: the mean of every measure over the ``counts`` sentences in which it is defined (NaN where there are
    none); in a decoder-only model also "induction" and "previous_random" (``transformer.analysis.heads.induction``).
    """

    stack: str
    kind: str
    layer: int
    head: int
    role: str
    shares: Mapping[str, float]
    scores: Mapping[str, float]
    counts: Mapping[str, int]
    n_sentences: int

    @property
    def score(self) -> float:
        """The mean score of the role itself, NaN for "none"."""
        return self.scores.get(self.role, math.nan)

    @property
    def consistency(self) -> float:
        """The share of the sentences in which it does what it does most often; NaN where all were too short."""
        return max(self.shares.values(), default=math.nan)

    @property
    def most_frequent(self) -> str:
        """What it does most often, however rarely that is; "none" also where all sentences were too short."""
        return max(self.shares, key=self.shares.__getitem__, default="none")

    @property
    def leaning(self) -> str:
        """Of a head without a clear role: the role that it has most often, from ``LEAST_LEANING`` of the sentences on;
        else ""."""
        clear = {role: share for role, share in self.shares.items() if role != "none" and share >= LEAST_LEANING}
        return max(clear, key=clear.__getitem__, default="") if self.role == "none" else ""

    @property
    def nearest(self) -> str:
        """The place with the largest mean share, whether that is large or not; "" where none could be measured."""
        measured = [place for place in PLACES if not math.isnan(self.scores.get(place, math.nan))]
        return max(measured, key=lambda place: self.scores[place], default="")

    @property
    def is_induction_head(self) -> bool:
        return self.scores.get("induction", 0.0) >= LEAST_INDUCTION


@dataclass(frozen=True)
class CorpusRoles:
    """All heads of a model over ``n_sentences`` sentences; ``n_skipped`` others did not fit into the model.

    ``digest`` names the whole list of sentences (``sentence_digest``). ``induction``: of a decoder-only model.
    """

    heads: tuple[CorpusRole, ...]
    n_sentences: int
    n_skipped: int
    digest: str
    induction: InductionTest | None = None

    def of(self, stack: str, kind: str) -> tuple[CorpusRole, ...]:
        """The heads of one kind of attention, layer by layer."""
        return tuple(head for head in self.heads if (head.stack, head.kind) == (stack, kind))

    def head(self, stack: str, kind: str, layer: int, head: int) -> CorpusRole:
        """One head. Raises ``KeyError`` for one that the model does not have."""
        return {(found.layer, found.head): found for found in self.of(stack, kind)}[layer, head]


def corpus_roles(
    checkpoint: Checkpoint,
    sentences: Sequence[str],
    *,
    batch_size: int = BATCH_SIZE,
    seed: int = 0,
    progress: Progress | None = None,
) -> CorpusRoles:
    """The roles of all heads over ``sentences``, see ``sentence_roles`` for what the model reads.

    ``progress(done, total)`` is called after every batch; what it raises ends the work. ``seed``: of the random
    sequences of the induction test. Raises ``InputError`` where no sentence is left that the model can read.
    """
    found: list[tuple[HeadRole, ...]] = []
    skipped = 0
    for done in sentence_roles(checkpoint, sentences, batch_size=batch_size):
        found += [roles for roles in done if roles is not None]
        skipped += sum(roles is None for roles in done)
        if progress is not None:
            progress(len(found) + skipped, len(sentences))
    if not found:
        limit = checkpoint.config.max_length
        raise InputError(
            "{name} can read no sentence of the {count} given: at least one must not be empty and have at most {limit} "
            "tokens, special tokens included.",
            name=checkpoint.name,
            count=len(sentences),
            limit=limit,
        )
    heads = tuple(summarise(of_one_head) for of_one_head in zip(*found, strict=True))
    induction = None
    if checkpoint.config.kind == "decoder-only":
        induction = induction_test(checkpoint, seed=seed)
        heads = tuple(_with_induction(head, induction) for head in heads)
    return CorpusRoles(heads, len(found), skipped, sentence_digest(sentences), induction)


def summarise(roles: Sequence[HeadRole]) -> CorpusRole:
    """One head over the sentences of ``roles``: the role that it has most often, if that is often enough."""
    told = [role for role in roles if not math.isnan(role.scores["broad"])]  # long enough to tell a role
    count = Counter(role.role for role in told)
    shares = {role: count[role] / len(told) for role in ROLES if count[role]}
    often = max(shares, key=shares.__getitem__, default="none")  # the first of equals
    scores, counts = {}, {}
    for name in dict.fromkeys(name for role in roles for name in role.scores):
        values = [value for role in roles if not math.isnan(value := role.scores.get(name, math.nan))]
        scores[name] = math.fsum(values) / len(values) if values else math.nan
        counts[name] = len(values)
    first = roles[0]
    role = often if shares.get(often, 0.0) >= LEAST_CONSISTENT else "none"
    return CorpusRole(first.stack, first.kind, first.layer, first.head, role, shares, scores, counts, len(told))


def sentence_roles(
    checkpoint: Checkpoint, sentences: Sequence[str], *, batch_size: int = BATCH_SIZE
) -> Iterator[tuple[tuple[HeadRole, ...] | None, ...]]:
    """The roles of all heads in each sentence, a batch of sentences of similar length at a time.

    An encoder-decoder reads the sentence and its own greedy translation of it; the other kinds read the sentence alone
    (a decoder-only model does not go on with it). ``None`` stands for a sentence that is empty or longer than the model
    can read. Padding changes numbers by rounding only: every map is cut to the tokens of its own sentence.
    """
    if batch_size < 1:
        raise ValueError(f"batch_size is {batch_size}; it must be at least 1")
    readable = []
    for sentence in sentences:
        try:
            readable.append(_ids(checkpoint, sentence))
        except InputError:
            readable.append([])
    if unread := [ids for ids in readable if not ids]:
        yield (None,) * len(unread)
    for batch in _batches(sorted((ids for ids in readable if ids), key=len), batch_size):
        yield _roles_of_batch(checkpoint, batch)


def _ids(checkpoint: Checkpoint, sentence: str) -> list[int]:
    if checkpoint.config.has_encoder:
        return source_tensor(checkpoint, sentence)[0].tolist()
    return prompt_ids(checkpoint, sentence)


def _batches(by_length: Sequence[list[int]], batch_size: int) -> Iterator[list[list[int]]]:
    batch: list[list[int]] = []
    for ids in by_length:
        if batch and (len(batch) == batch_size or (len(batch) + 1) * len(ids) ** 2 > _MOST_CELLS):
            yield batch
            batch = []
        batch.append(ids)
    if batch:
        yield batch


@torch.inference_mode()
def _roles_of_batch(checkpoint: Checkpoint, batch: Sequence[list[int]]) -> tuple[tuple[HeadRole, ...], ...]:
    model, config, pad_id = checkpoint.model, checkpoint.config, checkpoint.special.pad or 0
    read = {"encoder" if config.has_encoder else "decoder": batch}
    if config.has_encoder and config.has_decoder:
        read["decoder"] = _translations(checkpoint, batch)
    inputs = [pad(ids, pad_id).to(model.device) for ids in read.values()]
    with record() as recording:
        model(*inputs)
    tokens = {stack: [checkpoint.tokenizer.sequence(ids) for ids in rows] for stack, rows in read.items()}
    found: list[list[HeadRole]] = [[] for _ in batch]
    for stack, kind, layer in attention_layers(checkpoint):
        queries, keys = tokens[stack], tokens["encoder" if kind == "cross" else stack]
        for row, view in enumerate(_views(recording, stack, kind, layer, queries, keys)):
            found[row] += head_roles(view)
    return tuple(map(tuple, found))


def _translations(checkpoint: Checkpoint, batch: Sequence[list[int]]) -> list[list[int]]:
    """What the decoder reads of the model's own translations, exactly as ``transformer.trace`` has it."""
    model, pad_id = checkpoint.model, checkpoint.special.pad or 0
    limits = [min(2 * len(ids) + 10, checkpoint.config.max_length - 1) for ids in batch]
    with fast_path():
        source = pad(batch, pad_id).to(model.device)
        written = greedy_batch(model, source, max(limits), framing=checkpoint.framing, pad_id=pad_id)
    return [[*checkpoint.framing.answer, *ids[: limit - 1]] for ids, limit in zip(written, limits, strict=True)]


def attention_layers(checkpoint: Checkpoint) -> Iterator[tuple[str, str, int]]:
    """(stack, kind, layer) of every attention layer, in the order of ``CorpusRoles.heads``."""
    config = checkpoint.config
    for layer in range(config.n_encoder_layers):
        yield "encoder", "self", layer
    for kind in ("self", "cross") if config.has_encoder else ("self",):
        for layer in range(config.n_decoder_layers):
            yield "decoder", kind, layer


def _views(
    recording: Recording,
    stack: str,
    kind: str,
    layer: int,
    queries: Sequence[TokenSequence],
    keys: Sequence[TokenSequence],
) -> Iterator[AttentionView]:
    """One attention layer in every sentence of a batch, without its padding."""
    name = f"{stack}.layers.{layer}.{kind}_attention"
    parts = ("weights", "allowed", "scores")
    arrays = {part: recording.tensors[f"{name}.{part}"].numpy(force=True) for part in parts}
    for row, (query, key) in enumerate(zip(queries, keys, strict=True)):
        own = {part: array[row][..., : len(query), : len(key)] for part, array in arrays.items()}
        yield AttentionView(name=name, stack=stack, layer=layer, kind=kind, query=query, key=key, **own)


def _with_induction(head: CorpusRole, test: InductionTest) -> CorpusRole:
    place = (head.layer, head.head)
    more = {"induction": test.induction[place], "previous_random": test.previous[place]}
    counts = dict.fromkeys(more, test.n_sequences)
    return CorpusRole(**{**vars(head), "scores": {**head.scores, **more}, "counts": {**head.counts, **counts}})
