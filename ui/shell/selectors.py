"""Choosing a stack, kind of attention, layer and head, in the sidebar of the pages that ask for it; and, on a page, one
of a few options, which the address holds by a code that is the same in every language."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from transformer.config import ModelConfig, PictureConfig
from ui.server.streamlit_private import page_hash, went_back_or_forward
from ui.shell import address
from ui.shell import focus as shared_focus
from ui.shell.fitting import attention_kinds
from ui.shell.focus import Focus
from ui.shell.page_state import IN_SESSION
from ui.words.texts import PageText, common, page_texts

NEEDS = ("stack", "kind", "layer", "head", "token")
_MAX_BUTTONS = 8
_OF_MANY_TASKS = ("t5", "bart")  # families of encoder and decoder; Marian, M2M100 and mBART translate
# What an option was called in addresses that people may have kept
FORMER = {"show_lines": ("Lignes",), "view_layers": ("after every layer", "après chaque couche")}
CHOICES = "choices in the address"  # by the widget's key: whether this run has drawn it
_DRAWN_ON = "choose: drawn on"  # the page of the run before


def work_of(config: ModelConfig) -> str:
    """What a model does, as texts name it: "classifier", "text-to-text", or its kind.

    An encoder and a decoder translate, unless it was trained on tasks with prefixes or is of a family whose checkpoints
    do many things; which of them a config.json need not say.
    """
    if config.n_classes:
        return "classifier"
    several = config.kind == "encoder-decoder" and getattr(config, "family", "") in _OF_MANY_TASKS
    return "text-to-text" if several or config.task_prefixes else config.kind


def traits_of(config: ModelConfig) -> frozenset[str]:
    """What a sentence about a model may depend on: what it does (``work_of``), its positions, "pre" or "post" norm,
    "picture" where it reads one, "rms" where its norms subtract no mean, "gated" where its feed-forward layers have a
    gate, "window" where some layers look only so far back, "tanh" where it stands between their two
    matrices."""
    picture = ("picture",) if isinstance(config, PictureConfig) else ()
    more = [trait for trait, name in (("rms", "rms_norm"), ("gated", "gated")) if getattr(config, name, False)]
    more += ["window"] if any(getattr(config, "windows", ())) else []
    more += ["tanh"] if config.activation == "tanh" else []
    return frozenset((work_of(config), config.positions, config.norm, *picture, *more))


def text_for(text: PageText, config: ModelConfig | None) -> PageText:
    """A page's text with what its tables [of_classes] and [of_pictures] say, where it is about such a model."""
    classes = ("of_classes",) if config is not None and config.n_classes else ()
    return text.instead(*classes, *(("of_pictures",) if isinstance(config, PictureConfig) else ()))


def selectors(focus: Focus, config: ModelConfig, *, needs: Sequence[str], room: DeltaGenerator) -> None:
    """Draw in ``room`` what ``needs`` names and the model leaves a choice of; a choice changes the shared focus."""
    kinds = attention_kinds(config)
    stacks = tuple(dict.fromkeys(stack for stack, _ in kinds))
    n_layers = config.n_encoder_layers if focus.stack == "encoder" else config.n_decoder_layers
    # On another page it is another widget, without a choice, though the key still leads to the one of the page before.
    anew = st.session_state.get(_DRAWN_ON) != page_hash()
    st.session_state[_DRAWN_ON] = page_hash()
    with room:
        if "kind" in needs and len(kinds) > 1:
            both = [f"{stack} {kind}" for stack, kind in kinds]
            _choose("kind", both, f"{focus.stack} {focus.kind}", anew=anew)
        elif "stack" in needs and len(stacks) > 1:
            _choose("stack", list(stacks), focus.stack, anew=anew)
        if "layer" in needs:
            _choose("layer", list(range(n_layers)), focus.layer, anew=anew)
        if "head" in needs:
            _choose("head", list(range(config.heads_in(focus.stack))), focus.head, anew=anew)


def _choose(name: str, options: list, value: object, *, anew: bool) -> None:
    """Buttons while they fit, else a list. The widget is set from the focus and reports to it; it keeps nothing."""
    key = f"choose {name}"
    if anew or st.session_state.get(key) != value:
        st.session_state[key] = value
    shared = {
        "options": options,
        "key": key,
        "on_change": _change,
        "args": (name,),
        "format_func": lambda option: common(f"focus.{option}") if isinstance(option, str) else str(option),
    }
    if len(options) <= _MAX_BUTTONS:
        st.segmented_control(common(f"focus.{name}"), required=True, **shared)
    else:
        st.selectbox(common(f"focus.{name}"), **shared)


def _change(name: str) -> None:
    """A message that was not made by our page may report that nothing is chosen: it changes nothing."""
    if (chosen := st.session_state[f"choose {name}"]) is not None:
        shared_focus.change(**_changed(name, chosen))


def _changed(name: str, chosen: str | int) -> dict[str, str | int]:
    """What a choice changes in the focus."""
    if name == "stack":
        return {"stack": chosen, "kind": "self"}
    if name == "kind":
        stack, kind = str(chosen).split()
        return {"kind": kind} if stack == shared_focus.current().stack else {"kind": kind, "stack": stack}
    return {name: chosen}


def chosen_section(text: PageText, sections: Sequence[str], *, key: str, **more: object) -> str:
    """Which section of a page to draw, by the names ``section_<name>`` of its text; it is kept in the address.

    Unlike tabs, only what is chosen is computed.
    """
    return chosen_option(text, "section", sections, key=key, wrap=True, **more)


def chosen_option(
    text: PageText,
    name: str,
    options: Sequence[str],
    *,
    key: str,
    first: str | None = None,
    label: str = "",
    words: Callable[[PageText, str], str] | None = None,
    **more: object,
) -> str:
    """One of a few as a row of buttons, shown by the names ``<name>_<option>`` of a page's text, or by ``words`` of the
    text and the option; ``first`` at first. ``label``: of the row, if not the text called ``name``.

    The choice survives a change of page and of language, and is in the address.
    """

    texts = (text, *page_texts(text.name))  # of a picture, too

    def names(option: str) -> list[str]:
        text_name = f"{name}_{option}"
        shown = [words(one, option) if words else one.get(text_name, option) for one in texts]
        return [*shown, text_name, *FORMER.get(text_name, ())]

    return one_of(label or text[name], {option: names(option) for option in options}, first, key=key, **more)


def one_of(
    label: str,
    names: Mapping[Any, Sequence[str]],
    first: object = None,
    *,
    key: str,
    in_list: bool = False,
    **more: object,
) -> Any:
    """One of the keys of ``names``, as a row of buttons or ``in_list``, which shows the first name of each; ``names``
    and ``first`` as for ``settle``."""
    options = list(names)
    first = options[0] if first is None else first
    settle(key, names, first)
    shared = {"format_func": lambda option: names[option][0], "key": key, **IN_SESSION, **more}
    if in_list:
        return st.selectbox(label, options, index=options.index(first), **shared)
    return st.segmented_control(label, options, default=first, required=True, **shared)


def tabs(text: PageText, names: Sequence[str], *, key: str) -> list[DeltaGenerator]:
    """A tab for each of the texts called ``names``; the open one is in the address by that name."""
    texts = page_texts(text.name)
    words = {text[name]: [one[name] for one in texts] for name in names}
    settle(key, words, text[names[0]], codes=names)
    return st.tabs(list(words), key=key, on_change="rerun")


def settle(key: str, words: Mapping[object, Sequence[str]], first: object, *, codes: Sequence[str] = ()) -> None:
    """Before a widget is drawn that shows its options in words: it agrees with the address, which holds codes.

    No translation changes a code. Addresses that people have kept may hold the words instead: ``words`` says for every
    option what it is called, or was, in each language. ``first``: the option that an address need not say. ``codes``:
    of the options, where an option is itself a word.
    """
    code_of = dict(zip(words, codes or map(str, words), strict=True))
    known = {name: option for option, names in words.items() for name in names}
    known |= {code: option for option, code in code_of.items()}
    from_address = went_back_or_forward() or key not in st.session_state
    asked = address.value(key) if from_address else st.session_state[key]
    option = asked if asked in words else known.get(str(asked), first)
    if st.session_state.get(key, first) != option:
        st.session_state[key] = option
    st.session_state.setdefault(CHOICES, {})[key] = True
    address.write(key, () if option == first else (code_of[option],))


@contextmanager
def codes_of_what_is_drawn() -> Iterator[None]:
    """Around a page: what it keeps in the address by ``settle`` leaves it with the widget, as Streamlit's own do."""
    known = st.session_state[CHOICES] = dict.fromkeys(st.session_state.get(CHOICES, ()), False)
    yield
    for key, drawn in known.items():
        if not drawn:
            address.write(key, ())
