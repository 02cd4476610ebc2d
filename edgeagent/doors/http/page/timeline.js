// Timeline of a session: each record as a person reads it. A call, its question and its result are one entry.

import { el, named, tell } from "./dom.js";
import { say, time } from "./words.js";

const ITEMS_MAX = 1_000; // A page on the wall stays open for weeks; what is above is in the trace.

// A text of several lines as such; every other result is the JSON that it is.
function lines(value) {
  try {
    const found = JSON.parse(value);
    return typeof found === "string" && found.includes("\n") ? found : value;
  } catch {
    return value; // It was cut.
  }
}

export class Timeline {
  constructor(list) {
    this.list = list;
    this.calls = new Map(); // By the id of the effect: where its result goes.
    this.live = null; // The words that are being written.
    this.refused = new Set();
    this.turn = 0;
    this.scrolls = false;
  }

  record(row) {
    const { event, effects, state } = row;
    if (state.turn !== this.turn) this.refused.clear();
    this.turn = state.turn;
    if (event.type === "ModelAnswered" || event.type === "ModelFailed") this.forgetWords();
    this.happened(event, state);
    for (const effect of effects) this.wanted(effect, event);
    const end = state.phase === "Idle" || state.phase === "Finished" ? state.outcome : null;
    if (end && end.kind !== "answered" && event.type !== "SessionResumed")
      this.add("refused", el("p", {}, `${say.outcome}: ${say[end.kind === "budget" ? "budgetOut" : end.kind] ?? end.kind}. ${end.detail}`));
  }

  happened(event, state) {
    const at = time(event.at_ms);
    switch (event.type) {
      case "UserSaid":
        return this.add("said", el("p", {}, event.text), el("p", { class: "quiet" }, `${event.by || say.you} · ${at}`));
      case "Heard":
        return this.note(`${say.heard} (${event.source}): ${event.text}`);
      case "TimerFired":
        return this.note(`${say.timer} · ${at}`);
      case "ToolReturned":
        return event.unshown
          ? this.result(event, say.unshown, event.unshown)
          : this.result(event, say.result, lines(event.value));
      case "ToolFailed":
        return this.result(event, `${say.failed}: ${event.reason.replaceAll("_", " ")}`, event.message, "bad");
      case "EffectLost":
        return event.tool ? this.result(event, say.lost, "", "bad") : null;
      case "UserDecided":
        return this.decided(event);
      case "ModelFailed":
        return this.note(`${say.modelFailed}: ${event.message}`);
      case "Cancelled":
        return this.note(`${say.stopped}: ${event.reason}`);
      case "SessionResumed":
        return this.note(`${say.resumed} · ${at}`);
      default:
        return null;
    }
  }

  wanted(effect, event) {
    switch (effect.type) {
      case "CallTool":
        return this.call(effect);
      case "AskUser":
        return this.asked(effect);
      case "Say":
        return this.add("answer", el("p", {}, effect.text), el("p", { class: "quiet" }, time(event.at_ms)));
      case "AskModel":
        return this.refusals(effect.refused ?? []);
      case "Finish":
        return this.note(`${say.ended}: ${effect.reason}`);
      default:
        return null;
    }
  }

  call(effect) {
    const asked = this.calls.get(effect.confirmation);
    const entry = asked ?? this.entry(effect);
    this.calls.delete(effect.confirmation);
    this.calls.set(effect.effect_id, entry);
    tell(entry.fate, say.runs);
  }

  asked(effect) {
    const entry = this.entry(effect);
    this.calls.set(effect.effect_id, entry);
    tell(entry.fate, say.asked);
  }

  entry(effect) {
    const fate = el("p", { class: "quiet" });
    const box = el("div", { class: "call" }, el("p", { class: "tool" }, effect.tool), named(JSON.parse(effect.arguments), true), fate);
    this.add("", box);
    return { box, fate };
  }

  decided(event) {
    const entry = this.calls.get(event.effect_id);
    const said = `${event.approved ? say.approved : say.notApproved}${event.text ? ` · ${event.text}` : ""}`;
    if (!entry) return this.note(said);
    entry.box.append(el("p", { class: event.approved ? "quiet" : "bad" }, said));
    tell(entry.fate, "");
    return null;
  }

  result(event, title, text, kind = "quiet") {
    const entry = this.calls.get(event.effect_id);
    const parts = [el("p", { class: kind }, title), text ? el("pre", { tabindex: "0", "aria-label": title }, text) : null];
    for (const note of event.notes ?? []) parts.push(el("p", { class: "quiet" }, note));
    if (!entry) return this.add("", ...parts);
    this.calls.delete(event.effect_id);
    entry.fate.remove();
    entry.box.append(...parts.filter((part) => part !== null));
    return null;
  }

  refusals(reasons) {
    for (const reason of reasons) {
      if (this.refused.has(reason)) continue;
      this.refused.add(reason);
      this.add("refused", el("p", {}, `${say.refused}: ${reason}`));
    }
  }

  words(text, at) {
    if (at === 0) this.forgetWords(); // The answer from its beginning: who comes in the middle of it is told all of it.
    if (!this.live) {
      this.live = this.add("answer", el("p", { class: "quiet" }));
      this.live.setAttribute("aria-live", "off"); // Read aloud once, when the answer is whole.
    }
    this.live.firstChild.append(el("span", {}, text));
  }

  forgetWords() {
    this.live?.remove();
    this.live = null;
  }

  note(text) {
    return this.add("note", el("p", {}, text));
  }

  add(kind, ...parts) {
    this.scroll();
    const item = el("li", { class: kind }, ...parts);
    this.list.insertBefore(item, kind === "answer" ? null : this.live);
    if (this.list.children.length > ITEMS_MAX) this.list.firstChild.remove();
    return item;
  }

  // Who reads the end is shown what comes; who reads above is left there. Measured once a frame.
  scroll() {
    if (this.scrolls) return;
    this.scrolls = true;
    const atEnd = innerHeight + scrollY >= document.documentElement.scrollHeight - 80;
    requestAnimationFrame(() => {
      this.scrolls = false;
      if (atEnd) scrollTo(0, document.documentElement.scrollHeight);
    });
  }
}
