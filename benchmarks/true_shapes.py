"""Two folders in Hugging Face's layout, as large as the real ones, with random weights: GPT-2 small and Opus-MT.

    pip install -r requirements-dev.txt
    python -m benchmarks.true_shapes FOLDER
    GLASSFORMER_CHECKPOINTS=FOLDER streamlit run app.py

To see how the app does at that size (``docs/families.md`` shows two pages); nothing is downloaded. What such a model
says or looks at means nothing. Its tokenizer is a small one, trained on sentences of this project.
"""

import argparse
import io
import json
from collections.abc import Sequence
from pathlib import Path

import sentencepiece
import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from transformer.roles.annotations import aligned_pairs, annotated_sentences

END = "<|endoftext|>"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args(arguments).folder
    torch.manual_seed(0)
    for write in (write_gpt2, write_marian):
        name = write.__name__.removeprefix("write_") + "-shape"
        (folder / name).mkdir(parents=True)
        write(folder / name)
        print(folder / name)
    return 0


def write_gpt2(folder: Path) -> None:
    """12 layers × 12 heads, 124 M parameters (Radford et al. 2019)."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    letters = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=4000, special_tokens=[END], initial_alphabet=letters, show_progress=False)
    tokenizer.train_from_iterator([sentence.text for sentence in annotated_sentences()], trainer)
    ends = {"bos_token": END, "eos_token": END, "unk_token": END}
    transformers.GPT2Tokenizer(tokenizer_object=tokenizer, **ends).save_pretrained(folder)
    ids = {"bos_token_id": 0, "eos_token_id": 0}
    drawn(transformers.GPT2LMHeadModel(transformers.GPT2Config(**ids))).save_pretrained(folder)


def write_marian(folder: Path) -> None:
    """6 + 6 layers of 8 heads, 75 M parameters (Tiedemann & Thottingal 2020)."""
    pieces = ["</s>", "<unk>"]
    pairs = aligned_pairs()
    for side, sentences in (
        ("source", [" ".join(pair.source) for pair in pairs]),
        ("target", [" ".join(pair.target) for pair in pairs]),
    ):
        file = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences * 9),
            model_writer=file,
            model_type="unigram",
            vocab_size=600,
            hard_vocab_limit=False,
            minloglevel=3,
        )
        (folder / f"{side}.spm").write_bytes(file.getvalue())
        read = sentencepiece.SentencePieceProcessor(model_proto=file.getvalue())
        pieces += [read.id_to_piece(id) for id in range(read.get_piece_size())]
    entries = {piece: id for id, piece in enumerate(dict.fromkeys([*pieces, "<pad>"]))}
    (folder / "vocab.json").write_text(json.dumps(entries))
    settings = {"tokenizer_class": "MarianTokenizer", "source_lang": "en", "target_lang": "fr"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    config = transformers.MarianConfig(
        vocab_size=59_514, d_model=512, encoder_layers=6, decoder_layers=6, encoder_attention_heads=8,
        decoder_attention_heads=8, encoder_ffn_dim=2048, decoder_ffn_dim=2048, max_position_embeddings=512,
        activation_function="swish", scale_embedding=True, pad_token_id=entries["<pad>"],
        decoder_start_token_id=entries["<pad>"], eos_token_id=0, forced_eos_token_id=0,
    )  # fmt: skip
    drawn(transformers.MarianMTModel(config)).save_pretrained(folder)


@torch.no_grad()
def drawn(model: transformers.PreTrainedModel) -> transformers.PreTrainedModel:
    """Matrices N(0, 1/inputs), so that no map is flat; embeddings and norms as the family begins with them."""
    for name, parameter in model.named_parameters():
        if parameter.dim() == 2 and not any(table in name for table in ("wte", "wpe", "shared", "embed")):
            n_inputs = parameter.shape[0 if isinstance(model, transformers.GPT2LMHeadModel) else 1]
            parameter.normal_(std=n_inputs**-0.5)
    return model


if __name__ == "__main__":
    raise SystemExit(main())
