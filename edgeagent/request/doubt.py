"""Doubt: what is asked before a call, where the request does not plainly order just that.

Law: a tool that changes something runs only on a plain order in which nothing is left over.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from edgeagent.core.events import CALL_ODDS, CALL_ODDS_NEEDED
from edgeagent.request.clauses import divisions
from edgeagent.request.evidence import Evidence
from edgeagent.request.explained import is_alike
from edgeagent.request.lexical import stem, stems, words_of
from edgeagent.request.mood import denied_in, exclaims, is_qualified, is_question, is_report
from edgeagent.request.parts.strange import GENERIC
from edgeagent.request.parts.words import begins_with_verb
from edgeagent.request.planned import PlannedCall, in_words, sentences_for
from edgeagent.request.polarity import OPPOSITES, counterpart, polarity_of, says
from edgeagent.request.tools import Tools
from edgeagent.request.verbs import act_of

CLEARLY = 1.0
"""Nats over what is needed for a call, from which on a part of a request asks for one by itself."""

LEAD_ALONE = 3.0
"""Nats by which a tool must lead by a model's judgement where no word speaks of it."""

SHORT_WORDS_MAX = 6
"""Words that say something, of a request that is short."""

OFFERED_MAX = 3
"""Tools that are named in one question."""


def doubt_of(request: str, call: PlannedCall, tools: Tools) -> str:
    """What to ask before a call that changes something, where the request does not plainly order just that."""
    sentences = sentences_for(request)
    if all(tools.by_name[name].effect == "read" for name in call.tools):
        is_doubted = _is_order(request, call, tools) or _names_another(call, tools)
        return sentences.shall_i_although.format(call=in_words(call, sentences)) if is_doubted else ""
    if len(call.tools) > 1:
        named = [name.replace("_", " ") for name in call.tools[:OFFERED_MAX]]
        return sentences.which_tool.format(tools=sentences.or_.join(named))
    if other := _either(request, call, tools):
        named = [each.replace("_", " ") for each in (call.tools[0], other)]
        return sentences.which_tool.format(tools=sentences.or_.join(named))
    is_spoken_of = dict(tools.spoken_of(request))[call.tools[0]] > 0 or _leads(call)
    is_spoken_of = is_spoken_of and not _is_strange(call, tools)
    if is_spoken_of and not (is_question(request) or is_qualified(request) or is_report(request)):
        return ""
    if any(tools.has(call.tools[0], word) for word in denied_in(request)):
        return sentences.nothing_done
    sentence = sentences.shall_i if is_spoken_of else sentences.shall_i_although
    return sentence.format(call=in_words(call, sentences))


def is_plain(request: str, named: Sequence[str], evidence: Evidence, tools: Tools) -> bool:
    """Whether all that a short order says is explained by one tool and its values: then a call is meant, however odd.

    A text can be anything, so that a tool that must be given one explains nothing by it.
    """
    if len(named) > 1 or evidence.missing or evidence.has_unused or not evidence.needs or not evidence.asked:
        return False
    schema = tools.by_name[named[0]].parameters.schema.get("properties", {})
    is_said = any(name in evidence.dealt or "enum" in schema[name] for name in evidence.needs)
    takes_text = any(
        schema[name].get("type") == "string" and not schema[name].keys() & {"enum", "format"} for name in evidence.needs
    )
    found = evidence.explained
    is_left = bool(evidence.strange or found.undone or found.unmeant)
    is_order = not (is_question(request) or is_qualified(request) or is_report(request))
    return is_said and is_order and not takes_text and not is_left and len(evidence.asked) <= SHORT_WORDS_MAX


def _is_order(request: str, call: PlannedCall, tools: Tools) -> bool:
    """Whether a request that a tool that only reads would answer orders something else, as far as one can tell."""
    if is_question(request):
        return False
    undone = is_short(call) and not OPPOSITES.keys().isdisjoint(call.evidence.explained.undone)
    if exclaims(request) or is_qualified(request) or polarity_of(request) is not None or undone:
        return True
    first, spelled = next(iter(stems(request)), ""), words_of(request)
    is_verb = bool(spelled) and stem(spelled[0]) == first and (first in OPPOSITES or first not in GENERIC)
    if is_short(call) and (call.evidence.has_unused or (is_verb and not tools.has(call.tools[0], first))):
        return True
    return not (act_of(request) == "read" or _is_clear(call))


def _is_strange(call: PlannedCall, tools: Tools) -> bool:
    """Whether the tool explains of what is ordered only where and how much, and not what."""
    found = call.evidence.explained
    if found.has_thing:
        return False
    strange = {stem for word in call.evidence.strange for stem in stems(word) if not is_alike(stem, tools.about)}
    return bool(found.undone or found.unmeant or strange)


def is_short(call: PlannedCall) -> bool:
    """Whether the request is as short as a command to a device: in a longer one much may be left over."""
    return len(call.evidence.asked) <= SHORT_WORDS_MAX


def _names_another(call: PlannedCall, tools: Tools) -> bool:
    """Whether the request names something that only other tools know: of a vent, and not of how hot it is."""
    if not is_short(call):
        return False
    others = [name for name in tools.lexicon.counts if name not in call.tools]
    done = {word for name in others for word in stems(name)} & OPPOSITES.keys()
    is_done = any(word in done for word in call.evidence.unknown)
    return is_done or any(tools.has(name, word) for word in call.evidence.strange for name in others)


def is_half(request: str, call: PlannedCall, tools: Tools) -> bool:
    """Whether a request that orders two things would be answered with one call that changes something."""
    if tools.by_name[call.tools[0]].effect == "read" or any(" and " in text for _, _, text in call.evidence.narrowed):
        return False
    verbs = {next(iter(stems(name)), "") for name in tools.by_name}  # As far as a tool is called by what it does.

    def is_order(part: str) -> bool:
        return begins_with_verb(part) or next(iter(stems(part)), "") in verbs

    found = list(divisions(request))
    is_left = bool(found) and any(is_alike(word, verbs) for word in call.evidence.explained.undone)
    return is_left or any(is_order(one) and is_order(other) for one, other in found)


def _either(request: str, call: PlannedCall, tools: Tools) -> str:
    """The tool that does the opposite, where the request says nothing of which of the two is meant."""
    found = counterpart(tools.by_name[call.tools[0]], tools.by_name.values())
    if found is None or says(found[1], request):
        return ""
    is_start = "stop" in OPPOSITES.get(found[1], ())
    if is_start and next(iter(stems(request)), "") in stems(call.tools[0]):
        return ""  # "Record for an hour" is no order to stop.
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
