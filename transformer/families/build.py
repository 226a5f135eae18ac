"""Models built from their configuration: the paper's, or the same skeleton with the parts of a family."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from transformer.attention import MultiHeadAttention
from transformer.config import ModelConfig, PictureConfig
from transformer.decoder import Decoder, DecoderLayer
from transformer.encoder import Encoder, EncoderLayer
from transformer.families.family_config import FamilyConfig
from transformer.feed_forward import ACTIVATION_FUNCTIONS
from transformer.layer_norm import norm_layer
from transformer.models import MODELS, Model
from transformer.pictures.vision_transformer import VisionTransformer
from transformer.positions import LearnedEncoding, RelativePositionBias
from transformer.probes import Probe, name_probes
from transformer.variants.disentangled_attention import ConvolvedLayer, DisentangledAttention, RelativeEmbedding
from transformer.variants.family_embedding import FamilyEmbedding, HalvedSinusoids
from transformer.variants.gated_feed_forward import GatedFeedForward
from transformer.variants.grouped_attention import GroupedQueryAttention
from transformer.variants.layer_orders import ParallelLayer, SandwichLayer
from transformer.variants.output_heads import (
    FirstTokenClassifier,
    Pooling,
    ScaledProjection,
    SentenceEncoder,
    TokenHead,
)
from transformer.variants.partial_rotary import PartialRotaryEncoding

_CREATES = (torch.empty, torch.zeros, torch.ones)
_DRAWS = (Tensor.uniform_, Tensor.normal_, Tensor.fill_, Tensor.zero_)
_RANDOM = (Tensor.uniform_, Tensor.normal_, nn.init.uniform_, nn.init.normal_, nn.init.kaiming_uniform_)
_LAYERS = {"parallel": ParallelLayer, "sandwich": SandwichLayer}


def build_model(config: ModelConfig) -> Model:
    """Return a freshly initialised model of the kind that ``config`` names."""
    return VisionTransformer(config) if isinstance(config, PictureConfig) else MODELS[config.kind](config)


def random_model(config: ModelConfig, *, seed: int = 0) -> Model:
    """Return a model with random weights that ``seed`` alone determines, in ``eval()`` mode.

    They are those of ``build_model`` after ``torch.manual_seed(seed)``, with which every training begins
    (``transformer.training.start``), but torch's global generator, which other threads use as well, stays untouched.
    """
    with _DrawsFrom(torch.Generator().manual_seed(seed)):
        return build_model(config).eval()


def build_family(config: FamilyConfig) -> Model:
    """Return a model whose tensors have shapes but no memory (torch's ``meta`` device) yet."""
    with _ShapesOnly():
        model = (SentenceEncoder if config.pooling else MODELS[config.kind])(_skeleton(config))
        model.config = config
        tables = _embedding_tables(config)
        if config.has_encoder:
            _rebuild_stack(model.encoder, config, tables[0], causal=False)
        if config.has_decoder:
            _rebuild_stack(model.decoder, _decoder_config(config), tables[-1], causal=True)
        if config.n_classes:
            model.classifier = FirstTokenClassifier(config, ACTIVATION_FUNCTIONS[config.head_activation])
        if config.pooling:
            model.pooling = Pooling(config.pooling)
            del model.encoder.vocabulary_projection, model.encoder.logits
    model.probes = name_probes(model)
    return model.requires_grad_(False)


def set_special_ids(model: Model, *, pad: int | None, separator: int | None) -> None:
    """Make the encoder mask ``pad``, or no token if it is None, and end a segment at ``separator``."""
    model.config = replace(model.config, pad_id=pad)
    if model.config.has_encoder:
        model.encoder.pad_id = pad
        embedding = model.encoder.embedding
        if getattr(embedding, "segment_table", None) is not None:
            embedding.pad_id, embedding.separator_id = pad, -1 if separator is None else separator


class _ShapesOnly(TorchFunctionMode):
    """Mode in which new tensors have a shape but no memory and are not initialised.

    Initialisation would take longer than everything else.
    """

    def __torch_function__(
        self, func: Callable, types: Sequence[type], args: tuple = (), kwargs: Mapping[str, object] | None = None
    ) -> object:
        kwargs = dict(kwargs or {})
        if func in _DRAWS or getattr(func, "__module__", "") == "torch.nn.init":
            return args[0] if args else kwargs["tensor"]
        if func in _CREATES:
            kwargs["device"] = "meta"
        return func(*args, **kwargs)


class _DrawsFrom(TorchFunctionMode):
    """Mode in which initialisation draws its random numbers from a generator of its own."""

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()
        self._generator = generator

    def __torch_function__(
        self, func: Callable, types: Sequence[type], args: tuple = (), kwargs: Mapping[str, object] | None = None
    ) -> object:
        kwargs = dict(kwargs or {})
        if func in _RANDOM:
            kwargs["generator"] = self._generator
        return func(*args, **kwargs)


def _skeleton(config: FamilyConfig) -> ModelConfig:
    """Return a config of the paper's model with one layer per stack, of which only the order matters."""
    return ModelConfig(
        kind=config.kind,
        vocabulary_size=1,
        d_model=1,
        n_heads=1,
        d_ff=1,
        n_encoder_layers=min(1, config.n_encoder_layers),
        n_decoder_layers=min(1, config.n_decoder_layers),
        max_length=1,
        positions="none",
        norm="pre" if config.final_norm else "post",
        dropout=0.0,
        class_names=config.class_names,
    )


def _decoder_config(config: FamilyConfig) -> FamilyConfig:
    return replace(config, n_heads=config.heads_in("decoder"), d_ff=config.decoder_d_ff or config.d_ff)


def _embedding_tables(config: FamilyConfig) -> list[nn.Embedding]:
    """Return the embedding tables of encoder and decoder: one, unless the family keeps two."""
    n_tables = 1 if config.shared_tables or config.kind != "encoder-decoder" else 2
    width = config.embedding_width or config.d_model
    return [nn.Embedding(config.vocabulary_size, width) for _ in range(n_tables)]


def _rebuild_stack(stack: Encoder | Decoder, config: FamilyConfig, table: nn.Embedding, *, causal: bool) -> None:
    # The decoder of a third-party model masks no id: T5 and Marian begin with their padding token.
    stack.pad_id = None if causal else config.pad_id
    stack.embedding = FamilyEmbedding(
        config,
        table,
        scale=config.embedding_scale,
        position_encoding=_position_encoding(config),
        n_segments=config.n_segments,
        norm=config.embedding_norm,
        projected=bool(config.embedding_width),
    )
    stack.position_bias = None
    if config.positions == "relative":
        stack.position_bias = RelativePositionBias(
            config, causal=causal, n_buckets=config.n_buckets, max_distance=config.max_distance
        )
    relative = None
    if config.disentangled is not None and config.disentangled.relative:
        d = config.disentangled
        relative = stack.relative_embedding = RelativeEmbedding(
            config, span=d.span, n_buckets=d.n_buckets, max_distance=d.max_distance, norm=d.norm
        )
    n_layers = config.n_decoder_layers if isinstance(stack, Decoder) else config.n_encoder_layers
    stack.layers = nn.ModuleList(_layer(config, index, relative, causal=causal) for index in range(n_layers))
    stack.final_norm = norm_layer(config) if config.final_norm else None
    if hasattr(stack, "vocabulary_projection"):
        stack.vocabulary_projection = _vocabulary_projection(config, table, causal=causal)
        stack.logits = Probe("position", "vocabulary")


def _position_encoding(config: FamilyConfig) -> nn.Module | None:
    match config.positions:
        case "learned":
            encoding = LearnedEncoding(config)
            if config.embedding_width:
                encoding.table = nn.Parameter(torch.empty(config.max_length, config.embedding_width))
            return encoding
        case "sinusoidal":
            return HalvedSinusoids(config.d_model, stored=config.max_length if config.stored_positions else 0)
    return None


def _layer(config: FamilyConfig, index: int, relative: RelativeEmbedding | None, *, causal: bool) -> nn.Module:
    d = config.disentangled
    if d is not None and d.kernel and index == 0:
        layer = ConvolvedLayer(config, kernel=d.kernel, groups=d.groups, activation=d.convolution_activation)
    elif config.block in _LAYERS:
        layer = _LAYERS[config.block](config)
    elif causal:
        layer = DecoderLayer(config, cross=config.has_encoder)
    else:
        layer = EncoderLayer(config)
    if d is not None or config.rotary or config.grouped:
        layer.self_attention = _self_attention(config, index, relative)
    for attention in (layer.self_attention, getattr(layer, "cross_attention", None)):
        if attention is not None:
            _strip_attention(attention, config, index)
    if config.gated:
        layer.feed_forward = GatedFeedForward(config)
    if not config.feed_forward_bias:
        _remove_bias(layer.feed_forward)
    return layer


def _self_attention(config: FamilyConfig, index: int, relative: RelativeEmbedding | None) -> nn.Module:
    d = config.disentangled
    if d is not None:
        return DisentangledAttention(
            config,
            relative,
            content_to_position=d.content_to_position,
            position_to_content=d.position_to_content,
            share_projections=d.share_projections,
        )
    rotary = PartialRotaryEncoding(config.rotary[index]) if config.rotary else None
    if not config.grouped:
        return MultiHeadAttention(config, rotary=rotary)
    return GroupedQueryAttention(
        config,
        n_key_heads=config.n_key_heads,
        rotary=rotary,
        window=config.windows[index] if config.windows else None,
        score_cap=config.score_cap,
        query_key_norm_epsilon=config.layer_norm_epsilon if config.query_key_norm else None,
    )


def _strip_attention(attention: nn.Module, config: FamilyConfig, index: int) -> None:
    if config.attention_scale:
        attention.scale = config.attention_scale[index]
    if not config.query_bias:
        for projection in (attention.query_projection, attention.key_projection, attention.value_projection):
            projection.bias = None
    if not config.output_bias:
        attention.output_projection.bias = None


def _remove_bias(module: nn.Module) -> None:
    for part in module.modules():
        if isinstance(part, nn.Linear):
            part.bias = None


def _vocabulary_projection(config: FamilyConfig, table: nn.Embedding, *, causal: bool) -> nn.Module:
    if causal:
        projection = ScaledProjection(
            config.d_model,
            config.vocabulary_size,
            bias=config.logit_bias,
            scale=config.logit_scale,
            cap=config.logit_cap,
        )
        if config.tie_embeddings:
            projection.weight = table.weight
        return projection
    legacy = config.disentangled is None or config.disentangled.legacy_head
    width = config.embedding_width if config.embedding_width and legacy else config.d_model
    head = TokenHead(config, width, ACTIVATION_FUNCTIONS[config.head_activation])
    if config.tie_embeddings:
        head.projection.weight = table.weight
    return head
