"""Three models made of the same parts: encoder-decoder, decoder-only, encoder-only."""

import copy
from collections.abc import Callable, Iterator
from typing import Self

import torch
from torch import Tensor, nn

from transformer.config import NEXT_SENTENCE, ModelConfig
from transformer.decoder import Decoder
from transformer.embedding import embedding_table
from transformer.encoder import Encoder
from transformer.masks import padding_mask
from transformer.probes import Probe, name_probes


class Model(nn.Module):
    """Common base of the three models: configuration, named probes, initialisation.

    Attributes:
        is_guest: Whether the code of ``transformers`` computes the model, and our modules only describe it
            (``transformer.guests``), so that no part can run alone or be replaced.
    """

    is_guest = False

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config

    def finish(self) -> None:
        """Initialise the weights and name the probes; each model calls this once, when all its parts exist.

        Matrices are initialised by Xavier uniform (Glorot & Bengio 2010), biases by 0. Embeddings keep their N(0,
        1/d_model), even if the projection to the vocabulary shares them.
        """
        embeddings = {module.weight for module in self.modules() if isinstance(module, nn.Embedding)}
        for module in self.modules():
            if isinstance(module, nn.Linear):
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
                if module.weight not in embeddings:
                    nn.init.xavier_uniform_(module.weight)
        self.probes = name_probes(self)

    def copy_sharing_weights(self, trained: Callable[[str], bool] = lambda _name: False) -> Self:
        """Return a copy whose weights share this model's memory, with its own hooks and gradients.

        The copy is for analysis, not for training. Probes have no state and are shared, too.

        Args:
            trained: Predicate on parameter names: which parameters of the copy receive gradients.
        """
        probes = (module for module in self.modules() if isinstance(module, Probe))
        shared: dict[int, object] = {id(part): part for part in (*self.buffers(), *probes)}
        for name, parameter in self.named_parameters():
            shared[id(parameter)] = nn.Parameter(parameter.detach(), requires_grad=trained(name))
        return copy.deepcopy(self, shared)

    def described_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Yield every parameter with the name of its part (``decoder.layers.0.feed_forward…``)."""
        return self.named_parameters()

    def not_exposed(self, name: str) -> Exception | None:
        """Return the error that says why nothing is recorded at ``name``; ``None`` if there is no reason."""
        return None

    @property
    def n_parameters(self) -> int:
        """Number of trained parameters; a tied matrix counts once."""
        return sum(parameter.numel() for parameter in self.parameters())

    @property
    def device(self) -> torch.device:
        """Device that the parameters are on."""
        return next(self.parameters()).device


def log_probabilities(logits: Tensor) -> Tensor:
    """Return log p = logits − log Σ exp(logits) over the vocabulary (the last axis), in nats."""
    return torch.log_softmax(logits, dim=-1)


class EncoderDecoder(Model):
    """A model that reads a source sentence and generates a target sentence (Vaswani et al. 2017)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        source_table = embedding_table(config)
        target_table = source_table if config.tie_embeddings else embedding_table(config)
        self.encoder = Encoder(config, source_table)
        self.decoder = Decoder(config, target_table)
        self.finish()

    def encode(self, source_ids: Tensor) -> Tensor:
        """Encode the source: [batch, source position] → [batch, source position, model]."""
        return self.encoder(source_ids)

    def decode(self, target_ids: Tensor, memory: Tensor, source_ids: Tensor, start: int = 0) -> Tensor:
        """Decode the target into hidden states, [batch, target position, model].

        Args:
            target_ids: [batch, target position].
            memory: The output of ``encode``, [batch, source position, model].
            source_ids: [batch, source position]; they show which source tokens are padding.
            start: Position of the first target id. Earlier positions are in a cache.
        """
        return self.decoder(target_ids, memory, padding_mask(source_ids, self.config.pad_id), start)

    def project(self, hidden: Tensor) -> Tensor:
        """Return the logits, [batch, target position, vocabulary], of hidden states."""
        return self.decoder.project(hidden)

    def forward(self, source_ids: Tensor, target_ids: Tensor) -> Tensor:
        """Return the logits, [batch, target position, vocabulary].

        Row t predicts the token after ``target_ids[:, t]``.
        """
        return self.project(self.decode(target_ids, self.encode(source_ids), source_ids))


class DecoderOnly(Model):
    """A model that predicts the next token of a text (GPT, Radford et al. 2018)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.decoder = Decoder(config, embedding_table(config))
        self.finish()

    def decode(self, ids: Tensor, start: int = 0) -> Tensor:
        """Decode token ids, [batch, position], into hidden states, [batch, position, model]."""
        return self.decoder(ids, start=start)

    def project(self, hidden: Tensor) -> Tensor:
        """Return the logits, [batch, position, vocabulary], of hidden states."""
        return self.decoder.project(hidden)

    def forward(self, ids: Tensor) -> Tensor:
        """Return the logits, [batch, position, vocabulary]; row t predicts the token after ``ids[:, t]``."""
        return self.project(self.decode(ids))


class Classifier(nn.Module):
    """Classifier head: the mean of all real positions, then one linear layer."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.dropout = nn.Dropout(config.dropout)
        self.projection = nn.Linear(config.d_model, config.n_classes)
        self.pooled = Probe("model")
        self.logits = Probe("class")

    def forward(self, hidden: Tensor, real: Tensor) -> Tensor:
        """Classify hidden states.

        Args:
            hidden: [batch, position, model].
            real: ``False`` for padding, [batch, position].

        Returns:
            Logits, [batch, class].
        """
        weight = real[..., None].to(hidden.dtype)  # [batch, position, 1]
        pooled = self.pooled((hidden * weight).sum(dim=1) / weight.sum(dim=1))
        return self.logits(self.projection(self.dropout(pooled)))


class FirstTokenClassifier(nn.Module):
    """logits = f(x₀ W + b) C + c, x₀ the first token's vector (Devlin et al. 2019, §4.1): [batch, class]."""

    def __init__(self, config: ModelConfig, activation: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.dense = nn.Linear(config.d_model, config.d_model)
        self.activation = activation
        self.projection = nn.Linear(config.d_model, config.n_classes)
        self.pooled = Probe("model")
        self.logits = Probe("class")

    def forward(self, hidden: Tensor, real: Tensor) -> Tensor:
        """Return logits [batch, class]."""
        pooled = self.pooled(self.activation(self.dense(hidden[:, 0])))
        return self.logits(self.projection(pooled))


class NextSentence(nn.Module):
    """Next-sentence head: tanh(x₀ W_p + b_p) W + b for the first position (Devlin et al. 2019, §3.1).

    The classes are those of ``NEXT_SENTENCE``.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.d_model, config.d_model)
        self.projection = nn.Linear(config.d_model, len(NEXT_SENTENCE))
        self.pooled = Probe("model")
        self.logits = Probe("next_sentence")

    def forward(self, hidden: Tensor) -> Tensor:
        """Return the logits, [batch, next_sentence], of hidden states, [batch, position, model]."""
        pooled = self.pooled(torch.tanh(self.dense(hidden[:, 0])))
        return self.logits(self.projection(pooled))


class EncoderOnly(Model):
    """A model that predicts masked tokens (BERT, Devlin et al. 2019) or, with ``class_names``, classifies.

    With segment embeddings it also predicts whether the second of two sentences is the next one; these logits are
    recorded, not returned.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.encoder = Encoder(config, embedding_table(config))
        if config.n_classes:
            self.classifier = Classifier(config)
        if config.predicts_next_sentence:
            self.next_sentence = NextSentence(config)
        self.finish()

    def encode(self, ids: Tensor) -> Tensor:
        """Encode token ids, [batch, position], into hidden states, [batch, position, model]."""
        return self.encoder(ids)

    def project(self, hidden: Tensor) -> Tensor:
        """Return the logits of a masked-token model, [batch, position, vocabulary]."""
        return self.encoder.project(hidden)

    def classify(self, hidden: Tensor, ids: Tensor) -> Tensor:
        """Return the logits of the classifier, [batch, class]."""
        return self.classifier(hidden, padding_mask(ids, self.config.pad_id))

    def forward(self, ids: Tensor) -> Tensor:
        """Return the classifier's logits, [batch, class], or else those of every position's token."""
        hidden = self.encode(ids)
        if self.config.predicts_next_sentence:
            self.next_sentence(hidden)
        return self.classify(hidden, ids) if self.config.n_classes else self.project(hidden)


MODELS = {"encoder-decoder": EncoderDecoder, "decoder-only": DecoderOnly, "encoder-only": EncoderOnly}
