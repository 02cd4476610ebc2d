// One session: its questions, its timeline as it goes on, its budget, and words for it.

import { call } from "./api.js";
import { drawBudget } from "./budget.js";
import { devicesView } from "./devices.js";
import { el, put, shown as plain, tell } from "./dom.js";
import { standing } from "./list.js";
import { Questions } from "./questions.js";
import { follow } from "./stream.js";
import { Timeline } from "./timeline.js";
import { say } from "./words.js";

const RECORDS_FIRST = 200; // So many of the newest are shown at once; the ones before them on demand.

export function sessionView(main, id, { away }) {
  const path = `/api/sessions/${encodeURIComponent(id)}`;
  let stop = () => {};
  let isLeft = false;

  async function begin(since = null) {
    try {
      const shown = await call("GET", path);
      if (isLeft) return;
      stop();
      stop = draw(main, id, path, shown, { away, since: since ?? Math.max(0, shown.records - RECORDS_FIRST), begin });
    } catch (error) {
      if (isLeft) return;
      away(true, error);
      if (error.status === 404) put(main, el("p", { class: "bad" }, say.gone), el("a", { href: "#/" }, say.back));
      else setTimeout(() => isLeft || begin(since), 2_000);
    }
  }

  begin();
  return () => {
    isLeft = true;
    stop();
  };
}

function draw(main, id, path, shown, { away, since, begin }) {
  const parts = frame(shown, since, begin);
  put(main, ...parts.all);
  const timeline = new Timeline(parts.list);
  const questions = new Questions(parts.questions, id);
  composer(parts, id, path);
  const leaveDevices = devicesView(parts.devices, shown.agent);

  function stands(state, atMs) {
    const now = standing({ state });
    put(parts.mark, el("span", { class: `mark ${now}` }, say[now]));
    parts.stop.hidden = now === "rests";
    questions.show(state.questions);
    drawBudget(parts.bars, shown.budget.turn, state, atMs);
    document.title = `${now === "asks" ? "(?) " : ""}${plain(shown.title || say.untitled)} · edgeagent`;
  }

  if (!shown.title) hint(parts.hint, shown.agent);
  stands(shown.state, Date.now());
  const leave = follow(id, since, {
    record(row) {
      timeline.record(row);
      put(parts.passing);
      if (row.seq + 1 >= shown.records) stands(row.state, row.event.at_ms - (row.event.skew_ms ?? 0));
      if (row.event.type === "UserSaid") parts.hint.remove();
      if (row.event.type === "UserSaid" && !shown.title) {
        shown.title = row.event.text.slice(0, 80);
        tell(parts.title, shown.title);
      }
    },
    passing(kind, row) {
      if (kind === "words") timeline.words(row.text, row.at);
      else if (kind === "progress") tell(parts.passing, `${say.reads}: ${row.done}/${row.total} ${say.tokens}`);
      else if (kind === "waiting") tell(parts.passing, row.place ? `${say.waits}: ${row.place}` : "");
      else tell(parts.passing, row.text);
    },
    connected(is) {
      if (!is) timeline.forgetWords();
      away(!is);
    },
    async refused() {
      try {
        await call("GET", path);
        return true;
      } catch (error) {
        away(true, error);
        return error.status !== 401 && error.status !== 404;
      }
    },
  });
  return () => {
    leave();
    leaveDevices();
    questions.stop();
  };
}

function frame(shown, since, begin) {
  const parts = {
    title: el("h1", {}, shown.title || say.untitled),
    mark: el("p", {}),
    hint: el("p", { class: "quiet" }),
    list: el("ol", { class: "timeline" }),
    passing: el("p", { class: "quiet", role: "status" }),
    questions: el("div", { class: "questions", "aria-live": "assertive" }),
    bars: el("div", { class: "bars" }),
    devices: el("details", { class: "devices", hidden: true }),
    form: el("form", { class: "say" }),
    stop: el("button", { type: "button", class: "no", hidden: true }, say.stop),
  };
  const earlier = el("button", { type: "button", onclick: () => begin(0) }, say.earlier);
  const about = el("details", {}, el("summary", {}, say.rules));
  about.addEventListener("toggle", () => rules(about, shown.agent), { once: true });
  parts.all = [
    el("p", {}, el("a", { href: "#/" }, say.back)), parts.title, parts.mark,
    el("details", { open: innerWidth > 700 }, el("summary", {}, say.budget), parts.bars), about,
    parts.devices,
    since > 0 ? earlier : null, parts.hint,
    el("div", { role: "log", "aria-label": say.timeline }, parts.list), parts.passing, parts.questions, parts.form,
  ];
  return parts;
}

function composer(parts, id, path) {
  const kept = `words-${id}`;
  const words = el("textarea", { id: "words", rows: "2", enterkeyhint: "send" });
  const wrong = el("p", { class: "bad", role: "alert" });
  words.value = sessionStorage.getItem(kept) ?? "";
  words.addEventListener("input", () => sessionStorage.setItem(kept, words.value));
  words.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    parts.form.requestSubmit();
  });
  parts.form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const text = words.value;
    if (!text.trim()) return;
    put(wrong);
    try {
      await call("POST", `${path}/words`, { text, wait: false });
      words.value = "";
      sessionStorage.removeItem(kept);
    } catch (error) {
      tell(wrong, error.message);
    }
  });
  parts.stop.addEventListener("click", () =>
    call("POST", `${path}/cancel`, {}).catch((error) => tell(wrong, error.message)));
  parts.form.append(el("label", { for: "words" }, say.say), words, wrong,
    el("div", { class: "buttons" }, el("button", { class: "main" }, say.send), parts.stop));
}

async function agentCalled(name) {
  return (await call("GET", "/api/agents")).agents.find((each) => each.name === name);
}

// What may be said, while nothing was.
async function hint(box, name) {
  const agent = await agentCalled(name).catch(() => null);
  if (agent) put(box, `${say.hint} ${agent.tools.map((tool) => tool.name).join(", ") || "–"}`);
}

async function rules(box, name) {
  const agent = await agentCalled(name);
  if (!agent) return;
  const items = (texts) => el("ul", {}, ...texts.map((each) => el("li", {}, each)));
  box.append(
    el("h2", {}, say.tools),
    el("ul", {}, ...agent.tools.map((tool) => el("li", {}, el("span", { class: "tool" }, tool.name), ` ${tool.description} `,
      el("span", { class: "quiet" }, `${say.effect}: ${tool.effect}${tool.confirm ? ` · ${say.confirmed}` : ""}`)))),
    agent.rules.length ? items(agent.rules) : el("p", { class: "quiet" }, say.noRules));
}
