"""The Python code of the Positions page: the functions that compute its numbers, and a snippet."""

from transformer import positions
from transformer.guests.described_layers import HalvedSinusoids
from transformer.guests.rotary_positions import RotaryPositions
from views.positions.positions_view_model import PositionsViewModel

SOURCES = {
    "sinusoidal": (positions.SinusoidalEncoding, positions.sinusoidal_encoding),
    "learned": (positions.LearnedEncoding,),
    "rotary": (positions.RotaryEncoding,),
    "relative": (positions.RelativePositionBias,),
    "alibi": (positions.alibi_slopes,),
}


def sources(view_model: PositionsViewModel) -> tuple:
    """Return the code of this model's scheme, which may differ from the paper's; none if it has none."""
    stack = view_model.checkpoint.model.get_submodule(view_model.stack)
    used = (stack.embedding.position_encoding, stack.layers[0].self_attention.rotary)
    own = tuple(kind for kind in (HalvedSinusoids, RotaryPositions) for part in used if isinstance(part, kind))
    return own or SOURCES.get(view_model.scheme, ())


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
