"""The parts of the tokenizer in a Hugging Face folder."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from transformer.errors import CheckpointError
from transformer.text.foreign.files import read_object_if_there
from transformer.text.foreign.spec import Spec, open_spec
from transformer.text.foreign.steps import bounded
from transformer.text.foreign.tokenizer_class import tokenizer_class
from transformer.text.foreign.tokenizer_parts import Parts, special_ids, vocabulary_size
from transformer.text.foreign.translation_folder import m2m100_parts, marian_parts

_FLORES_CODE = re.compile(r"[a-z]{3}_[A-Z][a-z]{3}")


def read_parts(folder: Path, config: dict, generation: dict) -> Parts:
    settings = read_object_if_there(folder / "tokenizer_config.json")
    name = tokenizer_class(folder, config, settings)
    if name == "MarianTokenizer":
        return marian_parts(folder, settings, config, generation)
    if name == "M2M100Tokenizer":
        return m2m100_parts(folder, settings, config, generation)
    return _parts(folder, name, settings, config, generation)


def _parts(folder: Path, name: str, settings: dict, config: dict, generation: dict) -> Parts:
    spec = open_spec(folder, name, settings)
    size = vocabulary_size(config, spec.ids)
    before, after = _ids_of(spec, spec.before), _ids_of(spec, spec.after)
    special = special_ids(
        spec.added.named,
        spec.ids,
        spec.added.special,
        size,
        around=(before, after),
        configs=(config, generation),
    )
    mask = next((name for name in spec.added.special if spec.ids.get(name, -1) == special.mask), None)
    backend = spec.backend(mask)

    def words(text: str) -> list[str]:
        if backend.normalizer is not None:
            text = backend.normalizer.normalize_str(text)
        cut = backend.pre_tokenizer
        return [word for word, _ in cut.pre_tokenize_str(text)] if cut is not None else [text]

    model = spec.content["model"]
    parts = Parts(
        file=spec.file,
        kind=spec.kind,
        alphabet=spec.alphabet,
        ids=spec.ids,
        special=special,
        special_names=frozenset(spec.added.special),
        size=size,
        encode=bounded(words, lambda text: backend.encode(text, add_special_tokens=False).ids),
        words=bounded(words, words),
        before=before,
        after=after,
        answer_before=before,
        mask=mask,
        typed=frozenset(name for name, token in spec.added.tokens.items() if not token["special"]),
        space_in_front=spec.puts_space_in_front,
        merges=lambda: model.get("merges", ()),
        scores=dict(map(tuple, model["vocab"])) if spec.kind == "Unigram" else {},
    )
    return _with_flores(parts, spec) if name == "NllbTokenizer" else parts


def _ids_of(spec: Spec, names: tuple[str, ...]) -> tuple[int, ...]:
    if missing := [name for name in names if name not in spec.ids]:
        raise CheckpointError("the tokenizer puts {token} around a text, but has no id for it", token=missing[0])
    return tuple(spec.ids[name] for name in names)


def _with_flores(parts: Parts, spec: Spec) -> Parts:
    """NLLB: a text begins with its language and ends with ``</s>``; older files have both at its end."""
    found = {name: id for name, id in spec.ids.items() if _FLORES_CODE.fullmatch(name) and name in spec.added.special}
    languages = {name: id for name, id in found.items() if id < parts.size}
    end = (spec.ids[spec.added.named["eos_token"]],)
    unknown = spec.ids[spec.added.named["unk_token"]]

    def speaking(source: str | None, target: str | None) -> Parts:
        reads = (languages.get(source or "eng_Latn", unknown),)
        writes = (languages.get(target or source or "eng_Latn", unknown),)
        older = bool(spec.settings.get("legacy_behaviour"))
        return replace(
            parts,
            before=() if older else reads,
            after=end + reads if older else end,
            answer_before=() if older else writes,
            languages=languages,
            source_language=source if source in languages else None,
            target_language=target if target in languages else None,
            speaking=speaking,
        )

    return speaking(spec.settings.get("src_lang") or "eng_Latn", spec.settings.get("tgt_lang"))
