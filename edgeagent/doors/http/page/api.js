// Requests to the server: JSON there and back. A refusal is an error with the server's own words.

export class Refused extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

let token = "";

export async function call(method, path, body) {
  const reply = await sent(method, path, body);
  const said = await reply.json().catch(() => ({}));
  if (!reply.ok) throw new Refused(reply.status, said.error?.code ?? "", said.error?.message ?? reply.statusText);
  return said;
}

export async function text(path) {
  const reply = await sent("GET", path);
  if (!reply.ok) throw new Refused(reply.status, "", reply.statusText);
  return reply.text();
}

async function sent(method, path, body) {
  const headers = { "Content-Type": "application/json" };
  if (method !== "GET" && token) headers["X-CSRF-Token"] = token;
  try {
    return await fetch(path, { method, headers, body: body && JSON.stringify(body), cache: "no-store" });
  } catch (error) {
    throw new Refused(0, "away", String(error.message ?? error)); // The server is not reached.
  }
}

// Who is logged in; the token that goes with what is changed is kept here and nowhere else.
export async function me() {
  const found = await call("GET", "/api/me");
  token = found.token;
  return found;
}
