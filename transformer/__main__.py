"""The commands of ``python -m transformer``: results go to standard output, problems to standard error."""

from transformer.system.import_path import drop_current_folder

if __name__ == "__main__":
    drop_current_folder()  # before the other imports, which a file in the current folder could stand in for

import argparse
import importlib.util
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

from transformer.commands.batch_command import add_batch
from transformer.commands.heads_command import add_heads
from transformer.commands.lens_command import add_lens
from transformer.commands.opening_commands import add_openings
from transformer.errors import CheckpointError, InputError, NotFiniteError
from transformer.files.fetch_and_verify import REMEDIES, add_commands
from transformer.pictures.digits import add_digits
from transformer.system.terminal import escape_output, one_line
from transformer.word_vectors.word2vec_command import add_word2vec

_BAD_INPUT = 2
_WIDEST_BEAM = 100  # with more, texts hardly change, and a cache for each text fills the memory
_INTERRUPTED, _NOBODY_READS = 128 + 2, 128 + 13  # as a shell reports SIGINT and SIGPIPE


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status is 0, or 2 with one sentence on standard error (130 for Ctrl-C, 141 where
    nobody reads the output any more, as in ``| head``)."""
    options = _parser().parse_args(arguments)
    for stream in (sys.stdin, sys.stdout):
        if hasattr(stream, "reconfigure"):  # whatever the locale says, and whatever bytes a pipe brings
            stream.reconfigure(encoding="utf-8", errors="replace")
    for name in ("sentence", "target"):  # bytes that the locale could not read are UTF-8, too; paths stay as they came
        if isinstance(text := getattr(options, name, None), str):
            setattr(options, name, text.encode(errors="surrogateescape").decode(errors="replace"))
    try:
        status = options.command(options)
        sys.stdout.flush()  # here, where a closed pipe is no surprise
        return status
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what Python still holds when it ends
        return _NOBODY_READS
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return _INTERRUPTED
    except ModuleNotFoundError as error:
        remedy = REMEDIES.get(
            error.name or "", "install what training needs with: pip install -r requirements-train.txt"
        )
        print(f"error: {options.command.__name__.strip('_')} needs {error.name}; {remedy}", file=sys.stderr)
        return _BAD_INPUT
    except (CheckpointError, InputError, ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return _BAD_INPUT


def _translate(options: argparse.Namespace) -> int:
    """One line out for each line in, in order; a line that cannot be translated gives an empty one and a message."""
    from transformer.files.checkpoints import load
    from transformer.runs.decoding import decode
    from transformer.runs.decoding_strategies import Beam, Greedy

    checkpoint = load(options.checkpoint)
    if checkpoint.config.kind != "encoder-decoder":
        raise ValueError(
            f"{options.checkpoint} is a {checkpoint.config.kind} model; only an encoder-decoder translates"
        )
    strategy = Beam(options.beam) if options.beam > 1 else Greedy()
    status = 0
    for number, line in enumerate(sys.stdin, start=1):
        text = ""
        try:
            if line.strip():
                text = " ".join(decode(checkpoint, line.rstrip("\r\n"), strategy).text.split())
        except InputError as error:
            print(f"line {number}: {error}", file=sys.stderr)
            status = _BAD_INPUT
        print(text, flush=True)
    return status


def _trace(options: argparse.Namespace) -> int:
    from transformer.files.checkpoints import load
    from transformer.runs.tracing import trace

    checkpoint = load(options.checkpoint)
    if options.pads and not checkpoint.config.has_encoder:
        raise ValueError(f"{options.checkpoint} has no encoder whose source could be padded; leave --pads out")
    if options.target is not None and not checkpoint.config.has_decoder:
        raise ValueError(f"{options.checkpoint} has no decoder that could read a target; leave --target out")
    result = trace(checkpoint, options.sentence, options.target, source_pads=options.pads)
    if options.name:
        if options.name not in result.names():
            raise ValueError(f"this trace has no activation {options.name!r}; without --name all are listed")
        print(json.dumps(result.values(options.name).tolist()))
        return 0
    print(f"source  {' '.join(result.source.displays) if result.source else '–'}")
    print(f"target  {' '.join(result.target.displays) if result.target else '–'}")
    print(f"answer  {result.text}")
    for note in result.notes:
        print(f"note    {note}")
    try:
        result.check_finite()
    except NotFiniteError as error:  # the numbers are listed all the same
        print(f"note    {error}")
    print(f"\n{'activation':<52}{'axes':<28}{'shape':<18}{'min':>10}{'mean':>10}{'max':>10}")
    for name in result.names():
        activation = result[name]
        values = activation.values
        numbers = f"{values.min():>10.3g}{values.mean():>10.3g}{values.max():>10.3g}"
        print(f"{name:<52}{', '.join(activation.axes):<28}{activation.shape!s:<18}{numbers}")
    return 0


def _evaluate(options: argparse.Namespace) -> int:
    from transformer.files.checkpoints import load
    from transformer.training.evaluation import evaluate
    from transformer.training.progress import progress_bar

    checkpoint = load(options.checkpoint)
    scores = evaluate(
        checkpoint,
        options.data,
        train=options.train,
        task=options.task,
        beam=options.beam,
        lowercase=options.lowercase,
        progress=progress_bar,
    )
    if options.update_card:
        from transformer.training.card import update_scores

        train = Path(options.train) if options.train else None
        update_scores(checkpoint, Path(options.data), scores, train=train, lowercase=options.lowercase)
    if options.json:
        print(json.dumps(scores))
    else:
        for name, value in scores.items():
            print(f"{name:<30}{value:.4g}" if isinstance(value, float) else f"{name:<30}{value}")
    return 0


def _inspect(options: argparse.Namespace) -> int:
    from transformer.files.checkpoints import load
    from transformer.heads.role_tables import roles_of_sentence, sentence_json, sentence_report
    from transformer.layers.parameters import parameter_statistics

    folder = options.checkpoint or options.folder
    if folder is None:
        raise ValueError("inspect needs the folder of a checkpoint: inspect DIR")
    checkpoint = load(folder)
    if options.sentence is not None:
        roles = roles_of_sentence(checkpoint, options.sentence)
        print(json.dumps(sentence_json(checkpoint, roles)) if options.json else sentence_report(roles))
        return 0
    if options.json:
        print(json.dumps({"fingerprint": checkpoint.fingerprint, "config": asdict(checkpoint.config)}))
        return 0
    print(f"{one_line(checkpoint.name)}  {checkpoint.short_fingerprint}\n")
    print(checkpoint.config.to_json())
    print(f"{'parameter':<58}{'shape':<16}{'numbers':>10}{'mean':>11}{'std':>10}{'largest':>10}")
    for row in parameter_statistics(checkpoint.model):
        numbers = f"{row.mean:>11.2e}{row.std:>10.3g}{row.largest:>10.3g}"
        print(f"{one_line(row.name):<58}{row.shape!s:<16}{row.numbers:>10,}{numbers}")
    print(f"\n{checkpoint.model.n_parameters:,} parameters")
    return 0


def _train(options: argparse.Namespace) -> int:
    from transformer.training.progress import TrainingProgress
    from transformer.training.publication import publish
    from transformer.training.recipe import load_recipe
    from transformer.training.trainer import Trainer

    recipe = load_recipe(options.recipe)
    run_directory = Path(options.run_directory or Path("runs") / recipe.name)
    trainer = Trainer(recipe, data=options.data, run_directory=run_directory)
    with TrainingProgress(trainer) as progress:
        if trainer.accelerator.is_main_process:
            trainer.report = progress
        trainer.run(stop_after=options.stop_after)
    if trainer.step == recipe.steps and trainer.accelerator.is_main_process:
        print(publish(trainer, Path(options.output or Path("checkpoints") / recipe.name)))
    return 0


def _snapshots(options: argparse.Namespace) -> int:
    from transformer.training.publication import earlier_steps, publish_snapshots

    run_directory, output = Path(options.run_directory), Path(options.output)
    steps = earlier_steps(run_directory, output) if options.steps is None else options.steps
    for step in publish_snapshots(run_directory, output, steps):
        print(f"step {step}")
    return 0


def _whole_numbers(text: str) -> tuple[int, ...]:
    if all(number.strip().isdecimal() for number in text.split(",")):
        return tuple(map(int, text.split(",")))
    raise argparse.ArgumentTypeError(f"{text!r} is not a list of integers such as 0,300,3000")


def _count(text: str, *, least: int = 1) -> int:
    if text.isdecimal() and len(text) < 20 and int(text) >= least:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text[:40]!r} is not an integer ≥ {least}")


def _renew(options: argparse.Namespace) -> int:
    """Each command that works out something from the weights alone; what this checkpoint has no file of is left out."""
    from transformer.files.opening_file import OPENING
    from transformer.files.snapshots import snapshot_steps
    from transformer.predictions.jacobian_lens import FILE

    path, save = Path(options.checkpoint), ["--checkpoint", options.checkpoint, "--save"]
    commands = [["heads", *save]]
    commands += [["heads", "--history", *save]] if snapshot_steps(path) else []
    commands += [["lens", *save]] if (path / FILE).is_file() else []
    commands += [["openings", "--checkpoint", options.checkpoint]] if (path / OPENING).is_file() else []
    for command in commands:
        print("python -m transformer", *command, file=sys.stderr)
        if status := main(command):
            return status
    return 0


def _beam_width(text: str) -> int:
    if (width := _count(text)) <= _WIDEST_BEAM:
        return width
    raise argparse.ArgumentTypeError(
        f"a beam of {text} is too wide: at every step it keeps as many texts and runs the model over all of them; "
        f"{_WIDEST_BEAM} are the most"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m transformer", description="A Transformer that can be looked into.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    train = commands.add_parser("train", help="train a recipe; started again, it goes on where it was stopped")
    train.add_argument("recipe", help="a TOML file, e.g. configs/en-fr.toml")
    train.add_argument("--data", default="data", help="folder that holds the corpora (default: data)")
    train.add_argument("--run-directory", help="folder for the run's state (default: runs/NAME)")
    train.add_argument(
        "--output", help="where the finished checkpoint goes, if its dev score is better (default: checkpoints/NAME)"
    )
    train.add_argument(
        "--stop-after",
        type=partial(_count, least=0),
        help="save and stop after this step; the same command goes on later",
    )
    train.set_defaults(command=_train)

    snapshots = commands.add_parser(
        "snapshots", help="put the snapshots of a run, in 8 bits, into the checkpoint that came out of it"
    )
    snapshots.add_argument("--run-directory", required=True, metavar="DIR", help="folder of the run's state")
    snapshots.add_argument("--output", required=True, metavar="DIR", help="the checkpoint; other snapshots in it go")
    snapshots.add_argument("--steps", type=_whole_numbers, help="e.g. 0,300,3000 (default: all before the checkpoint)")
    snapshots.set_defaults(command=_snapshots)

    translate = commands.add_parser(
        "translate", help="read one sentence per line from standard input and write one for each"
    )
    translate.add_argument("--checkpoint", required=True, metavar="DIR")
    translate.add_argument("--beam", type=_beam_width, default=1, metavar="N", help="beam width (default 1: greedy)")
    translate.set_defaults(command=_translate)

    trace = commands.add_parser("trace", help="send one sentence through a model and list every activation")
    trace.add_argument("--checkpoint", required=True, metavar="DIR")
    trace.add_argument("--sentence", required=True)
    trace.add_argument("--target", help="the answer to read (teacher forcing); without it the model writes one")
    trace.add_argument("--pads", type=partial(_count, least=0), default=0, help="padding tokens to add to the source")
    trace.add_argument("--name", help="print this activation's values as JSON instead")
    trace.set_defaults(command=_trace)

    evaluate = commands.add_parser("evaluate", help="score a checkpoint on a file")
    evaluate.add_argument("--checkpoint", required=True, metavar="DIR")
    evaluate.add_argument("--data", required=True, metavar="FILE")
    evaluate.add_argument(
        "--train", metavar="FILE", help="print baselines beside the scores, fitted to this file (not for translation)"
    )
    evaluate.add_argument("--task", help="which task of a text-to-text model the file is for, e.g. fill")
    evaluate.add_argument(
        "--beam", type=_beam_width, default=4, metavar="N", help="beam width for translation (default 4; 1 = greedy)"
    )
    evaluate.add_argument(
        "--lowercase", action="store_true", help="score translations without regard to upper and lower case"
    )
    evaluate.add_argument("--json", action="store_true", help="print one JSON object")
    evaluate.add_argument("--update-card", action="store_true", help="write the scores into the checkpoint's README.md")
    evaluate.set_defaults(command=_evaluate)

    add_heads(commands)
    add_batch(commands)
    add_lens(commands)
    add_openings(commands)

    renew = commands.add_parser("renew", help="after new weights: heads, lens and openings, one after the other")
    renew.add_argument("--checkpoint", required=True, metavar="DIR")
    renew.set_defaults(command=_renew)

    inspect = commands.add_parser("inspect", help="print all parameters, or what the heads do in a sentence")
    inspect.add_argument("folder", nargs="?", metavar="DIR")
    inspect.add_argument("sentence", nargs="?")
    inspect.add_argument("--checkpoint", metavar="DIR", help="the same as DIR")
    inspect.add_argument("--json", action="store_true", help="print one JSON object")
    inspect.set_defaults(command=_inspect)
    add_commands(commands)
    add_word2vec(commands)
    add_digits(commands)
    if importlib.util.find_spec("glassformer"):  # the program, whose commands draw; the library goes without it
        from glassformer.commands import add_commands as add_drawing_commands

        add_drawing_commands(commands)
    return parser


if __name__ == "__main__":
    escape_output()
    raise SystemExit(main())
