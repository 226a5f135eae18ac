"""Opening a third-party model as a guest.

config → size on the meta device against the free memory → our tensors → the class of ``transformers`` with them →
trial passes → description of its parts.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from transformer.disk.config_limits import check_config
from transformer.disk.gguf_file import GgufFile, is_gguf
from transformer.errors import CheckpointError, NotEnoughMemoryError, text_of
from transformer.feed_forward import ACTIVATION_FUNCTIONS, FeedForward
from transformer.guests.agreement import compare_passes
from transformer.guests.attention_function import register
from transformer.guests.bounded_build import bounded_build, size_of_network
from transformer.guests.config_fields import check_fields, class_names, length_of, wrong_field
from transformer.guests.described_layers import GatedFeedForward, ParallelLayer
from transformer.guests.folder import check_not_quantised, config_place, gives_vectors, pooling_of
from transformer.guests.gguf import rope_factors
from transformer.guests.guest_config import GuestConfig
from transformer.guests.guest_model import GuestModel, describe_output
from transformer.guests.half_precision import fill_placeholders, kept_half, placeholder
from transformer.guests.image_folder import image_class, image_input
from transformer.guests.image_trial import tried_on_images
from transformer.guests.lora import Change
from transformer.guests.position_kinds import describe_positions
from transformer.guests.rotary_positions import frequencies_of
from transformer.guests.structure import GuestStack, find_stacks
from transformer.guests.tensors import Tensors, all_finite, check_layers_fit, count, open_tensors
from transformer.guests.trial_pass import N_SOURCE, Trial, longest_trial, trial_inputs, trial_pass
from transformer.layer_norm import LayerNorm, RMSNorm
from transformer.pictures.image_patches import N_SPECIAL
from transformer.system.memory import check_memory

_UNREAD = ("auto_map", "attn_implementation", "experts_implementation", "output_attentions", "output_hidden_states")
_BEFORE_PATCHES = 16  # tokens in front of the patches of an image: [CLS], registers
_SOUND_INPUTS = ("input_features", "input_values")  # a spectrogram, or the samples of a sound
_TASKS = {
    "MTModel": "encoder-decoder",
    "ForCausalLM": "decoder-only",
    "LMHeadModel": "decoder-only",
    "ForMaskedLM": "encoder-only",
    "ForSequenceClassification": "encoder-only",
    "ForImageClassification": "encoder-only",
    "VisionModelWithProjection": "encoder-only",
    "ForConditionalGeneration": "encoder-decoder",
    "Seq2SeqLM": "encoder-decoder",
    "Model": "encoder-only",
}
_MARKS = ("ForQuestionAnswering", "ForTokenClassification")  # heads that mark parts of a text
_WITHOUT_A_HEAD = {"BertForPreTraining": "BertForMaskedLM"}  # that of the next sentence is not read


@dataclass(frozen=True)
class OpenedGuest:
    """A guest after it has been opened.

    Attributes:
        unread: Stored tensors that the network does not have.
    """

    model: GuestModel
    unread: tuple[str, ...]


def language_model(fields: dict) -> dict:
    """Return the fields of the text model in a Gemma 3 that also reads images; other fields unchanged."""
    text = fields.get("text_config")
    if fields.get("model_type") != "gemma3" or not isinstance(text, dict):
        return fields
    outer = {name: value for name, value in fields.items() if name.endswith("_token_id")}
    outer["quantization_config"] = fields.get("quantization_config")
    named = {"model_type": "gemma3_text", "architectures": ["Gemma3ForCausalLM"]}
    return {**outer, "vocab_size": 262_208, **text, **named}


def with_defaults(fields: dict) -> dict:
    """Return the config's ``fields``, with the default special tokens of ``transformers`` added."""
    theirs = _their_config(language_model(fields))
    names = ("bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id", "forced_bos_token_id")
    defaults = {name: value for name in names if (value := getattr(theirs, name, None)) is not None}
    return defaults | {name: value for name, value in fields.items() if value is not None}


def guest_config(path: Path, fields: dict) -> GuestConfig:
    """Return the config that ``config.json`` describes, before the network is built.

    Raises:
        CheckpointError: If ``transformers`` does not know the model, its weights are quantised, or it is a model for
            another task.
    """
    fields = language_model(fields)
    try:
        return _config(path, fields)
    except Exception as error:  # the code of transformers reads what a stranger wrote
        problem = error if isinstance(error, CheckpointError) else _their_problem(fields, error)
        raise CheckpointError(f"{config_place(path)}: {problem}") from error


def _config(path: Path, fields: dict) -> GuestConfig:
    import transformers
    from transformers.models.auto import modeling_auto

    kind = fields.get("model_type")
    if str(kind) not in transformers.CONFIG_MAPPING:
        raise wrong_field("model_type", kind, "one that the installed transformers knows; code in a folder is not run")
    check_not_quantised(fields)
    check_fields(fields, {"default", *transformers.modeling_rope_utils.ROPE_INIT_FUNCTIONS})
    named = _architecture(fields)
    architecture = _body(named, fields)
    theirs = _their_config(fields)
    if reader := image_class(architecture):
        theirs = _of_images(theirs)
        names = class_names(fields, architecture)
        described = _described(theirs, "encoder-only", reader, names)
        pooling = "" if names else "first"
        image = image_input(path, fields, theirs)
        return replace(described, image=image, pad_id=None, pooling=pooling, family=fields["model_type"])
    if architecture.endswith("ForMaskedLM") and gives_vectors(path):
        architecture = modeling_auto.MODEL_MAPPING_NAMES[kind]
    task = next(task for task in _TASKS if architecture.endswith(task))
    two_stacks = bool(getattr(theirs, "is_encoder_decoder", False))
    stacks = _TASKS[task]
    if hasattr(theirs, "vision_config") or hasattr(theirs, "audio_config"):
        raise CheckpointError(
            f"architectures {architecture!r} reads images or sounds together with text, which cannot be "
            "shown. Open its language model alone (a folder whose config.json names a class that ends in "
            "ForCausalLM), or a model that reads text or images only; docs/guests.md lists some"
        )
    if {"encoder", "decoder"} <= theirs.sub_configs.keys():
        raise CheckpointError(
            f"architectures {named!r} has one config for its encoder and another for its decoder, which cannot be "
            "shown. Open a model with a single config; docs/guests.md lists some"
        )
    if two_stacks and stacks != "encoder-decoder":
        ends = " or ".join(task for task, kinds in _TASKS.items() if kinds == "encoder-decoder")
        raise wrong_field("architectures", named, f"a class that ends in {ends}, for its encoder and decoder")
    if stacks == "encoder-decoder" and not two_stacks:
        raise wrong_field("architectures", architecture, "a model that reads text alone")
    names = class_names(fields, architecture)
    unshown = "" if architecture == named or named.endswith("ForMaskedLM") else named
    return replace(_described(theirs, stacks, architecture, names), unshown_head=unshown)


def _body(architecture: str, fields: Mapping[str, Any]) -> str:
    """Return the class without its head if this head is not shown, else ``architecture``.

    These are heads that mark spans or tokens, that predict numbers or several classes at once, or that classify a text
    by a model that continues it.
    """
    from transformers.models.auto import modeling_auto

    kind, labels = fields["model_type"], fields.get("id2label")
    one_number = fields.get("num_labels") == 1 or (isinstance(labels, dict) and len(labels) == 1)
    several = fields.get("problem_type") in ("regression", "multi_label_classification")
    continues = _usual_architecture(kind).endswith(("ForCausalLM", "LMHeadModel"))
    classifies = architecture.endswith("ForSequenceClassification")
    if not architecture.endswith(_MARKS) and not (classifies and (one_number or several or continues)):
        return architecture
    bodies = modeling_auto.MODEL_MAPPING_NAMES.get(kind)
    if not bodies:
        raise wrong_field(
            "architectures", architecture, "a class that predicts tokens, or classifies or encodes its input"
        )
    return bodies if isinstance(bodies, str) else bodies[0]


def _of_images(theirs: Any) -> Any:
    """Return the config of the image tower, or the whole config if there is a single tower."""
    tower = getattr(theirs, "vision_config", theirs)
    if tower is not theirs and hasattr(tower, "projection_dim"):
        tower.projection_dim = theirs.projection_dim
    return tower


def _architecture(fields: dict) -> str:
    """Return the ``transformers`` class that the config names, by default the one that predicts tokens."""
    import transformers

    named = fields.get("architectures")
    name = str(named[0]) if isinstance(named, list) and named else _usual_architecture(fields["model_type"])
    name = _WITHOUT_A_HEAD.get(name, name)
    known = [task for task in (*_TASKS, *_MARKS) if name.endswith(task)]
    found = getattr(transformers, name, None) if name.isidentifier() else None
    is_model = isinstance(found, type) and issubclass(found, transformers.PreTrainedModel)
    if is_model and getattr(found, "main_input_name", "") in _SOUND_INPUTS:
        raise CheckpointError(
            f"architectures {name!r} reads sounds, which cannot be shown. Open a model that reads text or "
            "images; docs/guests.md lists some"
        )
    if not known or not is_model:
        raise wrong_field("architectures", name, "a class that predicts tokens, or classifies or encodes its input")
    return name


def _usual_architecture(kind: str) -> str:
    """Return the class that predicts tokens: of another text, masked tokens, or the next token."""
    from transformers.models.auto import modeling_auto

    mappings = ("SEQ_TO_SEQ_CAUSAL_LM", "MASKED_LM", "CAUSAL_LM")
    found = (getattr(modeling_auto, f"MODEL_FOR_{name}_MAPPING_NAMES").get(kind) for name in mappings)
    return str(next(filter(None, found), ""))


def _their_config(fields: dict) -> Any:
    """Return the config object of ``transformers`` without settings that would load code or kernels."""
    from transformers import CONFIG_MAPPING

    try:
        kind = CONFIG_MAPPING[fields["model_type"]]
        with bounded_build():
            theirs = kind.from_dict(kind._decode_special_floats(_settings(fields)))  # {"__float__": "Infinity"}
            check_config(theirs.to_dict())  # with the defaults of fields that the file leaves out
        return theirs
    except CheckpointError:
        raise
    except Exception as error:
        raise _their_problem(fields, error) from error


def _settings(value: Any) -> Any:
    """Return the fields of a config without those that would load code or kernels, at any depth."""
    if isinstance(value, list):
        return [_settings(each) for each in value]
    if not isinstance(value, dict):
        return value
    kept = {name for name in value if name == "__float__" or not (name in _UNREAD or name.startswith("_"))}
    return {name: _settings(value[name]) for name in value if name in kept}


def _their_problem(fields: Mapping[str, Any], error: Exception) -> CheckpointError:
    return CheckpointError(
        "the installed transformers cannot build a model of model_type "
        f"{repr(fields.get('model_type'))[:80]} from this config. Check that config.json is complete, or "
        f"update transformers. Its message: {repr(str(error))[:300]}"
    )


def _described(theirs: Any, kind: str, architecture: str, names: tuple[str, ...]) -> GuestConfig:
    def number(*found: str, default: int = 0) -> int:
        values = (getattr(theirs, name, None) for name in found)
        return next((value for value in values if isinstance(value, int) and value > 0), default)

    width, n_heads = (
        number("hidden_size", "d_model"),
        number("num_attention_heads", "encoder_attention_heads", default=1),
    )
    n_layers = number("num_hidden_layers", "num_layers")
    reads, writes = kind != "decoder-only", kind != "encoder-only"
    decoder_heads = number("decoder_attention_heads", default=n_heads)
    pad = getattr(theirs, "pad_token_id", None)
    return GuestConfig(
        family=theirs.model_type,
        architecture=architecture,
        kind=kind,
        vocabulary_size=number("vocab_size"),
        d_model=width,
        n_heads=n_heads,
        head_width=number("head_dim", "d_kv"),
        n_key_heads=number("num_key_value_heads", default=n_heads),
        decoder_heads=decoder_heads if decoder_heads != n_heads and kind == "encoder-decoder" else 0,
        d_ff=number(
            "intermediate_size", "ffn_dim", "encoder_ffn_dim", "d_ff", "n_inner", "ffn_hidden_size", default=4 * width
        ),
        decoder_d_ff=number("decoder_ffn_dim") if kind == "encoder-decoder" else 0,
        n_encoder_layers=number("encoder_layers", default=n_layers) if reads else 0,
        n_decoder_layers=number("decoder_layers", "num_decoder_layers", default=n_layers) if writes else 0,
        max_length=length_of(theirs.to_dict()),
        positions="none",
        pad_id=pad if isinstance(pad, int) and 0 <= pad < number("vocab_size") else None,
        class_names=names,
        n_experts=number("num_local_experts", "num_experts", "n_routed_experts"),
        pooling="mean" if kind == "encoder-only" and not names and architecture.endswith("Model") else "",
    )


def open_guest(path: Path, fields: dict, changes: Mapping[str, Change] | None = None) -> OpenedGuest:
    """Open a third-party model, which the code of ``transformers`` computes; no code in the folder is run.

    Nothing is allocated before the size of the model is known. Of a model with two towers, only the image tower is
    opened.

    Args:
        path: A folder in Hugging Face's layout, or a GGUF file.
        fields: Its ``config.json`` (``transformer.guests.folder.fields_of``).
        changes: What an adapter adds to its tensors.

    Raises:
        CheckpointError: If ``guest_config`` refuses the config, weights are missing, not finite or do not fit it, the
            model does not fit into memory, or the trial pass does not find its maps.
    """
    config, text = guest_config(path, fields), language_model(fields)
    if config.pooling and config.image is None:
        config = replace(config, pooling=pooling_of(path))
    with _quiet(), open_tensors(path, text, changes or {}, only_text=text is not fields) as tensors:
        network, unread = _network(path, text, config, tensors)
    config = replace(config, architecture=type(network).__name__)
    if is_gguf(path) and (factors := rope_factors(GgufFile(path))) is not None:
        _divide_frequencies(path, network, factors)
    try:
        return OpenedGuest(described(network, config), unread)
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {text_of(error)}") from error


def guest_of(network: Any) -> GuestModel:
    """Return a network of ``transformers`` that continues a text as one of our models."""
    network.set_attn_implementation(register())
    return described(network.eval(), _described(network.config, "decoder-only", type(network).__name__, ()))


def described(network: nn.Module, config: GuestConfig) -> GuestModel:
    """Return a network of ``transformers`` as one of our models, whose parts a trial pass finds.

    Raises:
        CheckpointError: If the pass fails, or a page could not show what it finds.
    """
    n_numbers, passes = sum(parameter.numel() for parameter in network.parameters()), trial_inputs(config, network)
    try:
        with bounded_build(n_numbers):
            stacks, trial = _tried(network, config, passes[0])
            config = _settled(config, network, stacks)
            model = GuestModel(config, network, stacks)
    except CheckpointError:
        raise
    except Exception as error:
        raise CheckpointError(
            f"the parts of {config.architecture} are connected in a way that is not recognised here: "
            f"{repr(str(error))[:200]}. docs/guests.md lists models that can be opened"
        ) from error
    with bounded_build(n_numbers):
        model.agreement = compare_passes(model, passes)
        describe_positions(model, passes[-1])
    if config.image is None:
        describe_output(model, passes[0], trial)
    if config.has_decoder:
        model.find_cache(passes[-1])
    return model.requires_grad_(False).eval()


def _tried(network: nn.Module, config: GuestConfig, given: Mapping[str, Tensor]) -> tuple[dict[str, GuestStack], Trial]:
    """Find the parts of a network by a pass over an image, or a few tokens of its vocabulary."""
    names = [name for name, has in (("encoder", config.has_encoder), ("decoder", config.has_decoder)) if has]
    if config.image is not None:
        stacks, trial = tried_on_images(network, config, config.image, given["pixel_values"])
    else:
        trial = trial_pass(network, given)
        read = (value for name, value in given.items() if name.endswith("input_ids"))
        stacks = find_stacks(network, trial, config, dict(zip(names, read, strict=True)))
    if list(stacks) != names:
        raise CheckpointError(
            f"no attention was found in a trial pass of {config.architecture}, so there is nothing to show"
        )
    return stacks, trial


def _with_names(config: GuestConfig, network: Any, n_before: int) -> GuestConfig:
    """Return the config with the names of the ``n_before`` tokens before the patches, and their pooling."""
    assert config.image is not None
    n_registers = min(getattr(network.config, "num_register_tokens", 0) or 0, max(0, n_before - 1))
    others = n_before - n_registers
    names = ("[CLS]", "[DIST]")[:others] + tuple(f"[TOK{number}]" for number in range(3, others + 1))
    names += tuple(f"[REG{number}]" for number in range(1, n_registers + 1))
    pooling = "" if config.n_classes else "first" if names else "mean"
    image = replace(config.image, before=names)
    sizes = {"vocabulary_size": N_SPECIAL + image.n_patches, "max_length": n_before + image.n_patches}
    return replace(config, image=image, pooling=pooling, **sizes)


def _settled(config: GuestConfig, network: Any, stacks: Mapping[str, GuestStack]) -> GuestConfig:
    """Return the config completed by the results of the trial pass."""
    if config.image is not None:
        config = _with_names(config, network, stacks["encoder"].embedding.n_before)
    stack = stacks.get("decoder") or stacks["encoder"]
    layer, embedding = stack.layers[-1], stack.embedding
    attention, fed = layer.self_attention, layer.feed_forward
    norm = next((each for each in layer.children() if isinstance(each, LayerNorm | RMSNorm)), None)
    changes: dict[str, Any] = {
        "n_encoder_layers": len(stacks["encoder"].layers) if "encoder" in stacks else 0,
        "n_decoder_layers": len(stacks["decoder"].layers) if "decoder" in stacks else 0,
        "norm": "pre" if layer.pre_norm else "post",
        "block": _block(layer),
        "rms_norm": isinstance(norm, RMSNorm),
        "layer_norm_epsilon": norm.epsilon if norm is not None else config.layer_norm_epsilon,
        "final_norm": "final_norm" in stack.hooks.parts,
        "gated": isinstance(fed, GatedFeedForward),
        "embedding_scale": embedding.scale,
        "tie_embeddings": _is_tied(network, embedding.table),
        "switch_lengths": tuple(sorted({each.original_length for each in frequencies_of(network)} - {0})),
        "n_segments": _n_segments(network, stacks.get("encoder")),
        "n_key_heads": 0,
    }
    if isinstance(fed, FeedForward):
        names = {function: name for name, function in ACTIVATION_FUNCTIONS.items()}
        changes["activation"] = names.get(fed.activation, config.activation)
        if config.kind != "encoder-decoder":
            changes["d_ff"] = fed.output_projection.in_features
    if attention.scale is not None:
        changes["score_cap"] = attention.score_cap
        if not config.decoder_heads:  # otherwise the width of the decoder's heads, which the encoder does not share
            changes["head_width"] = attention.d_head
        if config.kind != "encoder-decoder":
            changes["n_heads"] = attention.n_heads
            if attention.heads_a_key > 1 or attention.score_cap is not None:
                changes["n_key_heads"] = attention.n_heads // attention.heads_a_key
        changes["windows"] = tuple(each.self_attention.window for each in stack.layers)
        if changes["n_key_heads"] == 0 and any(changes["windows"]):
            changes["n_key_heads"] = attention.n_heads
    return replace(config, **changes)


def _block(layer: nn.Module) -> str:
    """Return how a layer combines its sub-layers, as ``GuestConfig.block`` names it."""
    if isinstance(layer, ParallelLayer):
        return "parallel"
    norms = (getattr(layer, name, None) for name in ("self_attention_norm", "self_attention_output_norm"))
    return "sandwich" if all(isinstance(norm, LayerNorm | RMSNorm) for norm in norms) else "sequential"


def _n_segments(network: nn.Module, stack: GuestStack | None) -> int:
    """Return how many segments a text may have; 0 if the network takes none."""
    if stack is None or stack.embedding.segment_table is None:
        return 0
    takes = "token_type_ids" in inspect.signature(type(network).forward).parameters
    return len(dict(stack.embedding.segment_table.named_parameters())["weight"]) if takes else 0


def _is_tied(network: Any, table: nn.Module) -> bool:
    """Return whether the projection to the vocabulary is the table of the embedding."""
    head = network.get_output_embeddings()
    tables = [dict(module.named_parameters()).get("weight") for module in (head, table) if module is not None]
    return len(tables) == 2 and tables[0] is not None and tables[0] is tables[1]


@contextmanager
def _quiet() -> Iterator[None]:
    """Hide what ``transformers`` logs about names of tensors, which are in ``OpenedGuest.unread``."""
    from transformers import logging

    before = logging.get_verbosity()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(before)


def _network(path: Path, fields: dict, config: GuestConfig, tensors: Tensors) -> tuple[nn.Module, tuple[str, ...]]:
    """Return the network with its tensors, and the names of stored tensors that it lacks."""
    import transformers

    model_class = getattr(transformers, config.unshown_head or config.architecture)
    theirs = _their_config(fields)
    if config.image is not None and not isinstance(theirs, model_class.config_class):
        theirs = _of_images(theirs)
    shapes = nn.Module()
    try:
        with bounded_build(), torch.device("meta"):
            shapes = model_class(theirs)
        half = _check_size(path, config, shapes, tensors)
        with bounded_build(count(tensors.shapes)):
            network, report = _built(model_class, theirs, tensors, half)
    except NotEnoughMemoryError:
        raise
    except CheckpointError as error:
        raise CheckpointError(f"{path} does not fit its config.json: {text_of(error)}") from error
    except Exception as error:
        problem = _their_problem(fields, error)
        raise CheckpointError(f"{path}{_mismatch(shapes, tensors) or f': {problem}'}") from error
    lacking = [*map(str, report["missing_keys"]), *(str(name) for name in report.get("mismatched_keys", ()))]
    if config.pooling:  # the vector of a sentence or an image is pooled here
        lacking = [name for name in lacking if "pooler" not in name.split(".")]
    if lacking:
        raise CheckpointError(f"{path} lacks the weights {lacking[0][:200]}, which config.json asks for")
    unread = sorted(map(str, report["unexpected_keys"]))
    names = dict(network.named_parameters())
    check_layers_fit(path, names, unread, network.base_model_prefix)
    if broken := [name for name, tensor in names.items() if not all_finite(tensor)]:
        raise CheckpointError(f"{path} holds numbers that are not finite (NaN or infinite) in {', '.join(broken[:3])}")
    network = network.base_model if config.unshown_head else network
    return network.eval(), tuple(tensors.name_in_file(name) if name in tensors.shapes else name for name in unread)


def _mismatch(shapes: nn.Module, tensors: Tensors) -> str:
    """Return the error message about a tensor whose shape differs from the network's; "" if there is none."""
    front = f"{getattr(shapes, 'base_model_prefix', '')}."
    for name, parameter in shapes.named_parameters():
        found = tensors.shapes.get(name, tensors.shapes.get(name.removeprefix(front)))
        if found is not None and tuple(found) != tuple(parameter.shape):
            return (
                f" does not fit its config.json: {name[:200]} is {tuple(found)} in the file but "
                f"{tuple(parameter.shape)} by the config"
            )
    return ""


def _check_size(path: Path, config: GuestConfig, shapes: Any, tensors: Tensors) -> frozenset[str]:
    """Compare what the network needs with the file and the free memory.

    Returns:
        Names of the tensors that stay in half precision.
    """
    n_tokens = N_SOURCE if config.image is None else config.image.n_patches + _BEFORE_PATCHES
    n_layers = config.n_encoder_layers + config.n_decoder_layers
    longest = max(n_tokens, longest_trial(config, shapes.config))
    size = size_of_network(shapes, n_tokens, config.n_heads, n_layers, longest=longest)
    n_numbers, expected = count(tensors.shapes), (size.parameters + size.buffers) // 4
    if expected > 4 * n_numbers + 2**24:
        raise CheckpointError(f"it holds {n_numbers} numbers but the config asks for {expected}")
    half = kept_half(shapes, {name: tensors.shapes[name] for name in tensors.halves})
    weights = max(size.parameters, 4 * n_numbers) - 2 * count(tensors.shapes, half)
    check_memory(path, weights + size.while_opening)
    return half


def _built(
    model_class: Any, theirs: Any, tensors: Tensors, half: frozenset[str]
) -> tuple[nn.Module, Mapping[str, Any]]:
    """Return the network with its weights, of which ``half`` stay in half precision, and a report."""
    found = {name: tensors.read(name) if name in half else tensors.read(name).float() for name in tensors.shapes}
    halves = {name: found[name] for name in half}
    found |= (placeholders := {name: placeholder(matrix.shape) for name, matrix in halves.items()})
    given = {"config": theirs, "state_dict": found, "dtype": torch.float32, "output_loading_info": True}
    try:
        network, report = model_class.from_pretrained(None, attn_implementation=register(), **given)
    except KeyError:  # the network supports only its own attention function
        network, report = model_class.from_pretrained(None, attn_implementation="eager", **given)
    if fill_placeholders(network, placeholders, halves):
        return network, report
    del network, found, given, halves
    return _built(model_class, theirs, tensors, frozenset())


def _divide_frequencies(path: Path, network: nn.Module, factors: Tensor) -> None:
    """Divide the rotary frequency of each pair of channels by the factor that a GGUF file stores."""
    for module in network.modules():
        frequencies = getattr(module, "inv_freq", None)
        if isinstance(frequencies, Tensor):
            if frequencies.shape != factors.shape:
                raise CheckpointError(
                    f"{path} has {len(factors)} rotary factors, but its heads have {len(frequencies)} pairs of channels"
                )
            frequencies /= factors
