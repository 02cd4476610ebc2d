// Budget of a turn: what of each limit is spent, as bars.

import { el, put } from "./dom.js";
import { number, say } from "./words.js";

const LIMITS = ["steps", "tool_calls", "completion_tokens", "prompt_tokens", "seconds", "refusals"];

export function drawBudget(box, budget, state, atMs) {
  const spent = { ...state.spent, seconds: seconds(state, atMs) };
  put(box, ...LIMITS.filter((name) => budget?.[name] !== null && budget?.[name] !== undefined)
    .map((name) => bar(name, spent[name] ?? 0, budget[name])));
}

function bar(name, used, limit) {
  const text = `${number(used, 1)} ${say.of} ${number(limit)}`;
  const given = { max: limit || 1, value: Math.min(used, limit || 1), "aria-label": `${say[name]}: ${text}` };
  return el("div", {}, el("span", {}, `${say[name]} `), el("span", { class: "quiet" }, text), el("progress", given));
}

function seconds(state, atMs) {
  return state.turn && state.spent.started_ms ? Math.max(0, (atMs - state.spent.started_ms) / 1_000) : 0;
}
