"""Special and added tokens of a Hugging Face tokenizer, in the order in which they get their ids.

A token is a dict as in ``tokenizer.json``: ``content``, ``special``, and how it is found in a text (``lstrip``: with
the spaces before it, ``normalized``: in the normalised text …).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from transformer.text.foreign.files import MAX_ENTRIES, read_object_if_there, unreadable
from transformer.text.message import Message

NAMES = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
_EXTRA = ("extra_special_tokens", "additional_special_tokens")
_FLAGS = ("single_word", "lstrip", "rstrip")


@dataclass(frozen=True)
class AddedTokens:
    """``named``: the contents of the tokens with a job. ``tokens``: all that are added, by content, in order.
    ``controls``: pieces of the vocabulary itself that stand for no text."""

    named: dict[str, str]
    tokens: dict[str, dict]
    controls: frozenset[str] = frozenset()

    @property
    def special(self) -> set[str]:
        added = {content for content, token in self.tokens.items() if token["special"]}
        return added | set(self.named.values()) | self.controls


def added_tokens(
    folder: Path, settings: dict, *, of_file: list, keep_file: bool, defaults: dict[str, object], extras: list
) -> AddedTokens:
    """What Hugging Face adds to the vocabulary when it opens a folder.

    ``settings``: ``tokenizer_config.json``. ``of_file``: ``added_tokens`` of ``tokenizer.json``; with ``keep_file`` the
    tokenizer is that file's, so that they are there already. ``defaults``: the class's own tokens; ``extras``: the
    special tokens that it adds where the settings name none.
    """
    file = folder / "tokenizer_config.json"
    written = settings.get("added_tokens_decoder")
    settings = dict(settings)
    if not all(isinstance(settings.get(name) or [], (list, dict)) for name in _EXTRA):
        raise unreadable(file, Message("its added tokens are not a list, or there are too many"))
    numbered: dict[int, dict] = {}
    if isinstance(written, dict):
        for id, token in written.items():
            if not str(id).isdecimal():
                raise unreadable(file, Message("its added tokens have the id {id}", id=repr(id)))
            numbered[int(id)] = _token(token, file)
    else:
        settings |= _special_tokens_map(folder, settings)
        numbered = _older_added_tokens(folder, settings)
        numbered |= {id: _token(token, folder / "tokenizer.json") for id, token in _with_ids(of_file)}
    by_content = {token["content"]: token for token in numbered.values()}

    named: dict[str, object] = dict.fromkeys(NAMES)
    named |= defaults | {name: settings[name] for name in NAMES if name in settings}
    named |= {
        name: value
        for name, value in settings.items()
        if name.endswith("_token") and name not in NAMES and isinstance(value, (str, dict))
    }
    extra = settings.get("extra_special_tokens") or settings.get("additional_special_tokens") or extras
    if isinstance(extra, dict):
        named |= extra
        extra = extras
    special = {name: _token(by_content.get(_content(value), value), file) for name, value in named.items() if value}
    found = {token["content"]: token for token in (_token(t, folder) for t in of_file)} if keep_file else {}
    contents = {token["content"] for token in special.values()}
    for _, token in sorted(numbered.items()):
        found[token["content"]] = token | {"special": token["special"] or token["content"] in contents}
    for token in (*special.values(), *(_token(value, file) for value in extra)):
        found.setdefault(token["content"], token)
    found.pop("", None)
    if len(found) > MAX_ENTRIES:
        raise unreadable(file, Message("it adds {count} tokens", count=f"{len(found):,}"))
    return AddedTokens({name: token["content"] for name, token in special.items()}, found)


def ids_of(vocabulary: dict[str, int], size: int, tokens: dict[str, dict]) -> dict[str, int]:
    """The id of every entry: an added token that the vocabulary of ``size`` entries lacks gets the next free id."""
    ids = dict(vocabulary)
    highest = -1
    for content in tokens:
        if content not in ids:
            ids[content] = max(highest + 1, size)
        highest = max(highest, ids[content])
    return ids


def _special_tokens_map(folder: Path, settings: dict) -> dict:
    """Older folders: tokens given here count more than those of ``tokenizer_config.json``."""
    found = read_object_if_there(folder / "special_tokens_map.json")
    extra = found.get("extra_special_tokens")
    if isinstance(extra, list):
        known = settings.get("extra_special_tokens")
        found["extra_special_tokens"] = (known if isinstance(known, list) else []) + extra
    return {
        name: value | {"special": True} if isinstance(value, dict) and name != "extra_special_tokens" else value
        for name, value in found.items()
    }


def _older_added_tokens(folder: Path, settings: dict) -> dict[int, dict]:
    found = read_object_if_there(folder / "added_tokens.json")
    extra = settings.get("extra_special_tokens") or settings.get("additional_special_tokens") or []
    special = {_content(settings[name]) for name in NAMES if settings.get(name)} | {_content(value) for value in extra}
    return {
        id: _plain(content) | {"special": content in special, "normalized": content not in special}
        for content, id in found.items()
        if type(id) is int
    }


def _with_ids(tokens: list) -> list[tuple[int, dict]]:
    return [(token["id"], token) for token in tokens if isinstance(token, dict) and type(token.get("id")) is int]


def _content(value: object) -> str:
    return str(value.get("content", "") if isinstance(value, dict) else value)


def _plain(content: str) -> dict:
    return {"content": content, **dict.fromkeys(_FLAGS, False), "normalized": False, "special": True}


def _token(value: object, file: Path) -> dict:
    """A token that is given as its content alone is special."""
    if isinstance(value, str):
        return _plain(value)
    if not isinstance(value, dict) or not isinstance(value.get("content"), str):
        raise unreadable(file, Message("its added token {token} has no content", token=repr(value)[:60]))
    special = bool(value.get("special", False))
    flags = {flag: bool(value.get(flag, False)) for flag in _FLAGS}
    return {
        "content": value["content"],
        **flags,
        "normalized": bool(value.get("normalized", not special)),
        "special": special,
    }
