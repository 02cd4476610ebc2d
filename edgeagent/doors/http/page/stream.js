// Stream of one session: each record once, in order, over reloads, restarts of the server and sleep.
// Every record has a number; whoever connects again asks for what is behind the last one it has had.

const AGAIN_MS = 2_000;
const ASLEEP_MS = 20_000; // A beat that comes so late: this machine has slept, and the connection may be dead.
const BEAT_MS = 5_000;

export function follow(session, since, on) {
  let last = since - 1;
  let source = null;
  let again = 0;

  function open() {
    clearTimeout(again);
    source?.close();
    source = new EventSource(`/api/sessions/${encodeURIComponent(session)}/events?since=${last + 1}`);
    source.addEventListener("open", () => on.connected(true));
    source.addEventListener("error", lost);
    source.addEventListener("record", (event) => {
      const number = Number(event.lastEventId);
      if (number <= last) return;
      last = number;
      on.record(JSON.parse(event.data));
    });
    for (const kind of ["words", "progress", "waiting", "activity"])
      source.addEventListener(kind, (event) => on.passing(kind, JSON.parse(event.data)));
  }

  function lost() {
    on.connected(false);
    // The browser tries again by itself, unless the server has replied something else than a stream.
    if (source.readyState !== EventSource.CLOSED) return;
    clearTimeout(again);
    again = setTimeout(() => on.refused().then((goesOn) => goesOn && open()), AGAIN_MS);
  }

  const asleep = onWaking(open);
  open();
  return () => {
    clearTimeout(again);
    asleep();
    source.close();
  };
}

// Call this when the machine has slept, or its network was away; returns what ends that.
export function onWaking(open) {
  let beat = Date.now();

  function awake() {
    const late = Date.now() - beat > ASLEEP_MS;
    beat = Date.now();
    if (late && document.visibilityState === "visible") open();
  }

  const beating = setInterval(awake, BEAT_MS);
  document.addEventListener("visibilitychange", awake);
  window.addEventListener("online", open);
  return () => {
    clearInterval(beating);
    document.removeEventListener("visibilitychange", awake);
    window.removeEventListener("online", open);
  };
}
