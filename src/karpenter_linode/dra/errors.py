"""Errors of an allocation: what makes Kubernetes give up on a claim instead of trying another device."""

from __future__ import annotations


class AllocationError(Exception):
    """An allocation cannot even be tried to its end. Kubernetes gives the pod up on this node, too.

    Args:
        code: stable kebab-case word (``dra-class-missing``).
        detail: names the request and what was found.
        facts: values behind the message.
        claim: ``namespace/name`` of the claim, once it is known.
    """

    def __init__(self, code: str, detail: str, facts: tuple[tuple[str, str], ...] = (), claim: str = "") -> None:
        self.code = code
        self.detail = detail
        self.facts = facts
        self.claim = claim
        super().__init__(self.message)

    @property
    def message(self) -> str:
        """The whole message, with the claim in front."""
        return f"claim {self.claim}, {self.detail}" if self.claim else self.detail

    def of_claim(self, claim: str) -> AllocationError:
        """The same error with its claim named."""
        return AllocationError(self.code, self.detail, self.facts, claim)


class StepLimitError(AllocationError):
    """The search used up its steps without an answer."""

    def __init__(self, steps: int) -> None:
        super().__init__(
            "dra-step-limit",
            f"the device search gave up after {steps} tried devices without an answer",
            (("steps", str(steps)),),
        )
