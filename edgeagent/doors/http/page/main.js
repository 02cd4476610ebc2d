// Start: who is here, and which view the address names. `#/` is the list, `#/s/ID` one session.

import { call, me } from "./api.js";
import { el, put, tell } from "./dom.js";
import { listView } from "./list.js";
import { sessionView } from "./session.js";
import { say } from "./words.js";

const main = document.getElementById("main");
const connection = document.getElementById("connection");
const leave = document.getElementById("leave");
let stop = () => {};
let isIn = false;

function away(is, error = null) {
  if (error?.status === 401) return start();
  tell(connection, is ? (error && error.status ? error.message : say.away) : "");
  connection.className = is ? "bad" : "";
  return undefined;
}

function go(session) {
  location.hash = `#/s/${encodeURIComponent(session)}`;
}

function route() {
  stop();
  const session = /^#\/s\/([^/]+)$/.exec(location.hash);
  stop = session ? sessionView(main, decodeURIComponent(session[1]), { away }) : listView(main, { go, away });
  main.focus({ preventScroll: true });
}

function logInView() {
  const key = el("input", { id: "key", type: "password", autocomplete: "current-password", required: true });
  const wrong = el("p", { class: "bad", role: "alert" });
  const form = el("form", {}, el("label", { for: "key" }, say.key), key, el("p", { class: "quiet" }, say.keyHint), wrong,
    el("div", { class: "buttons" }, el("button", { class: "main" }, say.logIn)));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      await call("POST", "/api/login", { key: key.value });
      key.value = "";
      start();
    } catch (error) {
      tell(wrong, error.code === "invalid_api_key" ? say.wrongKey : error.message);
      key.select();
    }
  });
  put(main, el("h1", {}, say.logIn), form);
  document.title = `${say.logIn} · edgeagent`;
  key.focus();
  return () => {};
}

async function start() {
  stop();
  stop = () => {};
  isIn = false;
  try {
    const who = await me();
    isIn = true;
    leave.hidden = !who.has_keys;
    away(false);
    route();
  } catch (error) {
    leave.hidden = true;
    if (error.status === 401) stop = logInView();
    else {
      away(true, error);
      setTimeout(start, 2_000);
    }
  }
}

document.documentElement.lang = say.lang;
tell(leave, say.logOut);
leave.addEventListener("click", () => call("POST", "/api/logout").then(start, (error) => away(true, error)));
window.addEventListener("hashchange", () => (isIn ? route() : start()));
start();
