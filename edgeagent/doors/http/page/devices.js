// Screens of an agent's devices: the last lines of each and what it prints, while they are looked at.

import { call } from "./api.js";
import { el, put, tell } from "./dom.js";
import { onWaking } from "./stream.js";
import { say } from "./words.js";

const AGAIN_MS = 2_000;
const LINES_MAX = 200;

export function devicesView(box, agent) {
  const path = `/api/agents/${encodeURIComponent(agent)}`;
  const screens = new Map(); // By the name of the device.
  let place = "";
  let source = null;
  let again = 0;
  let isLeft = false;

  function open() {
    clearTimeout(again);
    source?.close();
    source = null;
    if (isLeft || !box.open) return;
    source = new EventSource(`${path}/lines?since=${place}`);
    source.addEventListener("lines", (event) => {
      place = event.lastEventId;
      const row = JSON.parse(event.data);
      screens.get(row.device)?.show(row);
    });
    source.addEventListener("error", () => {
      if (source?.readyState === EventSource.CLOSED) again = setTimeout(open, AGAIN_MS);
    });
  }

  function begin() {
    call("GET", `${path}/devices`).then(({ devices }) => {
      if (isLeft || !devices.length) return;
      for (const row of devices) screens.set(row.device, new Screen(row.device));
      put(box, el("summary", {}, `${say.devices} (${devices.length})`), ...[...screens.values()].map((each) => each.box));
      box.hidden = false;
      box.open = innerWidth > 700;
      box.addEventListener("toggle", open);
      open();
    }, () => { again = setTimeout(begin, AGAIN_MS); });
  }

  begin();
  const asleep = onWaking(open);
  return () => {
    isLeft = true;
    asleep();
    open();
  };
}

class Screen {
  constructor(name) {
    this.stands = el("span", { class: "quiet" });
    this.begun = el("span", {});
    this.lines = el("pre", { tabindex: "0", role: "log", "aria-live": "off", "aria-label": `${say.screen} ${name}` }, this.begun);
    this.box = el("section", { class: "screen" }, el("h2", {}, el("span", { class: "tool" }, name), " ", this.stands), this.lines);
    this.last = -1;
  }

  show(row) {
    const atEnd = this.lines.scrollTop + this.lines.clientHeight >= this.lines.scrollHeight - 20;
    if (row.lines.length && row.lines[0].number <= this.last) this.lines.replaceChildren(this.begun); // The server began anew.
    if (row.missed) this.add(`… ${row.missed} ${say.missed} …`, true);
    for (const line of row.lines) this.add(line.text, line.is_note);
    this.last = row.lines.at(-1)?.number ?? this.last;
    tell(this.begun, row.begun);
    tell(this.stands, row.is_open ? say.isOpen : row.is_lost ? say.isLost : this.last < 0 ? say.notOpen : say.isClosed);
    if (atEnd) this.lines.scrollTop = this.lines.scrollHeight;
  }

  add(text, isNote) {
    this.lines.insertBefore(el("span", { class: isNote ? "aside" : null }, `${isNote ? `[${text}]` : text}\n`), this.begun);
    if (this.lines.children.length > LINES_MAX + 1) this.lines.firstChild.remove();
  }
}
