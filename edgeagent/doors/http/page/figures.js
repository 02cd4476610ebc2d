// Figures of the machine as small plots: temperature, memory, tokens a second. They come from /metrics.

import { text } from "./api.js";
import { el, put } from "./dom.js";
import { number, say } from "./words.js";

const EVERY_MS = 5_000;
const KEPT = 60;
const SVG = "http://www.w3.org/2000/svg";

export function drawFigures(box) {
  const series = { temperature: [], memory: [], speed: [] };
  let before = null;

  async function look() {
    if (document.visibilityState !== "visible") return;
    const now = await text("/metrics").then(read).catch(() => null);
    if (!now) return;
    keep(series.temperature, now.temperature);
    keep(series.memory, now.memory);
    const seconds = before ? now.seconds - before.seconds : 0;
    keep(series.speed, seconds > 0 ? (now.tokens - before.tokens) / seconds : 0);
    before = now;
    put(box,
      plot(say.temperature, series.temperature, (value) => `${number(value, 1)} °C`),
      plot(say.memory, series.memory, (value) => `${number(value / 1e6)} MB`),
      plot(say.speed, series.speed, (value) => number(value, 1)));
  }

  look();
  const looking = setInterval(look, EVERY_MS);
  return () => clearInterval(looking);
}

function keep(values, value) {
  if (value === null) return;
  values.push(value);
  if (values.length > KEPT) values.shift();
}

// The text that Prometheus reads: NAME{LABELS} VALUE, a line each.
function read(lines) {
  const found = { temperature: null, memory: null, tokens: 0, seconds: 0 };
  for (const line of lines.split("\n")) {
    const value = Number(line.slice(line.lastIndexOf(" ") + 1));
    if (line.startsWith("edgeagent_temperature_celsius{")) found.temperature = Math.max(found.temperature ?? value, value);
    else if (line.startsWith("edgeagent_resident_bytes ")) found.memory = value;
    else if (line.startsWith('edgeagent_tokens_total{kind="completion"}')) found.tokens = value;
    else if (line.startsWith('edgeagent_seconds_total{phase="model"}')) found.seconds = value;
  }
  return found;
}

function plot(title, values, written) {
  const last = values.length ? written(values.at(-1)) : say.noSensor;
  return el("figure", {}, el("figcaption", {}, `${title}: ${last}`), values.length > 1 ? line(values, `${title}: ${last}`) : null);
}

function line(values, label) {
  const low = Math.min(...values);
  const span = Math.max(...values) - low;
  const at = (n) => 100 - ((values.length - 1 - n) * 100) / (KEPT - 1); // The newest at the right edge.
  const points = values.map((value, n) => `${at(n)},${span ? 28 - (26 * (value - low)) / span : 15}`).join(" ");
  const svg = document.createElementNS(SVG, "svg");
  const drawn = document.createElementNS(SVG, "polyline");
  for (const [name, value] of [["viewBox", "0 0 100 30"], ["preserveAspectRatio", "none"], ["role", "img"], ["aria-label", label]])
    svg.setAttribute(name, value);
  drawn.setAttribute("points", points);
  svg.append(drawn);
  return svg;
}
