// Questions that are open: exactly what would run, and a yes or no that is tied to it by its digest.

import { call } from "./api.js";
import { el, named, put, tell } from "./dom.js";
import { say } from "./words.js";

export class Questions {
  constructor(box, session) {
    this.box = box;
    this.session = session;
    this.open = new Map();
    this.ticking = setInterval(() => this.tick(), 1_000);
  }

  show(questions) {
    const ids = new Set(questions.map((question) => question.id));
    for (const [id, drawn] of this.open) {
      if (ids.has(id)) continue;
      drawn.box.remove();
      this.open.delete(id);
    }
    for (const question of questions) if (!this.open.has(question.id)) this.draw(question);
  }

  draw(question) {
    const head = `question-${question.id}`;
    const wrong = el("p", { class: "bad", role: "alert" });
    const left = el("p", { class: "quiet" });
    const yes = el("button", { type: "button", class: "main" }, say.approve);
    const no = el("button", { type: "button", class: "no" }, say.refuse);
    const box = el("section", { class: "question", "aria-labelledby": head },
      el("h3", { id: head }, say.question), el("p", { class: "tool" }, question.tool), named(question.arguments),
      el("p", {}, `${say.because}: ${question.because}`), left, wrong, el("div", { class: "buttons" }, yes, no));
    const drawn = { box, left, expires: question.expires_ms };
    const answer = async (approved) => {
      yes.disabled = no.disabled = true;
      put(wrong);
      try {
        const path = `/api/sessions/${encodeURIComponent(this.session)}/questions/${question.id}`;
        await call("POST", path, { approved, digest: question.digest });
      } catch (error) {
        tell(wrong, error.message);
        yes.disabled = no.disabled = false;
      }
    };
    yes.addEventListener("click", () => answer(true));
    no.addEventListener("click", () => answer(false));
    this.open.set(question.id, drawn);
    this.box.append(box);
    this.tick();
    box.scrollIntoView({ block: "center" });
  }

  tick() {
    for (const { left, expires } of this.open.values()) {
      const seconds = Math.max(0, Math.round((expires - Date.now()) / 1_000));
      tell(left, `${say.expires} ${seconds} ${say.seconds_}`);
    }
  }

  stop() {
    clearInterval(this.ticking);
  }
}
