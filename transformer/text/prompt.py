"""How typed text becomes the input of a decoder-only model: plain, with special tokens, or as a chat."""

import json
from dataclasses import dataclass

from transformer.errors import InputError

LONGEST = 10_000  # limit on the characters of the variables


@dataclass(frozen=True)
class Prompt:
    """Settings for reading typed text.

    Attributes:
        chat: Whether the text is a user's message in the tokenizer's chat template, after ``system``; otherwise special
            tokens in the text are read as such.
        system: System message of the chat.
        variables: Variables of the template, a JSON object (``{"enable_thinking": false}``).
    """

    chat: bool = False
    system: str = ""
    variables: str = ""

    def messages(self, text: str) -> list[dict[str, str]]:
        """Return the messages in the form that ``apply_chat_template`` takes."""
        system = [{"role": "system", "content": self.system}] if self.system.strip() else []
        return [*system, {"role": "user", "content": text}]

    @property
    def given(self) -> dict[str, object]:
        """Parse the variables.

        Raises:
            InputError: If they are not a JSON object.
        """
        if not self.variables.strip():
            return {}
        try:
            found = json.loads(self.variables[: LONGEST + 1]) if len(self.variables) <= LONGEST else None
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise InputError(
                f"The variables of the chat template must be a JSON object of at most {LONGEST:,} characters, "
                'such as {"enable_thinking": false}.'
            )
        return found


def refusal(problem: str) -> InputError:
    """Return the error for a chat that a template refuses, or for a template that Jinja refuses."""
    return InputError(f"The chat template of this tokenizer refuses the text: {problem}")
