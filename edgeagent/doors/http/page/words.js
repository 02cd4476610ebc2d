// Words of the page, in English and German: `say.NAME`, chosen by what the browser prefers.

const en = {
  lang: "en",
  key: "Key of this server", logIn: "Log in", logOut: "Log out", keyHint: "It stands in the server's file of keys, behind your name.",
  sessions: "Sessions", noSessions: "No session yet. Begin one and say something.", begin: "New session", agent: "Agent",
  untitled: "(nothing said yet)", asks: "asks you", works: "works", rests: "rests", put: "at rest",
  machine: "This machine", temperature: "Temperature", memory: "Memory of this server", speed: "Tokens a second", noSensor: "no sensor",
  rules: "Tools and rules", noRules: "No rules.", tools: "Tools", effect: "effect", confirmed: "asks before it runs",
  budget: "Budget of this turn", steps: "Steps", tool_calls: "Calls", prompt_tokens: "Prompt tokens",
  completion_tokens: "Written tokens", seconds: "Seconds", refusals: "Refusals in a row", of: "of",
  timeline: "Timeline", earlier: "Show earlier records", you: "You", heard: "Heard", timer: "A timer is due",
  question: "May this run?", because: "Why you are asked", approve: "Approve", refuse: "Refuse", expires: "Expires in",
  seconds_: "s", approved: "Approved", notApproved: "Not approved", asked: "Asked a person", runs: "runs …",
  result: "Result", unshown: "Done; its result cannot be shown", failed: "Failed", refused: "Refused", lost: "Interrupted; it may have happened or not",
  reads: "Reads the prompt", waits: "Waits for the model; before it", stopped: "Stopped", resumed: "Taken up again",
  ended: "Ended", outcome: "Outcome", say: "Your words", send: "Send", stop: "Stop", back: "All sessions",
  away: "Connection lost; trying again …", gone: "This session is not there (any more).",
  tokens: "tokens", modelFailed: "The model failed",
  wrongKey: "This is no key of this server.", hint: "Say what is to be done. Tools of this agent:",
  devices: "Devices", screen: "Screen of", isOpen: "open", isClosed: "closed", isLost: "lost: the next call looks for it", missed: "lines are not kept any more",
  notOpen: "not open yet: the first call opens it",
  budgetOut: "budget", cancelled: "cancelled", halted: "halted", unknown: "unknown",
};

const de = {
  lang: "de",
  key: "Schlüssel dieses Servers", logIn: "Anmelden", logOut: "Abmelden", keyHint: "Er steht in der Schlüsseldatei des Servers hinter Ihrem Namen.",
  sessions: "Sitzungen", noSessions: "Noch keine Sitzung. Beginnen Sie eine und sagen Sie etwas.", begin: "Neue Sitzung", agent: "Agent",
  untitled: "(noch nichts gesagt)", asks: "fragt Sie", works: "arbeitet", rests: "ruht", put: "ruht",
  machine: "Dieses Gerät", temperature: "Temperatur", memory: "Speicher dieses Servers", speed: "Token je Sekunde", noSensor: "kein Sensor",
  rules: "Werkzeuge und Regeln", noRules: "Keine Regeln.", tools: "Werkzeuge", effect: "Wirkung", confirmed: "fragt vor dem Ausführen",
  budget: "Budget dieser Runde", steps: "Schritte", tool_calls: "Aufrufe", prompt_tokens: "Gelesene Token",
  completion_tokens: "Geschriebene Token", seconds: "Sekunden", refusals: "Ablehnungen in Folge", of: "von",
  timeline: "Verlauf", earlier: "Frühere Einträge zeigen", you: "Sie", heard: "Gehört", timer: "Eine Zeitschaltung ist fällig",
  question: "Darf das ausgeführt werden?", because: "Warum Sie gefragt werden", approve: "Erlauben", refuse: "Ablehnen", expires: "Läuft ab in",
  seconds_: "s", approved: "Erlaubt", notApproved: "Nicht erlaubt", asked: "Ein Mensch wird gefragt", runs: "läuft …",
  result: "Ergebnis", unshown: "Getan; das Ergebnis lässt sich nicht zeigen", failed: "Fehlgeschlagen", refused: "Abgelehnt", lost: "Unterbrochen; es kann geschehen sein oder nicht",
  reads: "Liest die Eingabe", waits: "Wartet auf das Modell; davor", stopped: "Angehalten", resumed: "Wieder aufgenommen",
  ended: "Beendet", outcome: "Ausgang", say: "Ihre Worte", send: "Senden", stop: "Anhalten", back: "Alle Sitzungen",
  away: "Verbindung verloren; neuer Versuch …", gone: "Diese Sitzung gibt es nicht (mehr).",
  tokens: "Token", modelFailed: "Das Modell hat versagt",
  wrongKey: "Das ist kein Schlüssel dieses Servers.", hint: "Sagen Sie, was zu tun ist. Werkzeuge dieses Agenten:",
  devices: "Geräte", screen: "Bildschirm von", isOpen: "offen", isClosed: "geschlossen", isLost: "verloren: der nächste Aufruf sucht es", missed: "Zeilen sind nicht mehr da",
  notOpen: "noch nicht offen: der erste Aufruf öffnet es",
  budgetOut: "Budget", cancelled: "abgebrochen", halted: "angehalten", unknown: "unbekannt",
};

export const say = (navigator.language || "en").toLowerCase().startsWith("de") ? de : en;

const region = (navigator.language || "").toLowerCase().startsWith(say.lang) ? navigator.language : say.lang;
const times = new Intl.DateTimeFormat(region, { dateStyle: "short", timeStyle: "medium" });

export function time(ms) {
  return times.format(ms);
}

export function number(value, digits = 0) {
  return value.toLocaleString(region, { maximumFractionDigits: digits });
}
