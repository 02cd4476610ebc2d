// A host with one lamp: node lamp.mjs "Switch the lamp on." edgeagent host AGENT.py --model smollm2

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const [words, command, ...more] = process.argv.slice(2);
const agent = spawn(command, more, { stdio: ["pipe", "pipe", "inherit"] });
const waiting = new Map();
let next = 1;

const send = (message) => agent.stdin.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");
const ask = (method, params) =>
  new Promise((resolve, reject) => {
    waiting.set(next, { resolve, reject });
    send({ id: next++, method, params });
  });

const lamp = {
  name: "set_lamp",
  description: "Switch a lamp.",
  idempotent: true,
  inputSchema: { type: "object", properties: { on: { type: "boolean" } }, required: ["on"] },
};

createInterface({ input: agent.stdout }).on("line", (line) => {
  const { id, method, params, result, error } = JSON.parse(line);
  if (method === "_edgeagent/call_tool") {
    console.log("lamp:", params.arguments.on ? "on" : "off");
    send({ id, result: "switched" });
  } else if (method === "session/update" && params.update.sessionUpdate === "agent_message_chunk") {
    console.log(params.update.content.text);
  } else if (method && id !== undefined) {
    send({ id, error: { code: -32601, message: "this host knows no such method" } });
  } else if (waiting.has(id)) {
    error ? waiting.get(id).reject(new Error(error.message)) : waiting.get(id).resolve(result);
    waiting.delete(id);
  }
});

await ask("initialize", { protocolVersion: 1, clientCapabilities: {} });
await ask("_edgeagent/declare_tools", { tools: [lamp] });
const { sessionId } = await ask("session/new", { cwd: "/", mcpServers: [] });
await ask("session/prompt", { sessionId, prompt: [{ type: "text", text: words }] });
agent.stdin.end();
