"""Is a request one to read on in a result that was cut? It is if all of its words are, in any of our languages.

Models that do not decide by themselves cannot be asked: nothing of a result is in what they judge a request by.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from edgeagent.core.agent import RESULT_MORE
from edgeagent.request.evidence import Evidence
from edgeagent.request.planned import Plan, PlannedCall

_WORD = re.compile(r"[^\W_]+")

ON = frozenset(
    _WORD.findall(
        """on more rest remaining remainder further continue next
        weiter weitere weiteren weiterlesen fortfahren mehr restliche restlichen nächste nächsten
        sigue seguir continúa continua continuar más mas resto restante siguiente siguientes
        continuer suite reste suivant suivante suivants davantage plus
        continuare ancora altro prossima prossimo seguito avanti"""
    )
)
"""Of these words one must be said."""

BESIDE = frozenset(
    _WORD.findall(
        """read show me give tell list the of it its that this please go and what s comes is are there a bit some page
        part result results text lines output let see keep reading up i want to can you could from
        lies lese lest zeig zeige mir gib nenn den die das der davon bitte was kommt noch geh mach dem ein bisschen
        etwas seite teil ergebnis zeilen ich will möchte kannst du sehen
        lee leer leyendo dime muestra muéstrame enseña enséñame el la lo los las de del que qué hay por favor y dame
        viene página parte resultado texto líneas quiero ver puedes
        lis lire lecture montre moi le les il quoi d autre donne te vous plaît en partie résultat texte lignes qu est ce
        qui vient je veux voir peux tu
        leggi leggere mostra mostrami dammi dimmi i gli per piacere favore che cosa c è ci sono vai pagina risultato
        testo righe voglio vedere puoi e"""
    )
)
"""These may stand beside it; any other word asks for something else."""

_NEITHER = tuple((RESULT_MORE.name, argument, "false") for argument in ("result", "at"))
READ_ON = Plan((PlannedCall((RESULT_MORE.name,), Evidence(_NEITHER)),))
"""To read on where the last result ended."""


def declared(offered: Iterable[str]) -> tuple[str, ...]:
    """The tools that the agent was given, of those that may be called now: what else a request can be about."""
    return tuple(name for name in offered if name != RESULT_MORE.name)


def reading_on(request: str, offered: Iterable[str]) -> Plan | None:
    """The plan to read on, if that can be done and is all that is asked for."""
    if RESULT_MORE.name not in offered:
        return None
    words = {word.casefold() for word in _WORD.findall(request)}
    return READ_ON if words & ON and words <= ON | BESIDE else None
