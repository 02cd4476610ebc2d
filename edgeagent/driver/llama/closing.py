"""How can this text be brought to its end in the tokens that are left? A plan, kept true once the end is near.

Law: whenever fewer than `NEAR_TOKENS` are left (or more, if the shape is long), `Room.plan` is a list of tokens that
ends the text from here, and it fits. A token that would break this is not written; then the plan is. Before that only
the plan from the very beginning is held, and going back to it is the way out. So a call is never cut, whatever the
limit is, and the search below need not be perfect: a longer plan than necessary only closes earlier.
"""

from __future__ import annotations

from typing import Literal

from edgeagent.driver.llama.constraint import Constraint

PLAN_TOKENS_MAX = 4096  # a shape whose shortest value is longer than any context is refused as unwritable
TRIALS_MAX = 400  # continuations tried to shorten a plan; one costs about 0.3 ms, and only the first search uses them
WALKED_MAX = 20_000  # tokens of all trials together: what must be long has long trials, and nobody may wait minutes
NEAR_TOKENS = 64  # from here on a plan is kept at every token, at 0.3 ms each; a usual call is over before

Admitted = Literal["yes", "taken", "rejected", "too_long", "start_over"]
"""Write it · the same, and the constraint has moved on already · the grammar does not have it · write `plan` instead ·
write `plan` instead, from the text's beginning."""


class Room:
    """The plan to the end, as one constraint moves on."""

    def __init__(self, constraint: Constraint, plan: list[int]) -> None:
        """`plan` leads to the end from the constraint's beginning."""
        self.constraint = constraint
        self.plan = plan
        self._near = max(NEAR_TOKENS, 2 * len(plan) + NEAR_TOKENS // 2)
        self._kept = True  # whether `plan` is the one from here

    def admit(self, token: int, left: int) -> Admitted:
        """Whether the token may be written and the text still ends within `left` tokens, this one counted."""
        if left > self._near:
            self._kept = False
            return "taken" if self.constraint.take(token) else "rejected"
        plan = self.plan
        if self._kept and plan and token == plan[0]:
            self.plan = plan[1:]
            return "yes"
        # One question answers both: does the token fit, and does the old plan still lead to the end behind it?
        count = self.constraint.accepted([token, *plan] if self._kept else [token], end=self._kept)
        if count == 0:
            return "rejected"
        if self._kept and count == len(plan) + 2 and len(plan) < left:
            return "yes"
        return self._replan([token], left)

    def admit_forced(self, tokens: list[int], left: int) -> Admitted:
        """The same for tokens that the grammar forces."""
        count = len(tokens)
        if left - count > self._near:
            self._kept = False
            return "yes"
        if self._kept and self.plan[:count] == tokens:
            self.plan = self.plan[count:]
            return "yes"
        return self._replan(tokens, left)

    def _replan(self, tokens: list[int], left: int) -> Admitted:
        ahead = self.constraint.copy()
        ahead.consume(tokens)
        rest = left - len(tokens)
        plan = any_end(ahead)
        if plan is None or len(plan) > rest:
            plan = shortest_end(ahead)
        if plan is None or len(plan) > rest:
            return "too_long" if self._kept else "start_over"
        self.plan = plan
        self._kept = True
        return "yes"


def any_end(constraint: Constraint) -> list[int] | None:
    """A short plan from here, the first one found. The constraint stays as it is."""
    plan, _, _ = _follow(constraint.copy(), PLAN_TOKENS_MAX)
    return None if plan is None else constraint.respelled(plan)


def shortest_end(constraint: Constraint) -> list[int] | None:
    """The shortest plan we can find: from the first one, every single choice is changed until nothing gets shorter."""
    best, choices, _ = _follow(constraint.copy(), PLAN_TOKENS_MAX)
    if best is None:
        return None
    left = _Left()
    while (better := _shorter(best, choices, left)) is not None:
        best, choices = better
    return constraint.respelled(best)


_Choice = tuple[int, Constraint, list[int]]
"""Where in the plan there was a choice, the constraint there, and the tokens that were not taken."""


class _Left:
    """What the search may still take."""

    def __init__(self) -> None:
        self.trials, self.tokens = TRIALS_MAX, WALKED_MAX


def _shorter(plan: list[int], choices: list[_Choice], left: _Left) -> tuple[list[int], list[_Choice]] | None:
    """The plan with one choice changed that makes it shorter; None if there is none, or no trials are left."""
    for index, (at, state, others) in enumerate(choices):
        for token in others:
            left.trials -= 1
            if left.trials < 0 or left.tokens <= 0:
                return None
            ahead = state.copy()
            ahead.consume([token])
            rest, behind, walked = _follow(ahead, len(plan) - at - 2)
            left.tokens -= walked
            if rest is not None:
                moved = [(at + 1 + place, there, tokens) for place, there, tokens in behind]
                untried = [other for other in others if other != token]
                return [*plan[:at], token, *rest], [*choices[:index], (at, state, untried), *moved]
    return None


def _follow(ahead: Constraint, limit: int) -> tuple[list[int] | None, list[_Choice], int]:
    """Walk to the end by the first choice each time; None when that takes more than `limit` tokens. And how far."""
    plan: list[int] = []
    choices: list[_Choice] = []
    while not ahead.complete():
        step = ahead.forced()
        if not step:
            options = ahead.choices()
            if not options:
                return None, choices, len(plan)
            choices.append((len(plan), ahead.copy(), options[1:]))
            step = options[:1]
        plan += step
        if len(plan) > limit:
            return None, choices, len(plan)
        ahead.consume(step)
    return plan, choices, len(plan)
