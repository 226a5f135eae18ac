"""Old import paths that the documentation once named. They still work, and warn with the new path.

Python reads this file before ``drop_current_folder`` can run. Therefore it imports only modules that Python has loaded
before it searches any folder; the rest is imported when an old path is used.
"""

import importlib
import sys

TYPE_CHECKING = False  # type checkers treat it as true; the module ``typing`` is not loaded yet
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.abc import Loader
    from importlib.machinery import ModuleSpec
    from types import ModuleType

MOVED = {  # below ``transformer``: paths in older READMEs and page snippets → where the object is now
    "analysis.add_and_norm.add_and_norm": "layers.norms.add_and_norm",
    "analysis.answers.answer_probabilities.answer_of": "predictions.answer_probabilities.read_answer",
    "analysis.answers.change_of_answer.answer_under": "interventions.experiment.answer_under",
    "analysis.answers.change_of_answer.effect_of": "interventions.experiment.experiment",
    "analysis.answers.comparison.compared_attention": "predictions.comparison.compared_attention",
    "analysis.answers.comparison.difference_map": "predictions.comparison.difference_map",
    "analysis.answers.comparison.head_differences": "predictions.comparison.head_differences",
    "analysis.answers.hypothesis_tree.beam_tree": "predictions.hypothesis_tree.beam_tree",
    "analysis.answers.leave_one_out.leave_one_out": "attribution.leave_one_out.leave_one_out",
    "analysis.answers.word_alignment.align": "predictions.word_alignment.align",
    "analysis.attention.quantity.quantity_of": "predictions.quantity.quantity_of",
    "analysis.attention.whole_words.in_words": "attention_maps.whole_words.merge_into_words",
    "analysis.feed_forward_units.strongest_units": "layers.feed_forward_units.strongest_units",
    "analysis.feed_forward_units.unit_words": "layers.feed_forward_units.unit_words",
    "analysis.gradient_step.training_step": "layers.gradient_step.training_step",
    "analysis.head_circuits.output_value_circuit": "heads.head_circuits.output_value_circuit",
    "analysis.head_importance.head_importance": "interventions.head_importance.head_importance",
    "analysis.layer_anatomy.anatomy": "layers.layer_anatomy.anatomy",
    "analysis.lens.logit_lens": "predictions.lens.logit_lens",
    "analysis.neighbours.nearest_rows": "layers.embedding_space.nearest_rows",
    "analysis.position_edits.reordered_positions": "layers.positional_encodings.reordered_positions",
    "analysis.position_edits.without_positions": "layers.positional_encodings.without_positions",
    "explanation.activation_patching.asked_instead": "interventions.activation_patching.replace_turn_tokens",
    "explanation.activation_patching.contrast": "interventions.activation_patching.contrast",
    "explanation.activation_patching.head_places": "interventions.activation_patching.head_places",
    "explanation.activation_patching.recovered": "interventions.activation_patching.recovered_shares",
    "explanation.activation_patching.token_places": "interventions.activation_patching.token_places",
    "explanation.attention_trust.beside_attention": "attribution.attention_trust.compare_with_attention",
    "explanation.attention_trust.input_attributions": "attribution.attention_trust.input_attributions",
    "explanation.attribution.attribute": "attribution.direct_logit_attribution.attribute",
    "explanation.attribution_by_key.strongest_sources": "attribution.direct_logit_attribution.strongest_sources",
    "explanation.attribution_patching.estimated_shares": "interventions.attribution_patching.estimated_shares",
    "explanation.firing_examples.head_firings": "heads.firing_examples.head_firings",
    "explanation.firing_examples.unit_firings": "heads.firing_examples.unit_firings",
    "explanation.head_habits.head_habits": "heads.head_atlas.head_habits",
    "explanation.information_flow.information_flow": "attribution.information_flow.information_flow",
    "explanation.information_flow.start_of": "attribution.information_flow.start_of",
    "explanation.jacobian_lens.jacobian_lens": "predictions.jacobian_lens.jacobian_lens",
    "explanation.jacobian_lens.load_jacobian_lens": "predictions.jacobian_lens.load_jacobian_lens",
    "explanation.path_patching.path_patching": "interventions.path_patching.path_patching",
    "explanation.path_patching.senders_of": "interventions.path_patching.senders_of",
    "explanation.prompt_batch.cases_of": "heads.prompt_batch.cases_of",
    "explanation.prompt_batch.lines_of": "heads.prompt_batch.lines_of",
    "explanation.prompt_batch.prompt_batch": "heads.prompt_batch.prompt_batch",
    "explanation.prompt_batch.read_lines": "heads.prompt_batch.read_lines",
    "explanation.query_key_space.query_key_space": "heads.query_key_space.query_key_space",
    "explanation.score_sources.score_sources": "attention_maps.score_sources.score_sources",
    "faults.patients.patient_in_training": "faults.checked_models.checked_model_in_training",
    "faults.patients.patient_of": "faults.checked_models.checked_model",
    "roles.corpus_roles.corpus_roles": "heads.head_roles.corpus_roles",
    "roles.development.moment_of": "heads.roles_through_training.moment_of",
    "roles.role_history.load_role_history": "heads.roles_through_training.load_role_history",
    "roles.sentence_roles.sentence_roles": "heads.head_roles.sentence_roles",
}

RENAMED = {  # below ``transformer``, in the same module: names in earlier documentation → new names
    "attention_maps.whole_words.in_words": "merge_into_words",
    "attribution.attention_trust.beside_attention": "compare_with_attention",
    "files.chats.prompted": "with_prompt",
    "files.languages.speaking": "with_languages",
    "interventions.activation_patching.asked_instead": "replace_turn_tokens",
    "interventions.activation_patching.recovered": "recovered_shares",
    "predictions.answer_probabilities.answer_of": "read_answer",
    "text.best_path.kept": "pieces_of_path",
}


def _parents(name: str) -> list[str]:
    """Return the modules and packages above ``name``: "a.b" and "a" for "a.b.c"."""
    parts = name.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts))]


_OLD_MODULES = {parent for name in MOVED for parent in _parents(name)}
_OLD_PACKAGES = {parent for module in _OLD_MODULES for parent in _parents(module)}


class OldPaths:
    """Finder and loader of the modules in ``MOVED``; comes last, so a real module of the same name wins."""

    def find_spec(
        self, fullname: str, path: "Sequence[str] | None" = None, target: "ModuleType | None" = None
    ) -> "ModuleSpec | None":
        """Return a spec for an old module or package, ``None`` for everything else."""
        name = fullname.removeprefix("transformer.")
        if name == fullname or name not in _OLD_MODULES:
            return None
        from importlib.machinery import ModuleSpec

        loader: Loader = self  # type: ignore[assignment]  # importing its base class this early is not safe
        return ModuleSpec(fullname, loader, is_package=name in _OLD_PACKAGES)

    def create_module(self, spec: "ModuleSpec") -> "ModuleType | None":
        """Return ``None`` so that Python creates an empty module."""
        return None

    def exec_module(self, module: "ModuleType") -> None:
        """Give the empty module a ``__getattr__`` (PEP 562) that fetches each object from its new path."""
        import warnings

        name = module.__name__

        def fetch(attribute: str) -> object:
            old = f"{name}.{attribute}".removeprefix("transformer.")
            if old not in MOVED:
                raise AttributeError(f"module {name!r} has no attribute {attribute!r}")
            home, _, new = f"transformer.{MOVED[old]}".rpartition(".")
            warnings.warn(f"transformer.{old} is now {home}.{new}", DeprecationWarning, stacklevel=2)
            return getattr(importlib.import_module(home), new)

        module.__getattr__ = fetch  # type: ignore[method-assign]


def old_names(module: str) -> "Callable[[str], object]":
    """Return the ``__getattr__`` of a module with ``RENAMED`` functions, which returns them and warns."""

    def fetch(attribute: str) -> object:
        old = f"{module}.{attribute}".removeprefix("transformer.")
        if old not in RENAMED:
            raise AttributeError(f"module {module!r} has no attribute {attribute!r}")
        import warnings

        warnings.warn(f"{module}.{attribute} is now {module}.{RENAMED[old]}", DeprecationWarning, stacklevel=2)
        return getattr(sys.modules[module], RENAMED[old])

    return fetch


def keep_old_paths() -> None:
    """Register the finder of old modules with Python."""
    sys.meta_path.append(OldPaths())
