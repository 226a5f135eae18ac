"""The list of edits of a session: short texts, each shown with a button that removes it."""

from dataclasses import replace

import streamlit as st

from transformer.runs.directions import Steering
from transformer.runs.edit_specs import EditSpec
from ui.page.page import Page
from ui.shell import choice, page_state
from ui.shell import focus as shared_focus
from ui.words.texts import quote

EDIT = "edit"  # the parameter of one edit; an address may have several
MOST = 32  # edits at a time
LONGEST = 2000  # characters of one edit, which may contain the sentence of a patch
_NAMED = 5  # dropped edits that are named
_EXCLUSIVE = ("zero", "mean", "scale", "patch")  # kinds of edits of one head that exclude each other


def specs() -> tuple[str, ...]:
    """Return the edits as strings (``transformer.runs.edit_specs``), in order of application."""
    return page_state.values(EDIT, page="surgery")


def keep_fitting(p: Page) -> None:
    """Drop edits that do not fit this model and sentence, are too long or too many, with a note."""
    fitting: dict[str, None] = {}
    dropped = []
    for text in specs():
        try:
            if len(text) > LONGEST or len(fitting) == MOST:
                raise ValueError
            spec = EditSpec.parse(text)
            spec.check(p.checkpoint.config)
            spec.check_positions(p.trace)
            fitting[text] = None
        except ValueError:
            dropped.append(text)
    if dropped:
        choice.put(EDIT, *fitting)
        named = ", ".join(map(quote, dropped[:_NAMED])) + (" …" if len(dropped) > _NAMED else "")
        shared_focus.add_note(p.words("dropped", count=len(dropped), most=MOST, edits=named))


def add(text: str) -> None:
    """Add an edit, which replaces another edit of the same head if the two are incompatible."""
    new = EditSpec.parse(text)
    _change([*(old for old in specs() if old != text and not _excludes(EditSpec.parse(old), new)), text])


def toggle(text: str) -> None:
    """Add an edit, or remove it if it is in the list."""
    remove(text) if text in specs() else add(text)


def remove(text: str) -> None:
    """Remove one edit."""
    _change([old for old in specs() if old != text])


def _change(texts: list[str]) -> None:
    choice.put(EDIT, *texts, page="surgery")


def show(p: Page) -> None:
    """Draw the edits as buttons; a click removes one."""
    st.markdown(f"**{p.text['edits']}**")
    if not specs():
        p.say("none", small=True)
        return
    with st.container(horizontal=True, gap="xsmall", vertical_alignment="center", key="edit list"):
        for index, spec in enumerate(specs()):
            st.button(
                describe(p, EditSpec.parse(spec)),
                icon=":material/close:",
                key=f"take back {index}",
                on_click=remove,
                args=(spec,),
                help=p.text["take_back"],
            )
        if len(specs()) > 1:
            more = {"type": "tertiary", "icon": ":material/restart_alt:", "key": "clear edits"}
            st.button(p.text["clear"], on_click=_change, args=([],), **more)


def describe(p: Page, spec: EditSpec) -> str:
    """Return a label such as "encoder, layer 0, head 3", as Markdown."""
    place = p.text["part_short"][f"{spec.stack}_{spec.part}"]
    if spec.action == "steer":
        steering = Steering.parse(spec.value)
        layer, _kind, head = steering.head or (0, "", 0)
        texts = [_shortened(one) for one in steering.texts]
        value = p.words(
            f"steer_direction.{steering.source if steering.seed is None else 'random'}",
            strength=steering.strength,
            head=f"{layer}.{head}",
            seed=steering.seed,
            first=texts[0],
            second=texts[-1],
        )
    else:
        value = _shortened(spec.value.replace("-", " → ") if spec.action == "edge" else spec.value)
    return p.md(
        f"edit.{spec.action}", place=place, layer="*" if spec.layer is None else spec.layer, head=spec.head, value=value
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
