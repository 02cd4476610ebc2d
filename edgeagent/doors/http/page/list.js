// List of the sessions, a new one, and the machine they run on.

import { call } from "./api.js";
import { el, put, tell } from "./dom.js";
import { drawFigures } from "./figures.js";
import { say, time } from "./words.js";

const EVERY_MS = 3_000;

export function listView(main, { go, away }) {
  const list = el("ul", { class: "list" });
  const begin = el("form", { class: "begin" });
  const wrong = el("p", { class: "bad", role: "alert" });
  const plots = el("div", { class: "plots" });
  put(main, el("h1", {}, say.sessions), begin, wrong, list, el("h2", {}, say.machine), plots);
  document.title = `${say.sessions} · edgeagent`;
  let seen = "";

  async function look() {
    try {
      const { sessions } = await call("GET", "/api/sessions");
      away(false);
      const now = JSON.stringify(sessions.map(row));
      if (now === seen) return;
      seen = now;
      put(list, ...(sessions.length ? sessions.map(item) : [el("li", { class: "quiet" }, say.noSessions)]));
    } catch (error) {
      away(true, error);
    }
  }

  async function agents() {
    const found = (await call("GET", "/api/agents")).agents;
    const choice = el("select", { id: "agent" }, ...found.map((each) => el("option", { value: each.name }, each.name)));
    if (found.length > 1) begin.append(el("label", { for: "agent" }, say.agent), choice);
    begin.append(el("div", { class: "buttons" }, el("button", { class: "main" }, say.begin)));
    begin.addEventListener("submit", async (event) => {
      event.preventDefault();
      try {
        go((await call("POST", "/api/sessions", { agent: choice.value })).id);
      } catch (error) {
        tell(wrong, error.message);
      }
    });
  }

  agents().catch((error) => away(true, error));
  look();
  const looking = setInterval(() => document.visibilityState === "visible" && look(), EVERY_MS);
  const noFigures = drawFigures(plots);
  return () => {
    clearInterval(looking);
    noFigures();
  };
}

function row(session) {
  return [session.id, session.title, standing(session)];
}

export function standing({ state }) {
  if (!state) return "put";
  if (state.questions.length) return "asks";
  return state.phase.startsWith("Awaiting") ? "works" : "rests";
}

function item(session) {
  const stands = standing(session);
  return el("li", {}, el("a", { href: `#/s/${encodeURIComponent(session.id)}` },
    el("strong", {}, session.title || say.untitled), el("br"),
    el("span", { class: `mark ${stands}` }, say[stands]), " ",
    el("span", { class: "quiet" }, `${session.agent} · ${time(session.begun_ms)}`)));
}
