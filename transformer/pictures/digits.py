"""Handwritten digits of 8 × 8 pixels, in the layout of a labelled corpus: scikit-learn's copy, shuffled and cut once.

Optical Recognition of Handwritten Digits, Alpaydin & Kaynak 1998, UCI Machine Learning Repository, CC BY 4.0. The 13
people who wrote them are in every part: scores are for their hands, not for those of others.
"""

from transformer.config import LEVELS

SEED = 2021
N_TRAIN, N_DEV = 1_100, 250  # the other 447 are for testing


def digit_rows() -> dict[str, list[str]]:
    """The lines of ``train``, ``dev`` and ``test``: the text of a picture, a tab, and the digit.

    Raises ``ModuleNotFoundError`` where scikit-learn is not installed.
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
    order = np.random.RandomState(SEED).permutation(len(rows))  # whose numbers NumPy has frozen
    shuffled = [rows[index] for index in order]
    return {
        "train": shuffled[:N_TRAIN],
        "dev": shuffled[N_TRAIN : N_TRAIN + N_DEV],
        "test": shuffled[N_TRAIN + N_DEV :],
    }
