"""The tokens that the model read, as a strip of small buttons."""

from typing import Any

from transformer.runs.traces import STACKS, Trace
from transformer.text.tokens import TokenSequence
from ui.shell import choice, page_state
from ui.shell.events import heard, one_of, whole_numbers
from ui.shell.focus import FIRST_CHOSEN, Focus, current, opening_focus, select
from ui.shell.picture import picture_of_patches
from ui.shell.token_rows import token_rows
from ui.words.texts import common

_MANY, _AROUND = 600, 20  # tokens; longer texts show so many before and after the chosen token
_OTHERWISE = ("attention", "tokens", "lens", "positions", "add_norm", "feed_forward", "embeddings")


def token_strip(trace: Trace, focus: Focus, **how: Any) -> None:
    """Draw one row per sequence in use; the arguments are those of ``strip_rows``."""
    token_rows(key="token strip", data=strip_rows(trace, focus, **how), on_chosen_change=_send_choice)


def strip_rows(
    trace: Trace,
    focus: Focus,
    *,
    all_stacks: bool,
    place: tuple[str, int] | None = None,
    only: str | None = None,
    predicted: bool = False,
) -> dict:
    """Return the data of the component: plain text only, which it adds to the page with ``textContent``.

    Args:
        trace: The run.
        focus: The focus.
        all_stacks: Whether tokens of the other stack can be selected, too.
        place: Stack and token to mark, if it is not the focused one.
        only: The only stack whose tokens the page is about.
        predicted: Whether a decoder's rows are named after the tokens that they predict, as in the page's map. A click
            on a name selects its row, the position that reads the token before.
    """
    rows, at = [], place or (focus.stack, focus.token)
    for stack in trace.stacks:
        if only and stack != only:
            continue
        if not all_stacks and stack != focus.stack and focus.kind != "cross":
            continue  # nothing on the page is about the other stack's tokens
        clickable = all_stacks or stack == focus.stack
        tokens = read = trace.tokens(stack)
        ahead = int(predicted and stack == "decoder")
        if ahead:
            tokens = trace.prediction
        picture = picture_of_patches(trace) if trace.checkpoint.config.reads_images else {}
        one = "picture" if picture else "text"
        title = common(f"page.{_name(read.name, ahead=bool(ahead)) if len(trace.stacks) > 1 or ahead else one}")
        chosen = at[1] if stack == at[0] else None
        shown = _shown(len(tokens), chosen or 0)
        if len(shown) < len(tokens):
            title = common("page.part", title=title, first=shown[0], last=shown[-1])
        rows.append(
            {
                "title": title,
                "clickable": clickable,
                "chosen": None if chosen is None else chosen - shown[0],
                "tokens": [_token(tokens, place, stack, ahead) for place in shown],
                **picture,
            }
        )
    return {"look": "strip", "rows": rows, "hint": common("page.choose_token")}


def _name(sequence: str, *, ahead: bool) -> str:
    """Return the name of a row: that of the target says whether its tokens are read or predicted."""
    if ahead:
        return "predicts"
    return "reads" if sequence == "target" else sequence


def _shown(count: int, chosen: int) -> range:
    """Return the tokens in the strip: all, or of a long text those around the chosen one."""
    if count <= _MANY:
        return range(count)
    first = max(0, min(chosen - _AROUND, count - 2 * _AROUND))
    return range(first, first + 2 * _AROUND)


def _token(tokens: TokenSequence, place: int, stack: str, ahead: int) -> dict:
    """Return a token as data; ``patch`` is the number of an image patch.

    A click selects its ``place``, the position that reads the token ``ahead`` tokens before.
    """
    token, patches = tokens[place], tokens.patches
    number = f"token {place + ahead}"
    return {
        "text": token.display,
        "title": f"{number}, id {token.id}",
        "name": f"{token.display}, {number}",
        "kind": "special" if token.special else "",
        "sends": {"stack": stack, "token": place},
        **({"patch": place - patches[0]} if token.pixels else {}),
    }


def _send_choice() -> None:
    chosen = heard("token strip", "chosen")
    numbers = whole_numbers(chosen, ("token",))
    stack = one_of(chosen.get("stack"), STACKS) if numbers else None
    if stack:
        choose_token(*numbers, stack)


def choose_token(token: int, stack: str = "") -> None:
    """Select a token, by default of the current stack, and record that it was chosen: a callback."""
    focus = current()
    first = (1,) if _is_default(focus, stack or focus.stack, token) else ()
    for page in _OTHERWISE:
        choice.put(FIRST_CHOSEN, *first, page=page, owner=(focus.checkpoint, focus.sentence))
    select(stack=stack or None, kind=None if stack in ("", focus.stack) else "self", token=token)


def is_chosen(focus: Focus) -> bool:
    """Return whether the reader chose the focused token, including a click on the default."""
    page_state.belongs_to(FIRST_CHOSEN, (focus.checkpoint, focus.sentence))
    return choice.is_on(FIRST_CHOSEN) or not _is_default(focus, focus.stack, focus.token)


def _is_default(focus: Focus, stack: str, token: int) -> bool:
    opening = opening_focus(focus.checkpoint)
    return token == 0 or (focus.sentence, stack, token) == (opening.sentence, opening.stack, opening.token)
