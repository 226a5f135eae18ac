"""The Python code of the Positions page: the functions that compute its numbers, and a snippet."""

from transformer import positions
from transformer.layers.positional_encodings import alibi_bias
from transformer.variants.disentangled_attention import DisentangledAttention, RelativeEmbedding
from transformer.variants.family_embedding import HalvedSinusoids
from transformer.variants.partial_rotary import PartialRotaryEncoding
from views.positions.positions_view_model import PositionsViewModel

SOURCES = {
    "sinusoidal": (positions.SinusoidalEncoding, positions.sinusoidal_encoding),
    "learned": (positions.LearnedEncoding,),
    "rotary": (positions.RotaryEncoding,),
    "relative": (positions.RelativePositionBias,),
    "alibi": (alibi_bias,),
    "disentangled": (DisentangledAttention.position_terms, RelativeEmbedding),
}


def sources(view_model: PositionsViewModel, section: str | None) -> tuple:
    """Return the code of the chosen scheme; this model's own if it differs from the paper's."""
    if not view_model.is_own and section != "order":
        return SOURCES[view_model.scheme]
    stack = view_model.checkpoint.model.get_submodule(view_model.stack)
    used = (stack.embedding.position_encoding, stack.layers[0].self_attention.rotary)
    own = tuple(kind for kind in (HalvedSinusoids, PartialRotaryEncoding) for part in used if isinstance(part, kind))
    return own or SOURCES[view_model.checkpoint.config.positions_in(view_model.stack)]


def snippet(view_model: PositionsViewModel) -> str:
    """Return Python that prints what this model adds, and its predictions without positions."""
    checkpoint, sentence = view_model.checkpoint, view_model.trace.sentence
    stack = "encoder" if checkpoint.config.has_encoder else "decoder"
    added = ""
    if checkpoint.config.positions_in(view_model.stack) in ("sinusoidal", "learned"):
        added = f"print(trace['{view_model.stack}.embedding.position'].values)\n"
    return (
        "\nfrom transformer.layers.positional_encodings import reordered_positions, without_positions\n\n"
        + added
        + f"edits = without_positions(checkpoint.model, {stack!r})  # or reordered_positions(…, order)\n"
        + f"print(transformer.trace(checkpoint, {sentence!r}, edits=edits).text)\n"
    )
