"""Which of the tools does a request ask for? By its words where they clearly speak of one, else by the model too.

The model is asked how likely the request is behind each tool's text, which is a far better question than which name it
would write. No tool is a class of its own: for the tool that fits best it is told how much likelier the request is
behind its text than behind one that says nothing, and what words the two share.

Laws: only tools that may be called are chosen. Where nothing can tell them apart, all of those stay. What the model
could not be asked, for want of room or time, says nothing either way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from edgeagent.request.call_odds import words_shared
from edgeagent.request.judge import Judge
from edgeagent.request.lexical import Scores
from edgeagent.request.tools import WRITER, Tools

LEXICAL_WEIGHT = 3.0
"""Nats that a point of the lexical score is worth. In trials with BFCL 2 to 4 were best."""

NEAR_WEIGHT = 40.0
"""Points of the lexical score that a cosine of 1 is worth, over the mean of the agent's tools. Set by hand after a look
at the seen half of `bench/accuracy/own`, so what that half tells of it is no estimate of what it does elsewhere."""

CLEAR = 0.1
"""Nats by which words and the model must lead, to lead at all. Set by hand, like `NEAR_WEIGHT`."""

NEAR = "near"
"""The sign of how much nearer in meaning a tool is to the request than the agent's tools are on the whole."""

DECISIVE_MARGIN = 1.5
"""Points by which a tool must lead for its words alone to decide."""

COMPARED_MAX = 12
"""The most tools that the model compares for one request: those of which its words speak most."""


@dataclass(frozen=True)
class Chosen:
    """The tools that the call may name; how each was judged; and what says that a call is meant."""

    tools: tuple[str, ...]
    scores: Scores = ()
    signs: Mapping[str, float] = field(default_factory=dict)
    is_by_meaning: bool = False
    """Whether something else than words and the model chose it: enough to read or to ask, not to change anything."""


def choose(request: str, tools: Tools, judge: Judge | None = None, *, is_open: bool = False) -> Chosen:
    """The tools that fit the request best: one, or several that fit alike.

    `is_open` when it is not settled that a call follows: then it is told what speaks for one and against it.
    """
    near = tools.near(request)
    spoken = tuple((name, score + NEAR_WEIGHT * near.get(name, 0.0)) for name, score in tools.spoken_of(request))
    rivals = _rivals(spoken)
    likely = _likely(request, tools.texts(rivals, request), judge) if is_open or len(rivals) > 1 else {}
    best_likely = max((likely[name] for name in rivals if name in likely), default=0.0)
    scores = tuple((n, round(LEXICAL_WEIGHT * s + likely.get(n, best_likely) - best_likely, 3)) for n, s in spoken)
    best = max(score for name, score in scores if name in rivals)
    fitting = tuple(name for name, score in scores if score == best and name in rivals)
    signs = _signs(tools, fitting[0], request, likely) if is_open else {}
    if is_open and fitting[0] in near:
        signs[NEAR] = round(near[fitting[0]], 4)
    plain = {n: s - LEXICAL_WEIGHT * NEAR_WEIGHT * near.get(n, 0.0) for n, s in scores}
    is_by_meaning = any(each > plain[fitting[0]] - CLEAR for n, each in plain.items() if n not in fitting)
    return Chosen(fitting, scores, signs, is_by_meaning and bool(near))


def _likely(request: str, texts: Mapping[str, str], judge: Judge | None) -> Mapping[str, float]:
    """The log-probability of the request behind each text; empty if it could not be told."""
    if judge is None or not request.strip():
        return {}
    return judge.request_behind(request, texts) or {}


def _signs(tools: Tools, name: str, request: str, likely: Mapping[str, float]) -> dict[str, float]:
    """What says that the request asks for this tool, and not for none."""
    found = words_shared(tools.by_name[name], request)
    if name in likely:
        found["writer"] = likely[name] - likely[WRITER]
    return {sign: round(value, 3) for sign, value in found.items()}


def _rivals(spoken: Scores) -> list[str]:
    """The tools that the words of the request leave, best first; of many that fit alike, the first declared."""
    best = max(score for _, score in spoken)
    left = [name for name, score in sorted(spoken, key=lambda each: -each[1]) if best - score < DECISIVE_MARGIN]
    return left[:COMPARED_MAX]
