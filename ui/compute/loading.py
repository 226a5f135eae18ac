"""Checkpoints and traces, loaded once and shared by all browser sessions, so never change them."""

import gc
import os
import re
from functools import lru_cache
from pathlib import Path

import streamlit as st

import transformer
from transformer.config import ModelConfig
from transformer.disk.gguf_file import is_gguf
from transformer.errors import NotEnoughMemoryError
from transformer.files.chats import with_prompt
from transformer.files.languages import with_languages
from transformer.files.layout import config_of as read_config
from transformer.files.names import found_names, resolve
from transformer.files.received_files import is_received
from transformer.guests.lora import CONFIG as ADAPTER_CONFIG
from transformer.guests.lora import base_of, is_adapter
from transformer.runs.run import Run
from transformer.text.prompt import Prompt
from transformer.training.recipe import Recipe, load_recipe
from ui.compute.store import store
from ui.compute.uploads import folder_of, is_here, own_uploads
from ui.server.settings import public, settings
from ui.words.once_a_run import once_a_run

REPOSITORY = Path(__file__).resolve().parents[2]
FOLDER_VARIABLE = "GLASSFORMER_CHECKPOINTS"
FAVOURITE = "en-fr"
# Left out of the wheel to keep it small (pyproject.toml).
IN_THE_REPOSITORY = ("bert-en-pairs", "sentiment")
# Checkpoints of an earlier version: an old link to one of them opens another one and says so.
REMOVED = ("captions-en-de", "en-fr-pruned", "en-fr-taught")
RENAMED = {"en-fr-natural": "en-fr"}  # an old link opens the same weights under their new name
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_typed: dict[str, Path] = {}  # opened by path, on a server for one person
_FILES = ("config.json", "model.safetensors", "tokenizer.json")
_STAMPED = (".json", ".safetensors", ".txt", ".spm", ".model")  # how files end that determine a model


def checkpoints_folder() -> Path:
    """Return ``checkpoints/`` of the repository, or the first folder in GLASSFORMER_CHECKPOINTS."""
    return checkpoints_folders()[0]


def checkpoints_folders() -> tuple[Path, ...]:
    """Return all folders in GLASSFORMER_CHECKPOINTS; for a repeated name, the first one counts."""
    named = os.environ.get(FOLDER_VARIABLE, "").split(os.pathsep)
    return tuple(map(Path, filter(None, named))) or (REPOSITORY / "checkpoints",)


@once_a_run
def checkpoint_names() -> tuple[str, ...]:
    """Return the names of all checkpoints; the app opens with the first, a translator if there is one."""
    return tuple(sorted(sorted(_folders_by_name()), key=lambda name: (name != FAVOURITE, not _translates(name))))


@once_a_run
def _folders_by_name() -> dict[str, Path]:
    return {name: folder / name for folder in reversed(checkpoints_folders()) for name in _inside(folder)}


def _inside(folder: Path) -> list[str]:
    try:
        return [
            name for name in os.listdir(folder) if _is_text(name) and os.path.isfile(f"{folder}/{name}/config.json")
        ]
    except OSError:
        return []


def _is_text(name: str) -> bool:
    """Return whether a name can be sent to a browser and stand in an address: Linux accepts any bytes."""
    return name.encode("utf-8", "ignore").decode("utf-8") == name


def choosable_checkpoints(focused: str = "") -> tuple[str, ...]:
    """Return all checkpoints that this session can choose.

    These are ``checkpoint_names``, its uploads and typed paths, the upload in its address, and checkpoints of other
    programs.
    """
    named = (focused,) if is_here(focused) else ()
    return tuple(dict.fromkeys((*checkpoint_names(), *own_uploads(), *_typed, *named, *found_here())))


@once_a_run
def found_here() -> tuple[str, ...]:
    """Return the checkpoints of other programs and of pip, if only this computer's user is served."""
    return found_names() if for_one_person() else ()


def group_of(name: str) -> str:
    """Return "shipped" (the app's folders), "yours" (uploaded or typed), or "found" on this computer."""
    if name in _folders_by_name():
        return "shipped"
    return "yours" if name in _typed or is_received(name) else "found" if name in found_here() else "shipped"


def for_one_person() -> bool:
    """Return whether the server can be reached only from this machine, and not through a proxy.

    A person who types a path can then read that folder anyway. It is never true on a public server.
    """
    if public():
        return False
    headers = st.context.headers
    host = re.sub(r":\d+$", "", headers.get("Host", _LOOPBACK[0]))
    passed_on = any(map(headers.get, ("X-Forwarded-For", "X-Real-Ip", "Forwarded", "Via")))
    return st.get_option("server.address") in _LOOPBACK and host.strip("[]") in _LOOPBACK and not passed_on


def open_folder(typed: str) -> str:
    """Open a checkpoint by name (``transformer.files.names``), or by the path of its folder or file.

    Returns:
        The name by which it can be chosen until the server stops.

    Raises:
        transformer.CheckpointError: If the path has no checkpoint that can be opened, or ``for_one_person`` is false.
    """
    known, typed = for_one_person(), typed.strip()
    try:
        given = Path(typed).expanduser()
        path = (resolve(given) if known else given).resolve(strict=True)
        known = known and (path.is_dir() or is_gguf(path))
    except (OSError, RuntimeError, ValueError) as error:  # no such folder, no such user, not a path
        if isinstance(error, transformer.CheckpointError):
            raise
        known = False
    if not known:
        raise transformer.CheckpointError(
            f"{typed[:200]} is not a directory; a checkpoint is a directory with {', '.join(_FILES)}, or a GGUF file"
        )
    by_name = () if given.exists() else (typed,)
    names = [*by_name, path.name, f"{path.parent.name}/{path.name}", str(path)]
    name = next(name for name in names if name not in checkpoint_names() or checkpoint_path(name).resolve() == path)
    if name not in checkpoint_names():
        _typed[name] = path
    try:
        load_checkpoint(name)
    except (transformer.CheckpointError, OSError):
        _typed.pop(name, None)
        raise
    return name


def typed_checkpoints() -> tuple[str, ...]:
    """Return the names of checkpoints opened by path."""
    return tuple(_typed)


def checkpoint_path(name: str) -> Path:
    """Return the path of a checkpoint: a folder, an upload, a typed path, or another program's file."""
    if name in _typed:
        return _typed[name]
    if is_here(name):  # its name is the hash of its content, whatever a folder of that name holds
        return folder_of(name)
    if found := _folders_by_name().get(name):
        return found
    folders = checkpoints_folders()
    place = next((folder / name for folder in folders if os.path.isdir(f"{folder}/{name}")), folders[0] / name)
    # A link may name anything: os.path.exists is False for a name that is too long, Path.exists raises an error.
    return _resolve(name) if not os.path.exists(place) and name in found_here() else place


@once_a_run
def _resolve(name: str) -> Path:
    try:
        return resolve(name)
    except transformer.CheckpointError:  # the file is gone, or there are several files
        return Path(name)


def load_checkpoint(
    name: str, *, reads: str = "", writes: str = "", prompt: Prompt | None = None
) -> transformer.Checkpoint:
    """Return the checkpoint of that name; it is read again if one of its files has changed.

    Args:
        name: Name of the checkpoint.
        reads: Language of the sentence, if not the default.
        writes: Language of the output, if not the default.
        prompt: Meaning of a sentence, if not plain text.

    Raises:
        transformer.CheckpointError: If its files are missing or do not fit together, or a language is unknown to it.
    """
    path = checkpoint_path(name)
    found = store.get(path, ("checkpoint", _stamp(path)), lambda: _open(path), wait="wait.open")
    if prompt is not None:
        return with_prompt(found, prompt)
    if not (reads or writes):
        return found
    spoken = {"source": reads or None, "target": writes or None}
    return store.get(found, ("spoken", reads, writes), lambda: with_languages(found, **spoken))


def load_trace(run: Run) -> transformer.Trace:
    """Return the trace of a run; it is computed once and read-only.

    Raises:
        transformer.InputError: If the model cannot take the text.
        transformer.NotFiniteError: If the pass has NaN or infinite numbers.
    """
    trace = store.get(run, "trace", lambda: transformer.trace_of(run), wait="wait.trace")
    trace.check_finite()
    return trace


def recipe_of(name: str) -> Recipe | None:
    """Return the recipe of an included checkpoint, or ``None`` if it is unknown."""
    path = REPOSITORY / "configs" / f"{name}.toml"
    shipped = checkpoint_path(name).parent == REPOSITORY / "checkpoints"
    return _recipe(path) if shipped and path.is_file() else None


@lru_cache(maxsize=32)
def _recipe(path: Path) -> Recipe:
    return load_recipe(path)


@once_a_run
def readable_config(name: str) -> ModelConfig | None:
    """Return the configuration alone, without the weights; ``None`` if it is missing or invalid.

    Pages that list checkpoints skip it, and the page that opens it explains the problem.
    """
    try:
        path = checkpoint_path(name)
        return _config(path, _stamp(path))
    except Exception:  # a file may be damaged in any way
        return None


def _translates(name: str) -> bool:
    config = readable_config(name)
    return config is not None and config.kind == "encoder-decoder"


@once_a_run
def _stamp(path: Path) -> tuple[tuple[str, int, int], ...]:
    """Return name, size and time of every file that may determine a model; retraining changes them.

    For an adapter, this includes the files of its base.
    """
    try:
        if os.path.isfile(path):
            status = os.stat(path)
            return ((path.name, status.st_size, status.st_mtime_ns),)
        files = [(file.name, file.stat()) for file in os.scandir(path) if file.name.endswith(_STAMPED)]
        base = resolve(base_of(path)) if ADAPTER_CONFIG in dict(files) else None
    except (transformer.CheckpointError, OSError):  # no folder, or a base that is not here
        return ()
    stamps = tuple(sorted([(name, status.st_size, status.st_mtime_ns) for name, status in files]))
    return stamps if base is None or is_adapter(base) else stamps + _stamp(base)


@lru_cache(maxsize=32)
def _config(path: Path, _changed: tuple) -> ModelConfig:
    return read_config(path)


def _open(path: Path) -> transformer.Checkpoint:
    set_threads()
    limit_texts()
    freeze_loaded_objects()
    try:
        return transformer.load(path)
    except NotEnoughMemoryError:
        store.give_up("models")  # this model replaces the others, which are read again on demand
        return transformer.load(path)


@lru_cache(maxsize=1)
def set_threads() -> None:
    """Set one thread per forward pass unless GLASSFORMER_THREADS is set: thirty sessions share the cores."""
    import torch

    torch.set_num_threads(settings().threads)


@lru_cache(maxsize=1)
def limit_texts() -> None:
    """Set the library's limits on text length (GLASSFORMER_CHARACTERS) and on recorded passes.

    The latter is GLASSFORMER_RECORDING_MB. They apply wherever the text comes from.
    """
    from transformer.runs.inputs import allow_characters
    from transformer.runs.recording_size import allow_bytes

    allow_characters(settings().characters)
    allow_bytes(1_000_000 * settings().recording_mb)


@lru_cache(maxsize=1)
def freeze_loaded_objects() -> None:
    """Exclude everything imported so far from garbage collection, since it stays until the end.

    These are 300,000 objects, mostly torch's; scanning them takes 0.2 s, during which the server does not respond. Call
    it before the first checkpoint is opened: a frozen one would stay in memory after the store has dropped it.
    """
    import transformer.models  # noqa: F401  (imports torch)

    gc.collect()
    gc.freeze()
