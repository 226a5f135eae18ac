"""Folders of models that read images: which class reads them, how an image becomes numbers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformer.errors import CheckpointError
from transformer.guests.folder import read_json
from transformer.pictures.image_patches import ImageInput
from transformer.pictures.preprocessing import preprocessing_of

PREPROCESSOR, PROCESSOR = "preprocessor_config.json", "processor_config.json"
_MOST_PATCHES = 4096
_SETTINGS = ("size", "crop_size", "resample", "rescale_factor", "image_mean", "image_std", "default_to_square")
_DO = ("do_resize", "do_center_crop", "do_rescale", "do_normalize", "do_pad")


def image_class(architecture: str) -> str:
    """Return the class of ``transformers`` that reads the images of an architecture; "" if it reads none.

    Of a model with two towers, such as ``CLIPModel``, only the image tower is opened.
    """
    import transformers

    found: Any = getattr(transformers, architecture)
    if getattr(found, "main_input_name", "") == "pixel_values":
        return architecture
    tower = architecture.removesuffix("Model") + "VisionModel"
    if architecture.endswith("Model") and hasattr(found.config_class(), "vision_config"):
        for name in (f"{tower}WithProjection", tower):
            if hasattr(transformers, name):
                return name
    return ""


def image_input(folder: Path, fields: Mapping[str, Any], theirs: Any) -> ImageInput:
    """Return what a model reads of an image.

    Args:
        folder: The checkpoint.
        fields: Its ``config.json``.
        theirs: The config of ``transformers`` of the part that reads images.

    Raises:
        CheckpointError: If the image processor does something that is not supported, or does not fit the model.
    """
    patch = getattr(theirs, "patch_size", None)
    sides = (patch, patch) if isinstance(patch, int) else tuple(patch) if isinstance(patch, (list, tuple)) else ()
    if len(sides) != 2 or not all(isinstance(side, int) and 0 < side <= 256 for side in sides):
        raise CheckpointError(f"patch_size is {patch!r}: only images cut into patches can be shown")
    if getattr(theirs, "num_channels", 3) != 3:
        raise CheckpointError(f"num_channels is {theirs.num_channels}: only images in colour can be read")
    stored = _stored(folder)
    settings = _defaults(str(stored.get("image_processor_type") or ""), str(fields.get("model_type")))
    if stored:
        settings |= {name: value for name, value in stored.items() if value is not None}
    else:
        side = getattr(theirs, "image_size", 224)
        usual = {"do_resize": True, "resample": 2, "do_rescale": True, "rescale_factor": 1 / 255}
        settings = {**usual, **settings, "size": side, "crop_size": side, "default_to_square": True}
    found = ImageInput(preprocessing_of(settings), (sides[0], sides[1]), assumed=not stored)
    if not 0 < found.n_patches <= _MOST_PATCHES:
        raise CheckpointError(f"an image has {found.n_patches} patches; it must have 1 to {_MOST_PATCHES}")
    return found


def _stored(folder: Path) -> dict[str, Any]:
    """Return the fields of the image processor in a folder, or none."""
    if (folder / PREPROCESSOR).is_file():
        return read_json(folder / PREPROCESSOR)
    if (folder / PROCESSOR).is_file():
        inner = read_json(folder / PROCESSOR).get("image_processor")
        return inner if isinstance(inner, dict) else {}
    return {}


def _defaults(named: str, kind: str) -> dict[str, Any]:
    """Return the default settings of an image processor's class, for settings that its file leaves out."""
    import transformers
    from transformers.models.auto.image_processing_auto import IMAGE_PROCESSOR_MAPPING_NAMES

    named = named.removesuffix("Fast").replace("FeatureExtractor", "ImageProcessor")
    known = IMAGE_PROCESSOR_MAPPING_NAMES.get(kind) or {}
    for name in (f"{named}Pil" if named else "", known.get("pil") or ""):
        found = getattr(transformers, name, None) if name.isidentifier() else None
        if found is not None and isinstance(found, type):
            values = {each: getattr(found, each, None) for each in (*_SETTINGS, *_DO)}
            values = {each: value for each, value in values.items() if value is not None}
            return {"rescale_factor": 1 / 255, "resample": 2, **values}
    return {}
