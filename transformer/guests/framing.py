"""Tokens around a text in third-party models, from the tokenizer and both configs."""

from __future__ import annotations

from transformer.errors import CheckpointError
from transformer.guests.guest_config import GuestConfig
from transformer.text.guests.tokenizer import GuestTokenizer
from transformer.text.special_ids import Framing

# Other settings of ``generate`` that change logits or hypotheses, with the values that change nothing.
NEUTRAL: dict[str, tuple[object, ...]] = {
    "num_beams": (1,),
    "do_sample": (False,),
    "repetition_penalty": (1.0,),
    "encoder_repetition_penalty": (1.0,),
    "no_repeat_ngram_size": (0,),
    "encoder_no_repeat_ngram_size": (0,),
    "min_length": (0,),
    "min_new_tokens": (0,),
    "diversity_penalty": (0.0,),
    "begin_suppress_tokens": ([],),
    "sequence_bias": ([], {}),
}

_UNCOUNTED = ("roberta", "m2m_100")  # padding tokens have no position
_STARTS = {"bart": 2, "m2m_100": 2}  # the decoder's first token where no file names it


def padding_of(config: GuestConfig, tokenizer: GuestTokenizer) -> int | None:
    """Return the id that attention masks: the tokenizer's padding token, as in Hugging Face's code.

    ``pad_token_id`` of a config is 0 or 1 where it was never set, and may be any token of the text.

    Raises:
        CheckpointError: If the family leaves padding out when it numbers positions, and config and tokenizer disagree.
    """
    padding = tokenizer.special.pad
    if config.family in _UNCOUNTED and padding != config.pad_id:
        raise CheckpointError(
            f"config.json says pad_token_id {config.pad_id}, and the tokenizer pads with "
            f"{padding if padding is not None else 'nothing'}: a {config.family} does not count "
            "padding as a position, so that both must name the same token"
        )
    return padding


def framing_of(config: GuestConfig, tokenizer: GuestTokenizer, fields: dict, generation: dict) -> Framing:
    """Return the tokens around a text, forced and banned tokens, and settings that this app ignores.

    Both configs are read as ``generate`` reads them. A decoder with an encoder begins with ``decoder_start_token_id``
    and, when it generates, with ``forced_bos_token_id`` or the language token after it. T5 and Marian begin with their
    padding token. NLLB generates after the language token even where its tokenizer's ``legacy_behaviour`` puts none
    before a given target.

    Args:
        config: The config of the model.
        tokenizer: Its tokenizer.
        fields: The content of ``config.json``.
        generation: The content of ``generation_config.json``, which takes precedence.

    Raises:
        CheckpointError: If the texts of an M2M100 begin with its padding token.
    """

    def setting(name: str) -> object:
        value = generation.get(name)
        return fields.get(name) if value is None else value

    writing = generation or fields
    ends = tuple(id for id in _ids(setting("eos_token_id")) if id < config.vocabulary_size)
    if not ends and tokenizer.special.end is not None:
        ends = (tokenizer.special.end,)
    answer = given = ()
    if config.kind == "encoder-decoder":
        named = (setting("decoder_start_token_id"), _STARTS.get(config.family), setting("bos_token_id"), config.pad_id)
        start = next(filter(None, map(_ids, named)), ())[:1]
        if config.family == "m2m_100" and start == (config.pad_id,):
            raise CheckpointError(
                f"the output begins with the token {config.pad_id}, which is also the padding: an M2M100 does not "
                "count padding as a position, and the positions of its next tokens then depend on how they are "
                "computed"
            )
        given = (*start, *tokenizer.answer_before)
        spoken = tokenizer.languages.get(tokenizer.target_language) if config.family == "m2m_100" else None
        answer = (*start, *_ids(writing.get("forced_bos_token_id") if spoken is None else spoken)[:1])
    banned = writing.get("bad_words_ids") or []
    never = {words[0] for words in banned if isinstance(words, list) and len(words) == 1}
    never |= set(_ids(writing.get("suppress_tokens")))
    tasks = fields.get("task_specific_params")
    starts = (
        [task.get("prefix") for task in tasks.values() if isinstance(task, dict)] if isinstance(tasks, dict) else []
    )
    return Framing(
        before=tuple(tokenizer.before),
        after=tuple(tokenizer.after),
        between=tuple(tokenizer.after) if config.n_segments > 1 else (),
        answer=answer,
        given=given,
        ends=ends,
        never=tuple(sorted(id for id in never if isinstance(id, int) and 0 <= id < config.vocabulary_size)),
        ignored=tuple(
            f"{name} {value}" for name in NEUTRAL if (value := writing.get(name)) not in (None, *NEUTRAL[name])
        ),
        starts=tuple(dict.fromkeys(start for start in starts if isinstance(start, str) and start.strip())),
    )


def _ids(value: object) -> tuple[int, ...]:
    """Return one id, several, or none as a tuple."""
    values = value if isinstance(value, list) else [value]
    return tuple(id for id in values if isinstance(id, int) and not isinstance(id, bool) and id >= 0)
