"""How a typed text becomes what a decoder-only model reads: as it is, with special tokens, or as a chat."""

import json
from dataclasses import dataclass

from transformer.errors import InputError

LONGEST = 10_000  # characters of the variables


@dataclass(frozen=True)
class Prompt:
    """``chat``: the text is the message of a user, in the tokenizer's chat template, behind what ``system`` says; else
    special tokens that are typed are taken for such. ``variables``: of the template, a JSON object
    (``{"enable_thinking": false}``)."""

    chat: bool = False
    system: str = ""
    variables: str = ""

    def messages(self, text: str) -> list[dict[str, str]]:
        """As ``apply_chat_template`` takes them."""
        system = [{"role": "system", "content": self.system}] if self.system.strip() else []
        return [*system, {"role": "user", "content": text}]

    @property
    def given(self) -> dict[str, object]:
        """The variables. Raises ``InputError`` for what is no JSON object."""
        if not self.variables.strip():
            return {}
        try:
            found = json.loads(self.variables[: LONGEST + 1]) if len(self.variables) <= LONGEST else None
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise InputError(
                "The variables of the chat template must be a JSON object of at most {most} characters, such as "
                "{example}.",
                most=f"{LONGEST:,}",
                example='{"enable_thinking": false}',
            )
        return found


def refused(problem: str) -> InputError:
    """What a template says about a chat that it does not take, or Jinja about a template."""
    return InputError("The chat template of this tokenizer refuses the text: {problem}", problem=problem)
