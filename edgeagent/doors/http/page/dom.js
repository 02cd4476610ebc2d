// Elements: what is drawn is made here. Texts become text nodes and nothing else; what would hide or turn round what
// stands beside it is escaped, as it is on a terminal.

const HIDING =
  /[\p{C}\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0\u2800\ufe00-\ufe0e\u{e0100}-\u{e01ef}]/gu;

export function shown(text) {
  return String(text).replace(HIDING, (char) =>
    char === "\n" || char === "\t" ? char : `\\u{${char.codePointAt(0).toString(16)}}`);
}

export function el(name, given = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(given)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, shown(value));
  }
  for (const child of children) {
    if (child === null || child === undefined) continue;
    made.append(child instanceof Node ? child : shown(child));
  }
  return made;
}

// Instead of textContent, which would not escape.
export function tell(node, text) {
  node.textContent = shown(text);
}

export function put(into, ...children) {
  into.replaceChildren(...children.filter((child) => child !== null));
}

const LONG_CHARS = 300;

// A value of a call's arguments as it will be given: the JSON of it. `isCut`: long ones scroll; never where a person
// decides about them.
export function named(values, isCut = false) {
  const rows = Object.entries(values).flatMap(([name, value]) => {
    const text = JSON.stringify(value);
    const long = { class: "long", tabindex: "0", role: "group", "aria-label": name };
    return [el("dt", {}, name), el("dd", {}, isCut && text.length > LONG_CHARS ? el("div", long, text) : text)];
  });
  return rows.length ? el("dl", {}, ...rows) : null;
}
