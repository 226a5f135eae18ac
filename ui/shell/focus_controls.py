"""Controls of the focus beside the sentence, and how the model reads that sentence.

Each is set from the focus and changes it; none holds a value of its own. M2M100 and NLLB are given both languages,
Marian's multilingual models the output language. T5's config lists the prefixes of its training sentences ("translate
English to French: "). A generative model reads a text, a text with special tokens, or a chat.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from transformer import Checkpoint
from transformer.config import ModelConfig
from transformer.files.chats import takes_chat, takes_special
from transformer.files.languages import languages_of
from transformer.runs.masked_word import NONE, masked_word, masks_a_word, words_in
from transformer.text.prompt import Prompt
from ui.server.streamlit_private import page_hash
from ui.shell import focus as shared_focus
from ui.shell.fitting import attention_kinds
from ui.shell.focus import Focus, start_of
from ui.shell.openings import is_ready
from ui.words.texts import PageText, common, model_sentences, page_text, quote

Changes = Callable[[Any], Mapping[str, object]]


def from_focus(
    widget: Callable[..., Any],
    label: str,
    *options: Any,
    key: str,
    value: object,
    changes: str | Changes,
    offered: Collection[Any] | None = None,
    anew: bool = False,
    **more: Any,
) -> None:
    """Draw a widget that is set from the focus and reports to it.

    Args:
        widget: Streamlit's function.
        label: Its label.
        options: Its further arguments.
        key: Its key.
        value: What it shows.
        changes: The field of the focus that it changes, or what returns the changes for a chosen value.
        offered: The values that can be chosen, since a forged message may report any other.
        anew: Whether the key still belongs to a widget of another page.
        more: Its named arguments.
    """
    # Only if it differs: setting it again would overwrite what is being typed.
    if anew or key not in st.session_state or st.session_state[key] != value:
        st.session_state[key] = value
    widget(label, *options, key=key, on_change=_take, args=(key, changes, offered), **more)


def _take(key: str, changes: str | Changes, offered: Collection[Any] | None) -> None:
    chosen = st.session_state[key]
    if offered is not None and chosen not in offered:
        return
    if not isinstance(changes, str):
        shared_focus.change(**changes(chosen))
    elif chosen is not None:
        shared_focus.change(**{changes: chosen})


NEEDS = ("stack", "kind", "layer", "head", "token")
_WIDTH = 118  # pixels
_OF_MANY_TASKS = ("t5", "bart")  # encoder-decoder families; Marian, M2M100 and mBART translate
_DRAWN_ON = "choose: drawn on"  # the page of the last run


def work_of(config: ModelConfig) -> str:
    """Return the task of a model by its name in texts: "classifier", "text-to-text", or its kind.

    An encoder-decoder translates, unless it was trained on tasks with prefixes or is of a family whose checkpoints do
    many things; a config.json need not state which.
    """
    if config.n_classes:
        return "classifier"
    several = config.kind == "encoder-decoder" and config.family in _OF_MANY_TASKS
    return "text-to-text" if several or config.task_prefixes else config.kind


def traits_of(config: ModelConfig) -> frozenset[str]:
    """Return the traits that a text about a model may depend on.

    These are what it does (``work_of``), its positions, "pre" or "post" norm, "picture" if it reads one, "rms" if its
    norms do not subtract the mean, "gated" if its feed-forward layers have a gate, "window" if some layers have a
    limited range, "tanh" if that is their activation, and "vector" if its output is a vector of the sentence.
    """
    picture = ("picture",) if config.reads_images else ()
    more = [trait for trait, has in (("rms", config.rms_norm), ("gated", config.gated)) if has]
    more += ["window"] if any(config.windows) else []
    more += ["tanh"] if config.activation == "tanh" else []
    more += ["vector"] if config.encodes_sentences else []
    return frozenset((work_of(config), config.positions, config.norm, *picture, *more))


def text_for(name: str, config: ModelConfig | None) -> PageText:
    """Return a page's text with the replacements that a model needs ([of_classes], …).

    [of_blanks] is for models that predict masked words, [of_pictures] for every model that reads images, [of_images]
    for those whose images are files.
    """
    if config is None:
        return page_text(name)
    kinds = {
        "of_classes": bool(config.n_classes),
        "of_blanks": config.fills_blanks,
        "of_pictures": config.reads_images,
        "of_vectors": config.encodes_sentences,
        "of_images": config.reads_images and config.is_guest,
    }
    return page_text(name, *[table for table, is_one in kinds.items() if is_one])


def selectors(
    focus: Focus,
    config: ModelConfig,
    *,
    needs: Sequence[str],
    room: DeltaGenerator,
) -> None:
    """Draw the selectors in ``needs`` for which the model has a choice, in ``room``."""
    kinds = attention_kinds(config)
    stacks = tuple(dict.fromkeys(stack for stack, _ in kinds))
    n_layers = config.n_encoder_layers if focus.stack == "encoder" else config.n_decoder_layers
    if not {"kind", "stack", "layer", "head"} & {*needs}:
        return  # a page may draw its lists in a second call, which must still know that the page is another one
    # On another page, the same key is a new widget without a value, but still refers to the previous page's widget.
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
    """Draw a list whose entries name themselves, set from the focus and reporting to it."""
    key = f"choose {name}"
    label = common(f"focus.{name}")
    names = {one: common(f"focus.{one}") if isinstance(one, str) else f"{label} {one}" for one in options}
    look = {"format_func": names.__getitem__, "label_visibility": "collapsed", "width": _WIDTH, "anew": anew}
    reports = {"changes": partial(_changes_of, name), "offered": tuple(names)}
    from_focus(st.selectbox, label, options, key=key, value=value, **reports, **look)


def _changes_of(name: str, chosen: str | int) -> dict[str, str | int]:
    """Return the changes of the focus for a choice."""
    if name == "stack":
        return {"stack": chosen, "kind": "self"}
    if name == "kind":
        stack, kind = str(chosen).split()
        return {"kind": kind} if stack == shared_focus.current().stack else {"kind": kind, "stack": stack}
    return {name: chosen}


WAYS = ("", "special", "chat")
# The box must fit a task as long as "translate English to Romanian: ".
_STYLE = "<style>[class*=st-key-spoken-begins] input { padding-inline: 0.4rem 0; font-size: 0.78rem; }</style>"
_HALF, _MASKED = 104, 205  # pixels; two of the first fit in the sidebar's row


def prompt_of(focus: Focus) -> Prompt | None:
    """Return the prompt settings in the focus; ``None`` for plain text."""
    if focus.way == "chat":
        return Prompt(True, focus.system, focus.variables)
    return Prompt() if focus.way else None


def fit_reading(focus: Focus, checkpoint: Checkpoint) -> tuple[Focus, tuple[str, ...]]:
    """Return the focus without languages or a prompt that the checkpoint lacks, and a line about each."""
    reads, writes = languages_of(checkpoint)
    notes = []
    for field, known in (("reads", reads), ("writes", writes), ("way", _ways(checkpoint))):
        if (found := getattr(focus, field)) and found not in known:
            line = "note.way" if field == "way" else "note.spoken"
            notes.append(common(line, found=quote(found), name=quote(checkpoint.name)))
            focus = replace(focus, **{field: ""})
    return focus, tuple(notes)


def choose_reading(focus: Focus, checkpoint: Checkpoint, room: DeltaGenerator, *, writes: bool) -> None:
    """Draw in ``room``, below the sentence, languages and task, then the prompt, where there is a choice.

    ``writes`` says that the page shows everything that the model generates, whatever is chosen.
    """
    with room:
        _choose_languages(focus, checkpoint)
        if len(ways := _ways(checkpoint)) == 1:
            return
        names = {way: common(f"prompt.way_{way or 'text'}") for way in ways}
        _draw(st.segmented_control, "prompt.way", focus.way, options=ways, required=True, format_func=names.get)
        if focus.way == "chat":
            _draw(st.text_input, "prompt.system", focus.system, placeholder=common("prompt.system_none"))
            _draw(st.text_input, "prompt.variables", focus.variables, placeholder="{}")
        if not (writes or focus.target):
            _draw(st.toggle, "prompt.written", bool(focus.written), changes=lambda on: {"written": int(on)})


def choose_masked_word(focus: Focus, checkpoint: Checkpoint, room: DeltaGenerator) -> tuple[Focus, tuple[str, ...]]:
    """Draw the control in ``room``, unless no word can be masked.

    Return the focus with a word that exists, and a line about one that does not.
    """
    words = words_in(focus.sentence)
    if focus.lesson or not words or not masks_a_word(checkpoint, focus.sentence):
        return focus, ()
    options = [*map(str, range(len(words))), NONE]
    lines: tuple[str, ...] = ()
    if focus.masked and focus.masked not in options:
        lines = (common("note.choice", name="masked", text=quote(focus.masked)),)
        focus = replace(focus, masked="")
    found = masked_word(checkpoint, focus.sentence, focus.masked)
    shown, key = NONE if found is None else str(found.number), f"masked word {page_hash()}"
    look = {"format_func": _names_of(words).__getitem__, "label_visibility": "collapsed", "width": _MASKED}
    from_focus(room.selectbox, common("masked.word"), options, key=key, value=shown, changes="masked", **look)
    return focus, lines


def _names_of(words: tuple[str, ...]) -> dict[str, str]:
    """Return the names of the options; a word that occurs several times is numbered."""
    names, seen, counts = {NONE: common("masked.named", word=common("masked.none"))}, Counter[str](), Counter(words)
    for number, word in enumerate(words):
        seen[word] += 1
        numbered = word if counts[word] == 1 else f"{word} ({seen[word]})"
        names[str(number)] = common("masked.named", word=numbered)
    return names


def _choose_languages(focus: Focus, checkpoint: Checkpoint) -> None:
    """Draw the lists of languages and tasks in a row."""
    reads, writes = languages_of(checkpoint)
    starts, tokenizer = checkpoint.framing.starts, checkpoint.tokenizer
    if not (reads or writes or starts):
        return
    begun = start_of(focus.sentence, starts)
    choose = partial(_draw, st.selectbox, index=None, width=_HALF if reads and writes else "stretch")
    with st.container(horizontal=True, gap="xsmall"):
        if reads:
            choose("spoken.reads", tokenizer.source_language, options=reads, placeholder=common("spoken.reads_none"))
        if writes:
            choose("spoken.writes", tokenizer.target_language, options=writes, placeholder=common("spoken.writes_none"))
        if starts:
            st.html(_STYLE)
            task = {"options": starts, "placeholder": common("spoken.begins_none")}
            choose("spoken.begins", begun or None, changes=partial(_beginning, starts), **task)
    if starts and not begun:
        st.caption(common("spoken.begins_missing"))


def _beginning(starts: Sequence[str], chosen: str | None) -> dict[str, str]:
    """Replace the task prefix of the sentence; one of the app's examples is replaced by that of the task."""
    sentence, start = shared_focus.current().sentence, chosen or ""
    rest = sentence.removeprefix(start_of(sentence, starts))
    if is_ready(sentence, starts):
        rest = model_sentences()["task_example"].get(start, rest)
    return {"sentence": start + rest}


def _ways(checkpoint: Checkpoint) -> tuple[str, ...]:
    return WAYS if takes_chat(checkpoint) else WAYS[:2] if takes_special(checkpoint) else WAYS[:1]


def _draw(widget: Callable, text: str, value: object, *, changes: Callable | None = None, **more: object) -> None:
    """Draw a widget called ``text``, a new one on each page; by default, it changes that field."""
    name = text.partition(".")[2]
    more |= {"key": f"{text.replace('.', ' ')} {page_hash()}", "help": common(f"{text}_help")}
    from_focus(widget, common(text), value=value, changes=changes or (lambda chosen: {name: chosen or ""}), **more)
