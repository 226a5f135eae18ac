"""Commands that run a model or describe it: ``translate``, ``trace``, ``inspect`` and ``heads``."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

from transformer.commands.command_line import (
    BAD_INPUT,
    CHECKPOINT,
    JSON,
    argument,
    beam_width,
    command,
    from_zero,
    progress_bar,
    whole_number,
)
from transformer.errors import InputError, NotFiniteError
from transformer.system.terminal import one_line
from transformer.text.sentence_files import SHIPPED, read_sentences


@command(
    CHECKPOINT,
    argument("--beam", type=beam_width, default=1, metavar="N", help="beam width (default 1: greedy)"),
)
def translate(checkpoint: str, beam: int) -> int:
    """Read one sentence per line from standard input and write one for each.

    For a line that cannot be translated, an empty line is written, and a message on standard error.
    """
    from transformer.files.checkpoints import load
    from transformer.runs.decoding import decode
    from transformer.runs.decoding_strategies import Beam, Greedy

    model = load(checkpoint)
    if model.config.kind != "encoder-decoder":
        raise ValueError(f"{checkpoint} is a {model.config.kind} model; only an encoder-decoder translates")
    strategy = Beam(beam) if beam > 1 else Greedy()
    status = 0
    for number, line in enumerate(sys.stdin, start=1):
        text = ""
        try:
            if line.strip():
                text = " ".join(decode(model, line.rstrip("\r\n"), strategy).text.split())
        except InputError as error:
            print(f"line {number}: {error}", file=sys.stderr)
            status = BAD_INPUT
        print(text, flush=True)
    return status


@command(
    CHECKPOINT,
    argument("--sentence", required=True),
    argument("--target", help="the answer to read (teacher forcing); without it the model writes one"),
    argument("--pads", type=from_zero, default=0, help="padding tokens to add to the source"),
    argument("--name", help="print this activation's values as JSON instead"),
)
def trace(checkpoint: str, sentence: str, target: str | None, pads: int, name: str | None) -> None:
    """Send one sentence through a model and list every activation."""
    from transformer.files.checkpoints import load
    from transformer.runs.tracing import trace

    model = load(checkpoint)
    if pads and not model.config.has_encoder:
        raise ValueError(f"{checkpoint} has no encoder whose source could be padded; leave --pads out")
    if target is not None and not model.config.has_decoder:
        raise ValueError(f"{checkpoint} has no decoder that could read a target; leave --target out")
    result = trace(model, sentence, target, source_pads=pads)
    if name:
        if name not in result.names():
            raise ValueError(f"this trace has no activation {name!r}; without --name all are listed")
        print(json.dumps(result.values(name).tolist()))
        return
    print(f"source  {' '.join(result.source.displays) if result.source else '–'}")
    print(f"target  {' '.join(result.target.displays) if result.target else '–'}")
    print(f"answer  {result.text}")
    for note in result.notes:
        print(f"note    {note}")
    try:
        result.check_finite()
    except NotFiniteError as error:  # the numbers are listed anyway
        print(f"note    {error}")
    print(f"\n{'activation':<52}{'axes':<28}{'shape':<18}{'min':>10}{'mean':>10}{'max':>10}")
    for listed in result.names():
        activation = result[listed]
        values = activation.values
        numbers = f"{values.min():>10.3g}{values.mean():>10.3g}{values.max():>10.3g}"
        print(f"{listed:<52}{', '.join(activation.axes):<28}{activation.shape!s:<18}{numbers}")


@command(
    argument("folder", nargs="?", metavar="DIR"),
    argument("sentence", nargs="?"),
    argument("--checkpoint", metavar="DIR", help="the same as DIR"),
    JSON,
)
def inspect(folder: str | None, sentence: str | None, checkpoint: str | None, as_json: bool) -> None:
    """Print all parameters, or what the heads do in a sentence."""
    from transformer.commands.role_tables import roles_of_sentence, sentence_json, sentence_report
    from transformer.files.checkpoints import load
    from transformer.layers.costs import parameter_statistics

    if (path := checkpoint or folder) is None:
        raise ValueError("inspect needs the folder of a checkpoint: inspect DIR")
    model = load(path)
    if sentence is not None:
        roles = roles_of_sentence(model, sentence)
        print(json.dumps(sentence_json(model, roles)) if as_json else sentence_report(roles))
        return
    if as_json:
        print(json.dumps({"fingerprint": model.fingerprint, "config": asdict(model.config)}))
        return
    print(f"{one_line(model.name)}  {model.short_fingerprint}\n")
    print(model.config.to_json())
    print(f"{'parameter':<58}{'shape':<16}{'numbers':>10}{'mean':>11}{'std':>10}{'largest':>10}")
    for row in parameter_statistics(model.model):
        numbers = f"{row.mean:>11.2e}{row.std:>10.3g}{row.largest:>10.3g}"
        print(f"{one_line(row.name):<58}{row.shape!s:<16}{row.numbers:>10,}{numbers}")
    print(f"\n{model.model.n_parameters:,} parameters")


@command(
    CHECKPOINT,
    argument(
        "--sentences", default=str(SHIPPED), metavar="FILE", help="one a line (default: those that ship with this)"
    ),
    argument("--limit", type=whole_number, metavar="N", help="read the first N sentences only"),
    argument("--batch-size", type=whole_number, default=16, metavar="N", help="sentences at once (default 16)"),
    argument("--save", action="store_true", help="write head_roles.json into the checkpoint, for the app"),
    JSON,
)
def heads(checkpoint: str, sentences: str, limit: int | None, batch_size: int, save: bool, as_json: bool) -> None:
    """Find out what every head does over many sentences."""
    from transformer.commands.role_tables import report
    from transformer.files.checkpoints import load
    from transformer.heads.head_roles import corpus_roles
    from transformer.heads.role_files import as_json as roles_json
    from transformer.heads.role_files import save_corpus_roles

    model, name, read = load(checkpoint), Path(sentences).name, read_sentences(sentences)[:limit]
    with progress_bar("sentence") as progress:
        roles = corpus_roles(model, read, batch_size=batch_size, progress=progress)
    if save:
        print(f"saved in {save_corpus_roles(model, roles, sentence_file=name)}", file=sys.stderr)
    if as_json:
        print(json.dumps(roles_json(model, roles, sentence_file=name)))
    else:
        print(report(model, roles, sentence_file=name))
