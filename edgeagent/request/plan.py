"""What is to be done about a request: make a call, or several; say something; or answer in words of the model's own.

The one front of this room. A request that forbids something, that no tool serves, or that leaves a required argument
open is answered without a model: no odds overrule that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from edgeagent.core.events import CALL_ODDS, CALL_ODDS_NEEDED
from edgeagent.request.calibration_weights import Fitted, fitted_for
from edgeagent.request.call_odds import MISSING
from edgeagent.request.choose import Chosen, choose
from edgeagent.request.clauses import CLAUSES_MAX, divisions
from edgeagent.request.contrast import Of, all_of, contrasted
from edgeagent.request.doubt import CLEARLY, OFFERED_MAX, SHORT_WORDS_MAX, doubt_of, is_half, is_plain
from edgeagent.request.evidence import Evidence, settled
from edgeagent.request.findings import NOT_HELD, evidence_of, several_of
from edgeagent.request.followup import Earlier, filled, follows, turned_back
from edgeagent.request.judge import Judge
from edgeagent.request.lexical import stems
from edgeagent.request.mood import (
    agrees,
    denies,
    forbids,
    is_qualified,
    is_question,
    refuses,
    withdraws,
)
from edgeagent.request.parts.words import begins_with_verb
from edgeagent.request.planned import NOTHING_SAID, Plan, PlannedCall, in_words, sentences_for
from edgeagent.request.polarity import counterpart, polarity_of
from edgeagent.request.said import NOBODY_KNOWS, Said, Spoken, as_said, said_of, tongue_in
from edgeagent.request.tools import Tools
from edgeagent.request.verbs import act_of

NEXT = 6.0
"""Nats by which the next tool in line may be behind one that has no place for a number that is said."""

ALIKE = 4.5
"""Nats by which a tool that has all that it needs may be behind one that misses something."""


FAR = 12.0
"""Nats by which such a tool may be behind one that only reads, for an order."""


PLAINLY = 4.0
"""Nats under what is needed for a call, down to which an order of which all is explained is one."""


class Before(NamedTuple):
    """What was before: the user's word and what was said to it, if nothing came between; and the last call."""

    request: str = ""
    said: str = ""
    call: Earlier | None = None


NOTHING_BEFORE = Before()


@dataclass(frozen=True)
class _Asking:
    """What a request is planned with: the tools that may be called, a model's judgement, and its weights."""

    tools: Tools
    judge: Judge | None
    fitted: Fitted
    needed: float
    is_open: bool
    earlier: Earlier | None = None


def plan(
    request: str,
    tools: Tools,
    judge: Judge | None = None,
    *,
    fitted: Fitted | None = None,
    needed: float | None = None,
    is_open: bool = True,
    before: Before = NOTHING_BEFORE,
    spoken: Spoken = NOBODY_KNOWS,
) -> Plan:
    """What is to be done about what a user says.

    `before` is what was asked and answered last: a yes to a proposal is the call that was proposed, and a request may
    only say the difference to the last call. `fitted` are the weights of the judge's model, `needed` the log-odds from
    which on a call is made, its own by default; without `is_open` it is settled that a call follows. `spoken` says
    when, and in which language.
    """

    def read(said: str) -> Said:
        return said_of(said, spoken.language, tools.spells, spoken.now, tools.lexicon.spelled)

    request = read(request)
    before = before._replace(request=read(before.request))
    fitted = fitted_for("") if fitted is None else fitted
    asking = _Asking(tools, judge, fitted, fitted.needed if needed is None else needed, is_open, before.call)
    if is_open and before.said and (agreed := _agreed(request, before, asking)) is not None:
        return agreed
    planned = _of_request(request, asking)
    return replace(planned, calls=tuple(_settled(call, tools, judge) for call in planned.calls))


def _of_request(request: str, asking: _Asking) -> Plan:
    """What is to be done about a request, whatever was asked back before it."""
    if not asking.is_open:
        return _planned(request, asking)
    if (followed := _followed(request, asking)) is not None:
        return followed
    request, speaking = contrasted(request)
    parts = _of_each(request, asking) or _calls_in(request, asking)
    return _joined(parts) if parts else _planned(request, asking, speaking=speaking)


def signs_of(request: str, tools: Tools, judge: Judge | None = None, *, language: str = "") -> dict[str, float]:
    """What says that a request wants a call, or that it wants none."""
    request = said_of(request, language, tools.spells, words=tools.lexicon.spelled)
    tools = _answering(request, tools)
    chosen = choose(request, tools, judge, is_open=True)
    return _told(chosen, _said_of(request, chosen, tools))


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
    if forbids(request) or withdraws(request):
        return ()
    tools = _answering(request, asking.tools)
    best, several = _several(request, tools)
    if is_qualified(several.request):
        return ()
    asking = replace(asking, tools=tools.only([best])) if several.is_rest else asking
    plans = tuple(_planned(several.request, asking, {several.argument: each}) for each in several.values)
    return plans if plans and all(len(p.calls) == 1 and p.calls[0].tools == (best,) for p in plans) else ()


def _several(request: str, tools: Tools) -> tuple[str, Of]:
    """The tool of which a request asks for several calls, and for what each: for what an exception leaves, too."""
    told = sorted(tools.spoken_of(request), key=lambda each: -each[1])
    best = told[0][0]
    for name in [best, *(name for name, score in told[1:] if score > 0)]:
        several = all_of(tools.by_name[name], request)
        if several.values and (name == best or several.is_rest) and not tools.excludes(name, request):
            return name, several
    return best, Of(*several_of(tools.by_name[best], request), request)


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
    told = zip((first, second), parts, begins, strict=True)
    if not all(_is_whole(each, part, tools, begins=one) for each, part, one in told):
        return None
    is_other = is_command or forbidden or [call.tools for call in first.calls] != [call.tools for call in second.calls]
    return (first, second, parts[1]) if is_other else None


def _is_whole(planned: Plan, part: str, tools: Tools, *, begins: bool) -> bool:
    """Whether a part of a request clearly asks for one call by itself, or forbids one.

    It does where it `begins` with a word of the tool, as a command does, and a call is meant at all. Parts of one
    tool do not, since "compare the one and compare the other" is one call as often as two.
    """
    if planned.is_refusal:
        return True
    scores = dict(planned.scores)
    reading = [name for call in planned.calls for name in call.tools if tools.by_name[name].effect == "read"]
    if reading:
        others = [name for name in tools.by_name if tools.by_name[name].effect != "read"]
        is_named = any(tools.begins_with(part, name) for name in reading)
        is_named = is_named and not any(tools.begins_with(part, name) for name in others)
        begins = begins and (is_named or is_question(part) or act_of(part) == "read")
        if not begins:
            return False
    is_clear = scores.get(CALL_ODDS, -math.inf) >= scores.get(CALL_ODDS_NEEDED, 0.0) + CLEARLY * (not begins)
    return len(planned.calls) == 1 and len(planned.calls[0].tools) == 1 and is_clear


def _planned(request: str, asking: _Asking, held: Mapping[str, Any] = NOT_HELD, speaking: str = "") -> Plan:
    """What is to be done about a request that asks for one thing.

    `held` are options that are settled; `speaking` is what tells the tool, if that is more than the request.
    """
    tools = asking.tools
    if asking.is_open and (forbids(request) or withdraws(request)):
        return Plan(text=sentences_for(request).nothing_done, scores=tools.spoken_of(request), is_refusal=True)
    tools = _answering(request, tools) if asking.is_open else tools
    chosen = choose(speaking or request, tools, asking.judge, is_open=asking.is_open)
    if asking.is_open and not held:
        chosen = _only_whole(request, chosen, tools)
    evidence = _said_of(request, chosen, tools, held)
    if asking.earlier is not None and evidence.missing and len(chosen.tools) == 1:
        evidence = filled(tools.by_name[chosen.tools[0]], asking.earlier, request, evidence)
    if evidence.has_unused and not held:
        chosen, evidence = _taking_all(request, chosen, evidence, tools)
    elif asking.is_open and not held and (evidence.missing or _is_order_to_read(request, chosen, evidence, tools)):
        chosen, evidence = _whole(request, chosen, evidence, tools)
    if not asking.is_open:
        return _of_one(PlannedCall(chosen.tools, evidence, chosen.scores))
    if tools.excludes(chosen.tools[0], request) or tools.serves_nothing(request):
        return Plan(text=sentences_for(request).no_tool, scores=chosen.scores)
    weigh, told = asking.fitted.call.weights.log_odds, _told(chosen, evidence)
    scores = (*chosen.scores, (CALL_ODDS, round(weigh(told), 3)), (CALL_ODDS_NEEDED, asking.needed))
    odds = weigh(told | {MISSING: 0.0})
    is_meant = odds >= asking.needed - PLAINLY and is_plain(request, chosen.tools, evidence, tools)
    if odds < asking.needed and not is_meant:
        return Plan(scores=scores)
    if evidence.missing:
        return Plan(text=evidence.missing, scores=scores)
    call = PlannedCall(chosen.tools, evidence, scores, chosen.signs)
    doubt = doubt_of(request, call, tools)
    if not doubt and not held and is_half(request, call, tools):
        doubt = sentences_for(request).shall_i_although.format(call=in_words(call, sentences_for(request)))
    if chosen.is_by_meaning and not doubt and any(tools.by_name[name].effect != "read" for name in call.tools):
        doubt = sentences_for(request).shall_i_although.format(call=in_words(call, sentences_for(request)))
    return Plan(text=doubt, scores=scores, proposed=call) if doubt else _of_one(call)


def _followed(request: str, asking: _Asking) -> Plan | None:
    """Another call like the one before, where that is all the request can mean."""
    earlier = asking.earlier
    tool = asking.tools.by_name.get(earlier.tool) if earlier is not None else None
    if earlier is None or tool is None or forbids(request) or denies(request) or withdraws(request):
        return None
    if tool.effect != "read" and is_question(request):
        return None
    evidence = follows(tool, earlier, request)
    if evidence is None and (found := counterpart(tool, asking.tools.by_name.values())) is not None:
        tool, evidence = found[0], turned_back(found[0], tool, earlier, request)
    if evidence is None:
        return None
    call = PlannedCall((tool.name,), evidence, asking.tools.spoken_of(request))
    if evidence.missing:
        return Plan(text=evidence.missing, scores=call.scores)
    if tool.effect != "irreversible":
        return _of_one(call)
    sentences = sentences_for(request)
    return Plan(text=sentences.shall_i.format(call=in_words(call, sentences)), scores=call.scores, proposed=call)


def _agreed(answer: str, before: Before, asking: _Asking) -> Plan | None:
    """What follows from a yes or a no to a proposal; None where there was none, or the answer is neither."""
    answer = said_of(as_said(answer), tongue_in(before.request).name)
    if not (agrees(answer) or refuses(answer)):
        return None
    proposed = _of_request(before.request, asking)
    if proposed.proposed is None or proposed.text != before.said:
        return None
    if refuses(answer):
        return Plan(text=sentences_for(before.request).nothing_done, scores=proposed.scores)
    # Just what was proposed, so nothing is compared anew.
    call = replace(proposed.proposed, evidence=settled(proposed.proposed.evidence, {}))
    return _of_one(call) if len(call.tools) == 1 else None


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
        if score < best - NEXT:
            break
        if tools.excludes(name, request):
            continue
        found = evidence_of(tools.by_name[name], request)
        if not found.has_unused and not found.missing and found.dealt:
            is_sure = found.needs and score >= best - ALIKE
            return replace(chosen, tools=(name,), is_by_meaning=chosen.is_by_meaning or not is_sure), found
    return chosen, evidence


def _is_order_to_read(request: str, chosen: Chosen, evidence: Evidence, tools: Tools) -> bool:
    """Whether a tool that reads is chosen for an order that names what the tool does not know, or says on or off."""
    is_read = all(tools.by_name[name].effect == "read" for name in chosen.tools)
    is_told = len(evidence.asked) <= SHORT_WORDS_MAX and bool(evidence.strange or evidence.explained.undone)
    return is_read and not is_question(request) and (is_told or polarity_of(request) is not None)


def _whole(request: str, chosen: Chosen, evidence: Evidence, tools: Tools) -> tuple[Chosen, Evidence]:
    """The next tool in line, if the words speak of it about as much and it has all that it needs."""
    best = dict(chosen.scores)[chosen.tools[0]]
    line = sorted(chosen.scores, key=lambda each: -each[1])[1 : 1 + OFFERED_MAX]
    if evidence.missing and next(iter(stems(request)), "") in stems(chosen.tools[0]):
        return chosen, evidence  # It is ordered by its name.
    reach = FAR if _is_order_to_read(request, chosen, evidence, tools) else ALIKE
    for name, score in line:
        if score < best - reach or tools.excludes(name, request):
            break
        found = evidence_of(tools.by_name[name], request)
        is_whole = found.needs and not found.missing and not found.has_unused
        is_better = evidence.missing or len(found.strange) < len(evidence.strange) or polarity_of(request) is not None
        if is_whole and is_better:
            return replace(chosen, tools=(name,)), found
    return chosen, evidence


def _only_whole(request: str, chosen: Chosen, tools: Tools) -> Chosen:
    """Of several tools that fit alike the only one that needs what is said, if the others need nothing."""
    if len(chosen.tools) == 1 or chosen.is_by_meaning:
        return chosen
    told = {name: evidence_of(tools.by_name[name], request) for name in chosen.tools}
    needing = [name for name, each in told.items() if each.needs]
    is_one = len(needing) == 1 and not (told[needing[0]].missing or told[needing[0]].has_unused)
    return replace(chosen, tools=(needing[0],)) if is_one else chosen


def _said_of(request: str, chosen: Chosen, tools: Tools, held: Mapping[str, Any] = NOT_HELD) -> Evidence:
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
