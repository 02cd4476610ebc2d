"""What is to be done about a request: make a call, or several; say something; or answer in words of the model's own.

The one front of this room. A request that forbids something, that no tool serves, or that leaves a required argument
open is answered without a model: no odds overrule that.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from edgeagent.core.events import CALL_ODDS, CALL_ODDS_NEEDED
from edgeagent.request.calibration_weights import Fitted, fitted_for
from edgeagent.request.call_odds import MISSING
from edgeagent.request.choose import Chosen, choose
from edgeagent.request.clauses import CLAUSES_MAX, divisions
from edgeagent.request.evidence import Evidence, settled
from edgeagent.request.findings import NOT_HELD, evidence_of, several_of
from edgeagent.request.judge import Judge
from edgeagent.request.language import ENGLISH, SentenceTable
from edgeagent.request.lexical import Scores
from edgeagent.request.mood import agrees, denied_in, forbids, is_qualified, is_question, is_report, refuses, withdraws
from edgeagent.request.parts.words import begins_with_verb
from edgeagent.request.polarity import counterpart, polarity_of, says
from edgeagent.request.said import NOBODY_KNOWS, Said, Spoken, as_said, said_of, tongue_in
from edgeagent.request.tools import Tools
from edgeagent.request.verbs import act_of

CLEARLY = 1.0
"""Nats over what is needed for a call, from which on a part of a request asks for one by itself."""

NO_TOOL = ENGLISH.sentences.no_tool
"""What is said to a request whose verb excludes the tool that fits it best."""

NOTHING_DONE = ENGLISH.sentences.nothing_done
"""What is said to a request that forbids something."""

LEAD_ALONE = 3.0
"""Nats by which a tool must lead by a model's judgement where no word speaks of it."""

OFFERED_MAX = 3
"""Tools that are named in one question."""

NEXT = 6.0
"""Nats by which the next tool in line may be behind one that has no place for a number that is said."""

NOTHING_SAID = Evidence()


@dataclass(frozen=True)
class PlannedCall:
    """A call of one of the tools; what the request says of its arguments; and what says that one is meant."""

    tools: tuple[str, ...]
    evidence: Evidence = NOTHING_SAID
    scores: Scores = ()
    signs: Mapping[str, float] = field(default_factory=dict)

    def is_like(self, other: PlannedCall) -> bool:
        """Whether it is the same call that the other one is, as far as the request says."""
        mine, others = self.evidence, other.evidence
        return (self.tools, mine.narrowed, mine.given) == (other.tools, others.narrowed, others.given)


@dataclass(frozen=True)
class Plan:
    """The calls to be made, or the text to be said; with neither, the model answers in words."""

    calls: tuple[PlannedCall, ...] = ()
    text: str = ""
    scores: Scores = ()
    proposed: PlannedCall | None = None
    """The call that the text proposes, if it proposes one."""
    is_refusal: bool = False
    """Whether the text says that nothing was done, since the request forbids it."""

    @property
    def why(self) -> tuple[tuple[str, str], ...]:
        """What the arguments of each call were held to."""
        return tuple((f"{call.tools[0]}.{name}", why) for call in self.calls for name, why in call.evidence.why)


class Before(NamedTuple):
    """What the user said before, and what was said to that."""

    request: str
    said: str


@dataclass(frozen=True)
class _Asking:
    """What a request is planned with: the tools that may be called, a model's judgement, and its weights."""

    tools: Tools
    judge: Judge | None
    fitted: Fitted
    needed: float
    is_open: bool


def plan(
    request: str,
    tools: Tools,
    judge: Judge | None = None,
    *,
    fitted: Fitted | None = None,
    needed: float | None = None,
    is_open: bool = True,
    before: Before | None = None,
    spoken: Spoken = NOBODY_KNOWS,
) -> Plan:
    """What is to be done about what a user says.

    `before` is what was asked and answered last: a yes to a proposal is the call that was proposed. `fitted` are the
    weights of the judge's model, `needed` the log-odds from which on a call is made, its own by default; without
    `is_open` it is settled that a call follows. `spoken` says when, and in which language.
    """

    def read(said: str) -> Said:
        return said_of(said, spoken.language, tools.spells, spoken.now, tools.lexicon.spelled)

    request = read(request)
    before = None if before is None else before._replace(request=read(before.request))
    fitted = fitted_for("") if fitted is None else fitted
    asking = _Asking(tools, judge, fitted, fitted.needed if needed is None else needed, is_open)
    if is_open and before is not None and (agreed := _agreed(request, before, asking)) is not None:
        return agreed
    parts = (_of_each(request, asking) or _calls_in(request, asking)) if is_open else ()
    planned = _joined(parts) if parts else _planned(request, asking)
    return replace(planned, calls=tuple(_settled(call, tools, judge) for call in planned.calls))


def signs_of(request: str, tools: Tools, judge: Judge | None = None, *, language: str = "") -> dict[str, float]:
    """What says that a request wants a call, or that it wants none."""
    request = said_of(request, language, tools.spells, words=tools.lexicon.spelled)
    tools = _answering(request, tools)
    chosen = choose(request, tools, judge, is_open=True)
    return _told(chosen, _said_of(request, chosen, tools))


def _sentences(request: str) -> SentenceTable:
    """What is said without a model, in the language of the request."""
    return tongue_in(request).sentences


def _answering(request: str, tools: Tools) -> Tools:
    """The tools that may serve a request: a question changes nothing."""
    return tools.only(tools.reads) if is_question(request) and tools.reads else tools


def _calls_in(request: str, asking: _Asking) -> tuple[Plan, ...]:
    """A plan for each call of a request that asks for several; none if it asks for one thing.

    It falls apart only where both parts, each by itself, clearly ask for a whole call, and for different ones. A
    later part that forbids something asks for nothing.
    """
    plans: list[Plan] = []
    rest = "" if forbids(request) or withdraws(request) else request
    while len(plans) < CLAUSES_MAX - 1:
        found = (_parted(parts, asking) for parts in divisions(rest))
        parted = next((each for each in found if each is not None), None)
        if parted is None:
            break
        first, last, rest = parted
        plans = [*plans[:-1], first, last]
    wanted = [each for each in plans if not each.is_refusal]
    calls = [call for each in wanted for call in each.calls]
    is_repeated = any(one.is_like(other) for place, one in enumerate(calls) for other in calls[:place])
    return () if is_repeated else tuple(wanted)


def _of_each(request: str, asking: _Asking) -> tuple[Plan, ...]:
    """A plan for each of several objects of one verb: `lock the front and the back door`."""
    if forbids(request) or withdraws(request) or is_qualified(request):
        return ()
    tools = _answering(request, asking.tools)
    best = max(tools.spoken_of(request), key=lambda each: each[1])[0]
    argument, options = several_of(tools.by_name[best], request)
    plans = tuple(_planned(request, asking, {argument: each}) for each in options)
    return plans if plans and all(len(p.calls) == 1 and p.calls[0].tools == (best,) for p in plans) else ()


def _parted(parts: tuple[str, str], asking: _Asking) -> tuple[Plan, Plan, str] | None:
    """The plans of both parts, and the second part, if each asks for something of its own, or forbids it."""
    tools, forbidden = asking.tools, forbids(parts[1])
    # First what costs nothing: most requests with an "and" ask for one thing.
    best = [max(tools.spoken_of(part), key=lambda each: each[1]) for part in parts]
    for part, (name, score) in zip(parts, best, strict=True):
        if not forbids(part) and (score <= 0 or evidence_of(tools.by_name[name], part).missing):
            return None
    is_apart, is_command = best[0][0] != best[1][0], tools.begins_with(parts[1], best[1][0])
    if not (is_apart or forbidden or (is_command and begins_with_verb(parts[1]))):
        return None  # "the fitness of A and of B", and not "open the one and close the other"
    first, second = (_planned(part, asking) for part in parts)
    begins = (
        is_apart and (tools.begins_with(parts[0], best[0][0]) or begins_with_verb(parts[0])),
        is_apart and (is_command or begins_with_verb(parts[1])),
    )
    if not all(_is_whole(each, begins=one) for each, one in zip((first, second), begins, strict=True)):
        return None
    is_other = is_command or forbidden or [call.tools for call in first.calls] != [call.tools for call in second.calls]
    return (first, second, parts[1]) if is_other else None


def _is_whole(planned: Plan, *, begins: bool) -> bool:
    """Whether a part of a request clearly asks for one call by itself, or forbids one.

    It does where it `begins` with a word of the tool, as a command does, and a call is meant at all. Parts of one
    tool do not, since "compare the one and compare the other" is one call as often as two.
    """
    if planned.is_refusal:
        return True
    scores = dict(planned.scores)
    is_clear = scores.get(CALL_ODDS, -math.inf) >= scores.get(CALL_ODDS_NEEDED, 0.0) + CLEARLY * (not begins)
    return len(planned.calls) == 1 and len(planned.calls[0].tools) == 1 and is_clear


def _planned(request: str, asking: _Asking, held: Mapping[str, str] = NOT_HELD) -> Plan:
    """What is to be done about a request that asks for one thing; `held` are options that are settled."""
    tools = asking.tools
    if asking.is_open and (forbids(request) or withdraws(request)):
        return Plan(text=_sentences(request).nothing_done, scores=tools.spoken_of(request), is_refusal=True)
    tools = _answering(request, tools) if asking.is_open else tools
    chosen = choose(request, tools, asking.judge, is_open=asking.is_open)
    evidence = _said_of(request, chosen, tools, held)
    if evidence.has_unused and not held:
        chosen, evidence = _taking_all(request, chosen, evidence, tools)
    if not asking.is_open:
        return _of_one(PlannedCall(chosen.tools, evidence, chosen.scores))
    if tools.excludes(chosen.tools[0], request):
        return Plan(text=_sentences(request).no_tool, scores=chosen.scores)
    weigh, told = asking.fitted.call.weights.log_odds, _told(chosen, evidence)
    scores = (*chosen.scores, (CALL_ODDS, round(weigh(told), 3)), (CALL_ODDS_NEEDED, asking.needed))
    if weigh(told | {MISSING: 0.0}) < asking.needed:
        return Plan(scores=scores)
    if evidence.missing:
        return Plan(text=evidence.missing, scores=scores)
    call = PlannedCall(chosen.tools, evidence, scores, chosen.signs)
    doubt = doubt_of(request, call, tools)
    if not doubt and not held and _is_half(request, call, tools):
        doubt = _sentences(request).shall_i_although.format(call=in_words(call, _sentences(request)))
    if chosen.is_by_meaning and not doubt and any(tools.by_name[name].effect != "read" for name in call.tools):
        doubt = _sentences(request).shall_i_although.format(call=in_words(call, _sentences(request)))
    return Plan(text=doubt, scores=scores, proposed=call) if doubt else _of_one(call)


def _agreed(answer: str, before: Before, asking: _Asking) -> Plan | None:
    """What follows from a yes or a no to a proposal; None where there was none, or the answer is neither."""
    answer = said_of(as_said(answer), tongue_in(before.request).name)
    if not (agrees(answer) or refuses(answer)):
        return None
    proposed = _planned(before.request, asking)
    if proposed.proposed is None or proposed.text != before.said:
        return None
    if refuses(answer):
        return Plan(text=_sentences(before.request).nothing_done, scores=proposed.scores)
    # Just what was proposed, so nothing is compared anew.
    call = replace(proposed.proposed, evidence=settled(proposed.proposed.evidence, {}))
    return _of_one(call) if len(call.tools) == 1 else None


def doubt_of(request: str, call: PlannedCall, tools: Tools) -> str:
    """What to ask before a call that changes something, where the request does not plainly order just that."""
    sentences = _sentences(request)
    if all(tools.by_name[name].effect == "read" for name in call.tools):
        is_order = not is_question(request) and (is_qualified(request) or polarity_of(request) is not None)
        is_order = is_order or not (is_question(request) or act_of(request) == "read" or _is_clear(call))
        return sentences.shall_i_although.format(call=in_words(call, sentences)) if is_order else ""
    if len(call.tools) > 1:
        named = [name.replace("_", " ") for name in call.tools[:OFFERED_MAX]]
        return sentences.which_tool.format(tools=sentences.or_.join(named))
    if other := _either(request, call, tools):
        named = [each.replace("_", " ") for each in (call.tools[0], other)]
        return sentences.which_tool.format(tools=sentences.or_.join(named))
    is_spoken_of = dict(tools.spoken_of(request))[call.tools[0]] > 0 or _leads(call)
    if is_spoken_of and not (is_question(request) or is_qualified(request) or is_report(request)):
        return ""
    if any(tools.has(call.tools[0], word) for word in denied_in(request)):
        return sentences.nothing_done
    sentence = sentences.shall_i if is_spoken_of else sentences.shall_i_although
    return sentence.format(call=in_words(call, sentences))


def _is_half(request: str, call: PlannedCall, tools: Tools) -> bool:
    """Whether a request that orders two things would be answered with one call that changes something."""
    if tools.by_name[call.tools[0]].effect == "read" or any(" and " in text for _, _, text in call.evidence.narrowed):
        return False
    return any(begins_with_verb(one) and begins_with_verb(other) for one, other in divisions(request))


def _either(request: str, call: PlannedCall, tools: Tools) -> str:
    """The tool that does the opposite, where the request says nothing of which of the two is meant."""
    found = counterpart(tools.by_name[call.tools[0]], tools.by_name.values())
    if found is None or says(found[1], request):
        return ""
    other, scores = found[0].name, dict(call.scores)
    return other if scores.get(other, -math.inf) >= scores[call.tools[0]] - LEAD_ALONE else ""


def _is_clear(call: PlannedCall) -> bool:
    """Whether it is clear that a call is meant at all."""
    scores = dict(call.scores)
    return scores.get(CALL_ODDS, math.inf) >= scores.get(CALL_ODDS_NEEDED, 0.0) + CLEARLY


def _leads(call: PlannedCall) -> bool:
    """Whether a model's judgement alone clearly speaks for the tool: for a call at all, and against every other."""
    odds, needed = (dict(call.scores).get(name, 0.0) for name in (CALL_ODDS, CALL_ODDS_NEEDED))
    of_tools = sorted((score for name, score in call.scores if name not in (CALL_ODDS, CALL_ODDS_NEEDED)), reverse=True)
    is_ahead = len(of_tools) < 2 or of_tools[0] - of_tools[1] >= LEAD_ALONE
    return "writer" in call.signs and odds >= needed + CLEARLY and is_ahead


def in_words(call: PlannedCall, sentences: SentenceTable = ENGLISH.sentences) -> str:
    """The likeliest call as one says it: `set valve (valve north, open yes)`."""
    evidence = settled(call.evidence, {})
    told = []
    for _, name, text in evidence.narrowed:
        values = (json.loads(text) or {}).get("enum", ())
        if values:
            value = values[0]
            shown = (sentences.yes if value else sentences.no) if isinstance(value, bool) else value
            told.append(f"{name.replace('_', ' ')} {shown}")
    named = call.tools[0].replace("_", " ")
    return f"{named} ({', '.join(told)})" if told else named


def _settled(call: PlannedCall, tools: Tools, judge: Judge | None) -> PlannedCall:
    """The call with each argument held to one value that the request leaves open; by its words where nobody judges."""
    likelihoods: dict[str, Sequence[float]] = {}
    for each in call.evidence.open:
        values = [candidate.value for candidate in each.candidates]
        written = tools.by_name[call.tools[0]].written
        told = None if judge is None else judge.values_of(written, each.argument, values)
        if told is None:
            return replace(call, evidence=settled(call.evidence, {}))
        likelihoods[each.argument] = told
    return replace(call, evidence=settled(call.evidence, likelihoods))


def _taking_all(request: str, chosen: Chosen, evidence: Evidence, tools: Tools) -> tuple[Chosen, Evidence]:
    """The next tool in line, if it has a place for the number or the time that the first has none for."""
    best = dict(chosen.scores)[chosen.tools[0]]
    line = sorted(chosen.scores, key=lambda each: -each[1])[1 : 1 + OFFERED_MAX]
    for name, score in line:
        if score < best - NEXT or tools.excludes(name, request):
            break
        found = evidence_of(tools.by_name[name], request)
        if not found.has_unused and not found.missing and found.dealt:
            return replace(chosen, tools=(name,), is_by_meaning=True), found
    return chosen, evidence


def _said_of(request: str, chosen: Chosen, tools: Tools, held: Mapping[str, str] = NOT_HELD) -> Evidence:
    """What the request says of the chosen tool's arguments; nothing is known where several tools fit alike."""
    return evidence_of(tools.by_name[chosen.tools[0]], request, held) if len(chosen.tools) == 1 else NOTHING_SAID


def _told(chosen: Chosen, evidence: Evidence) -> dict[str, float]:
    """All that says that a call is meant, or none."""
    return {**chosen.signs, MISSING: float(bool(evidence.missing))}


def _of_one(call: PlannedCall) -> Plan:
    return Plan((call,), scores=call.scores)


def _joined(plans: Sequence[Plan]) -> Plan:
    """One plan of several: each tool's best score, and how clearly the least clear of the calls is meant."""
    joint = dict(plans[0].scores)
    for name, score in (scored for each in plans[1:] for scored in each.scores):
        joint[name] = (min if name == CALL_ODDS else max)(joint.get(name, score), score)
    return Plan(tuple(call for each in plans for call in each.calls), scores=tuple(joint.items()))
