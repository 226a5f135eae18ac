"""Handwritten digits of 8 × 8 pixels as a labelled corpus: scikit-learn's copy, shuffled and split.

Optical Recognition of Handwritten Digits, Alpaydin & Kaynak 1998, UCI Machine Learning Repository, CC BY 4.0. The 13
writers are in every part, so scores apply to their handwriting only.
"""

from transformer.config import LEVELS

SEED = 2021
N_TRAIN, N_DEV = 1_100, 250  # the other 447 are for testing


def digit_rows() -> dict[str, list[str]]:
    """Return the lines of ``train``, ``dev`` and ``test``: the text of an image, a tab, and the digit.

    Raises:
        ModuleNotFoundError: If scikit-learn is not installed.
    """
    try:
        import numpy as np
        from sklearn.datasets import load_digits
    except ModuleNotFoundError as error:
        remedy = "pip install -r requirements-train.txt"
        raise ModuleNotFoundError(f"the digits come with scikit-learn: {remedy}", name="scikit-learn") from error
    digits = load_digits()
    texts = ["".join(LEVELS[int(pixel)] for pixel in picture) for picture in digits.data]
    rows = [f"{text}\t{label}" for text, label in zip(texts, digits.target.tolist(), strict=True)]
    order = np.random.RandomState(SEED).permutation(len(rows))  # NumPy guarantees its numbers
    shuffled = [rows[index] for index in order]
    return {
        "train": shuffled[:N_TRAIN],
        "dev": shuffled[N_TRAIN : N_TRAIN + N_DEV],
        "test": shuffled[N_TRAIN + N_DEV :],
    }
