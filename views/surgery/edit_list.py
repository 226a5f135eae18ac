"""The list of edits of a session: short texts, each shown with a button that removes it."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import streamlit as st

from charts.toolkit.numbers import whole
from charts.toolkit.style import three_digits
from transformer.config import ModelConfig
from transformer.runs.directions import Steering
from transformer.runs.edit_specs import EditSpec
from ui.shell import choice
from ui.words.texts import PageText, as_plain, quote

EDIT = "edit"  # the parameter of one edit; an address may have several
_DROPPED = "surgery edits: dropped"
MOST = 32  # edits at a time
LONGEST = 2000  # characters of one edit, which may contain the sentence of a patch
_NAMED = 5  # dropped edits that are named
_EXCLUSIVE = ("zero", "mean", "scale", "patch")  # kinds of edits of one head that exclude each other


def specs() -> tuple[str, ...]:
    """Return the edits as strings (``transformer.runs.edit_specs``), in order of application."""
    return choice.values(EDIT, page="surgery")


def keep_fitting(config: ModelConfig) -> tuple[str, ...]:
    """Drop edits that do not fit this model, and return those dropped most recently.

    Call this once per run, before the edits are used.
    """
    fitting, dropped = {}, []
    for text in specs():
        try:
            if len(text) > LONGEST or len(fitting) == MOST:
                raise ValueError
            EditSpec.parse(text).check(config)
            fitting[text] = None
        except ValueError:
            dropped.append(text)
    if dropped:  # shown until the list changes: a page may run again at once
        st.session_state[_DROPPED] = tuple(dropped)
        choice.put(EDIT, *fitting)
    return st.session_state.get(_DROPPED, ())


def say_what_was_dropped(dropped: Sequence[str], text: PageText) -> None:
    """Write one line about edits that are not applied, the first of them by name."""
    if dropped:
        named = ", ".join(as_plain(quote(one)) for one in dropped[:_NAMED])
        more = text["dropped_more"].format(count=whole(len(dropped) - _NAMED)) if len(dropped) > _NAMED else ""
        st.caption(":material/info: " + text["dropped"].format(edits=named + more, most=MOST))


def add(text: str) -> None:
    """Add an edit, which replaces another edit of the same head if the two are incompatible.

    An edit that is too long or exceeds the limit is dropped, with a notice.
    """
    if (found := _added(specs(), text)) is None:
        st.session_state[_DROPPED] = (text,)
    else:
        _change(found)


def _added(texts: Sequence[str], text: str) -> tuple[str, ...] | None:
    new = EditSpec.parse(text)
    others = [old for old in texts if old != text and not _excludes(EditSpec.parse(old), new)]
    return None if len(others) >= MOST or len(text) > LONGEST else (*others, text)


def toggled(texts: Sequence[str], text: str) -> tuple[str, ...]:
    """Return the edits with one added, or removed if it is among them; unchanged if too many."""
    if text in texts:
        return tuple(old for old in texts if old != text)
    found = _added(texts, text)
    return tuple(texts) if found is None else found


def remove(text: str) -> None:
    """Remove one edit."""
    _change([old for old in specs() if old != text])


def clear() -> None:
    """Remove all edits."""
    _change([])


def _change(texts: Iterable[str]) -> None:
    choice.put(EDIT, *texts, page="surgery")
    st.session_state.pop(_DROPPED, None)


def show(text: PageText) -> None:
    """Draw the edits as buttons; a click removes one."""
    st.markdown(f"**{text['edits']}**")
    if not specs():
        st.caption(text["none"])
        return
    with st.container(horizontal=True, gap="xsmall", vertical_alignment="center", key="edit list"):
        for index, spec in enumerate(specs()):
            st.button(
                describe(EditSpec.parse(spec), text),
                icon=":material/close:",
                key=f"take back {index}",
                on_click=remove,
                args=(spec,),
                help=text["take_back"],
            )
        if len(specs()) > 1:
            st.button(text["clear"], type="tertiary", icon=":material/restart_alt:", on_click=clear, key="clear edits")


def cause(text: PageText) -> str:
    """Return the beginning of a sentence about the effect of the edits."""
    return text["cause" if len(specs()) == 1 else "causes"]


def describe(spec: EditSpec, text: PageText) -> str:
    """Return a label such as "encoder, layer 0, head 3"."""
    place = text["part_short"][f"{spec.stack}_{spec.part}"]
    if spec.action == "steer":
        value = _describe_direction(Steering.parse(spec.value), text)
    else:
        value = _shortened(spec.value.replace("-", " → ") if spec.action == "edge" else spec.value)
    # A label of a button is Markdown: no user text may be read as markup.
    return text["edit"][spec.action].format(place=place, layer=spec.layer, head=spec.head, value=as_plain(value))


def _describe_direction(steering: Steering, text: PageText) -> str:
    """Return a label such as "2 × (“a cold beer” − “a hot tea”)"."""
    name = steering.source if steering.seed is None else "random"
    layer, _kind, head = steering.head or (0, "", 0)
    texts = [_shortened(one) for one in steering.texts]
    return text["steer_direction"][name].format(
        strength=three_digits(steering.strength),
        head=f"{layer}.{head}",
        seed=steering.seed,
        first=texts[0],
        second=texts[-1],
    )


def _shortened(value: str) -> str:
    value = " ".join(value.split())
    return f"{value[:24]}…" if len(value) > 25 else value


def _excludes(old: EditSpec, new: EditSpec) -> bool:
    """Return whether ``new`` takes the place of ``old``: one change per head, one strength per direction."""
    if (old.action, new.action) == ("steer", "steer"):
        directions = [replace(Steering.parse(one.value), strength=1.0) for one in (old, new)]
        return (old.stack, old.layer, directions[0]) == (new.stack, new.layer, directions[1])
    same_head = (old.stack, old.layer, old.part, old.head) == (new.stack, new.layer, new.part, new.head)
    return same_head and old.action in _EXCLUSIVE and new.action in _EXCLUSIVE
