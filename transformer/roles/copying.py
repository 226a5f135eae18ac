"""By the weights alone: does what a head writes raise the very token that it looks at?

    copying = Σ λ / Σ |λ|      −1 … 1, over the eigenvalues λ of W_E W_V W_O W_U

of Elhage et al. 2021 ("Copying"), as ``transformer.analysis.head_circuits`` has it. 1: every token that the head
looks at becomes more probable; −1: less; about 0: random weights, which is the chance level. What a head writes is no
job: beside "induction" it says whether a head that finds the right place also says what stood there (Olsson et al.
2022 ask for both).
"""

from transformer.analysis.head_circuits import copying_scores, reads_words_out
from transformer.files.checkpoints import Checkpoint
from transformer.roles.tally import Measure
from transformer.runs.readings import attention_layers

LEAST_COPYING = 0.5  # half of all that its eigenvalues move is raised, net


def copying_measures(checkpoint: Checkpoint) -> dict[tuple[str, str, int, int], Measure]:
    """By (stack, kind, layer, head), of the stacks from which one linear step leads to the words."""
    found, model = {}, checkpoint.model
    for stack, kind in dict.fromkeys((stack, kind) for stack, kind, _ in attention_layers(checkpoint)):
        if not reads_words_out(model, stack):
            continue
        for layer, scores in enumerate(copying_scores(model, stack, kind)):
            for head, score in enumerate(scores):
                if score == score:  # NaN: it writes nothing
                    channels = model.get_submodule(f"{stack}.layers.{layer}.{kind}_attention").d_head
                    found[stack, kind, layer, head] = Measure(score, 0.0, LEAST_COPYING, channels)
    return found
