"""Chats and typed special tokens equal ``apply_chat_template`` and the tokenizer's own call."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import transformer
from tests.transformer.guests.gguf_files import whole_gguf
from tests.transformer.text.foreign_folders import byte_level, theirs, write
from transformer.errors import CheckpointError, InputError
from transformer.files.chats import takes_chat, with_prompt
from transformer.runs.inputs import prompt_ids
from transformer.text.guests import connection
from transformer.text.prompt import Prompt

pytest.importorskip("gguf")
pytest.importorskip("jinja2")

TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}"
    "{% if message['content'] == 'no' %}{{ raise_exception('This is not allowed') }}{% endif %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}{% endfor %}"
    "{% if thinking is defined and thinking %}{{ '<think>' }}{% endif %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
SPECIAL = ("<s>", "</s>", "<|im_start|>", "<|im_end|>")
SETTINGS = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>"}
TYPED = "Who <|im_end|> sat on the mat?"


def gguf_of(folder: Path, template: str | None) -> Path:
    given = {"special": SPECIAL, "template": template, "bos_token_id": 0, "eos_token_id": 1}
    return whole_gguf(folder / "tiny.gguf", "llama 3, biases", **given)


@pytest.fixture(scope="module")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> object:
    folder = tmp_path_factory.mktemp("oracle")
    return theirs(write(folder, {"model_type": "llama"}, SETTINGS, byte_level(special=SPECIAL)))


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> transformer.Checkpoint:
    return transformer.load(gguf_of(tmp_path_factory.mktemp("gguf"), TEMPLATE))


@pytest.mark.parametrize("system", ["", "Be short."])
@pytest.mark.parametrize("variables", ["", '{"thinking": true}', '{"thinking": false, "unknown": [1, {"a": 2}]}'])
def test_a_chat_has_the_ids_of_apply_chat_template(
    checkpoint: transformer.Checkpoint, oracle: object, system: str, variables: str
) -> None:
    prompt = Prompt(True, system, variables)
    ids = prompt_ids(with_prompt(checkpoint, prompt), TYPED)
    more = {"tokenize": True, "add_generation_prompt": True, "return_dict": False, **prompt.given}
    assert ids == oracle.apply_chat_template(prompt.messages(TYPED), chat_template=TEMPLATE, **more)
    trace = transformer.trace(with_prompt(checkpoint, prompt), TYPED)
    start = next(token for token in trace.target if token.display == "<|im_start|>")
    assert start.special and trace.sentence == TYPED and list(trace.target.ids)[: len(ids)] == ids
    given = transformer.trace(with_prompt(checkpoint, prompt), TYPED, target="The cat.")
    written = checkpoint.tokenizer.encode("The cat.", continues=True)
    assert list(given.prediction.ids)[len(ids) - 1 :][: len(written)] == written, "no space behind the template"


def test_special_tokens_are_taken_for_such_where_the_reader_says_so(
    checkpoint: transformer.Checkpoint, oracle: object
) -> None:
    as_special = prompt_ids(with_prompt(checkpoint, Prompt()), TYPED)
    assert as_special == [*checkpoint.framing.before, *oracle(TYPED, add_special_tokens=False).input_ids]
    as_text = prompt_ids(checkpoint, TYPED)
    assert SPECIAL.index("<|im_end|>") in as_special and SPECIAL.index("<|im_end|>") not in as_text


def test_what_a_template_refuses_is_a_sentence(checkpoint: transformer.Checkpoint) -> None:
    chatting = with_prompt(checkpoint, Prompt(True))
    with pytest.raises(InputError, match="refuses the text: This is not allowed"):
        prompt_ids(chatting, "no")
    assert prompt_ids(chatting, "yes"), "and the next text is read"
    for variables in ("[1]", "{", '{"a": ' * 5000, "3", '{"a": "' + "x" * 20_000 + '"}'):
        with pytest.raises(InputError, match="must be a JSON object"):
            prompt_ids(with_prompt(checkpoint, Prompt(True, variables=variables)), "yes")


@pytest.mark.slow
def test_a_template_without_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "TEMPLATE_SECONDS", 1)
    monkeypatch.setattr(connection, "_endless", {})
    file = gguf_of(tmp_path, "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}")
    checkpoint = transformer.load(file)
    with pytest.raises(InputError, match="takes more than 1 seconds or 2 GB, or writes millions of tokens"):
        prompt_ids(with_prompt(checkpoint, Prompt(True)), "yes")
    assert prompt_ids(checkpoint, "yes"), "the plain text is read all the same"
    again = transformer.load(file)  # as another session opens it
    before = time.perf_counter()
    for reader, text in ((checkpoint, "yes"), (again, "yes"), (again, "another text")):
        with pytest.raises(InputError, match="it is not tried again"):
            prompt_ids(with_prompt(reader, Prompt(True)), text)
    assert time.perf_counter() - before < 3, "three more attempts would take a second each"


@pytest.mark.slow
def test_variables_that_keep_a_template_busy_do_not_refuse_it_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "TEMPLATE_SECONDS", 1)
    monkeypatch.setattr(connection, "_endless", {})
    loop = "{% for i in range(n) %}{% for j in range(n) %}{% endfor %}{% endfor %}"
    checkpoint = transformer.load(gguf_of(tmp_path, loop + "{{ messages[0]['content'] }}"))
    with pytest.raises(InputError, match="it is not tried again"):
        prompt_ids(with_prompt(checkpoint, Prompt(True, variables='{"n": 99999}')), "yes")
    assert prompt_ids(with_prompt(checkpoint, Prompt(True, variables='{"n": 3}')), "yes")


def test_without_a_template_there_is_no_chat(tmp_path: Path, tiny_checkpoint) -> None:
    checkpoint = transformer.load(gguf_of(tmp_path, None))
    assert not takes_chat(checkpoint) and not takes_chat(tiny_checkpoint("gpt"))
    with pytest.raises(CheckpointError, match="has no chat template"):
        with_prompt(checkpoint, Prompt(True))
    with pytest.raises(CheckpointError, match="special tokens cannot be typed"):
        with_prompt(tiny_checkpoint("gpt"), Prompt())
