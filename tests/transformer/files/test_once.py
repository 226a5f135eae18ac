"""A property that is computed once; a page test checks that it does not block other threads."""

from transformer.files.once import once


class Counted:
    n_computed = 0

    @once
    def value(self) -> int:
        """How often it was computed."""
        self.n_computed += 1
        return self.n_computed


def test_it_is_computed_once_for_each_object() -> None:
    first, second = Counted(), Counted()
    assert (first.value, first.value, first.n_computed, second.n_computed) == (1, 1, 1, 0)
    del first.__dict__["value"]
    assert first.value == 2
    assert Counted.value.__doc__ == "How often it was computed."
