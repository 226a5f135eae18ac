"""Choosing a stack, kind of attention, layer and head, in the sidebar of the pages that ask for it; and a section."""

from collections.abc import Callable, Mapping, Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.errors import StreamlitAPIException

from transformer.config import ModelConfig, PictureConfig
from ui.shell import focus as shared_focus
from ui.shell.focus import Focus, attention_kinds
from ui.shell.page_state import IN_ADDRESS
from ui.shell.streamlit_private import page_hash, went_back_or_forward
from ui.words.texts import PageText, common, page_texts

NEEDS = ("stack", "kind", "layer", "head", "token")
_MOST_BUTTONS = 8
_OF_MANY_TASKS = ("t5", "bart")  # families of encoder and decoder; Marian, M2M100 and mBART translate
_IN_CODE = "codes of the words in the address"  # by the widget's key
FORMER = {"show_lines": ("Lignes",)}  # what an option was called in addresses that people may have kept
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
    gate."""
    picture = ("picture",) if isinstance(config, PictureConfig) else ()
    more = [trait for trait, name in (("rms", "rms_norm"), ("gated", "gated")) if getattr(config, name, False)]
    return frozenset((work_of(config), config.positions, config.norm, *picture, *more))


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
            _choose("kind", both, f"{focus.stack} {focus.kind}", anew=anew, change=_change_kind)
        elif "stack" in needs and len(stacks) > 1:
            _choose("stack", list(stacks), focus.stack, anew=anew, change=_change_stack)
        if "layer" in needs:
            _choose("layer", list(range(n_layers)), focus.layer, anew=anew)
        if "head" in needs:
            _choose("head", list(range(config.heads_in(focus.stack))), focus.head, anew=anew)


def _choose(name: str, options: list, value: object, *, anew: bool, change: Callable[[], None] | None = None) -> None:
    """Buttons while they fit, else a list. The widget is set from the focus and reports to it; it keeps nothing."""
    key = f"choose {name}"
    if anew or st.session_state.get(key) != value:
        st.session_state[key] = value
    shared = {
        "options": options,
        "key": key,
        "on_change": change or _change,
        "args": () if change else (name,),
        "format_func": lambda option: common(f"focus.{option}") if isinstance(option, str) else str(option),
    }
    if len(options) <= _MOST_BUTTONS:
        st.segmented_control(common(f"focus.{name}"), required=True, **shared)
    else:
        st.selectbox(common(f"focus.{name}"), **shared)


def _change(name: str) -> None:
    shared_focus.change(**{name: st.session_state[f"choose {name}"]})


def _change_kind() -> None:
    stack, kind = st.session_state["choose kind"].split()
    same_stack = stack == shared_focus.current().stack
    shared_focus.change(kind=kind, **({} if same_stack else {"stack": stack}))


def _change_stack() -> None:
    shared_focus.change(stack=st.session_state["choose stack"], kind="self")


def chosen_section(text: PageText, sections: Sequence[str], *, key: str, **more: object) -> str:
    """Which section of a page to draw, by the names ``section_<name>`` of its text; it is kept in the address.

    Unlike tabs, only what is chosen is computed.
    """
    return chosen_option(text, "section", sections, key=key, wrap=True, **more)


def chosen_option(
    text: PageText, name: str, options: Sequence[str], *, key: str, first: str | None = None, **more: object
) -> str:
    """One of a few as a row of buttons, shown by the names ``<name>_<option>`` of a page's text; ``first`` at first.

    The choice survives a change of page and of language, and is in the address.
    """
    texts = (text, *page_texts(text.name))  # of a picture, too
    settle(key, {option: [one[f"{name}_{option}"] for one in texts] for option in options})
    return st.segmented_control(
        text[name],
        options,
        default=first or options[0],
        required=True,
        format_func=lambda option: text.get(f"{name}_{option}", option),
        key=key,
        **IN_ADDRESS,
        **more,
    )


def settle(key: str, words: Mapping[str, Sequence[str]], *, codes: Sequence[str] = ()) -> None:
    """Before a widget is drawn that shows its options in words: what an address says in another language counts.

    The address holds the words that were on the screen where it was copied; a shared link holds codes, which no
    translation changes. ``words``: for every option what it is called in each language, the spoken one first.
    ``codes``: of the options, where an option is itself a word.
    """
    code_of = dict(zip(words, codes or map(str, words), strict=True))
    in_code = {name: code_of[option] for option, names in words.items() for name in names}
    st.session_state.setdefault(_IN_CODE, {})[key] = in_code
    kept = None if went_back_or_forward() else st.session_state.get(key)
    asked = st.query_params.get(key) if kept is None else kept
    if asked is None or (kept is not None and asked in words):
        return
    if kept is None and not asked:  # "key=" with nothing behind it, which Streamlit reads as no choice at all
        _say_nothing_in_address(key)
        return
    for option, names in words.items():
        if asked in (option, code_of[option], *names):
            if kept is not None:
                st.session_state[key] = option
            elif asked != names[0]:  # what is in the spoken language, Streamlit itself reads
                _say_in_address(key, names[0], option)
            return


def in_code(parameters: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Parameters of an address with the codes of options in place of their words."""
    known = st.session_state.get(_IN_CODE, {})
    return {name: [known.get(name, {}).get(value, value) for value in values] for name, values in parameters.items()}


def _say_in_address(key: str, words: str, option: str) -> None:
    """Put the spoken words there and run again: Streamlit removes words that it does not know."""
    try:
        st.query_params[key] = words
    except StreamlitAPIException:  # the widget has been drawn before, so the address is Streamlit's own
        st.session_state[key] = option
    else:
        st.rerun()


def _say_nothing_in_address(key: str) -> None:
    """Take the parameter out and run again: the widget begins at its default."""
    try:
        del st.query_params[key]
    except StreamlitAPIException:
        return
    st.rerun()


def settle_labels(key: str, text: PageText, names: Sequence[str]) -> None:
    """``settle`` for a widget whose options are themselves words of the page's text, those called ``names``."""
    texts = page_texts(text.name)
    words = {text[name]: [*(one[name] for one in texts), *FORMER.get(name, ())] for name in names}
    settle(key, words, codes=names)
