let stream = null;      // AbortController of the one that is open
let failures = 0;
let retry = 0;
let heard = 0;

function connect() {
  clearTimeout(retry);
  if (!stream || Date.now() - heard > 15000) trusted = false; // who listens now?
  if (stream) stream.abort();
  if (!me || !me.id || document.hidden && failures === 0 && away) return;
  const mine = stream = new AbortController();
  run(mine).catch(e => {
    if (mine !== stream) return;
    stream = null;
    trusted = false;
    if (e instanceof Foreign) return;
    if (e instanceof Refused) {
      if (e.code === "token") return loggedOut();
      if (e.code === "not_found") return gone(e.message);
    }
    disconnected();
  });
}

async function run(mine) {
  heard = Date.now();
  const id = shown;
  const r = await signed("POST", "/view", { conversation: id || undefined, have: { cursor: have.cursor, open: have.open }, list: true }, { signal: mine.signal });
  if (!r.ok) await answerOf(r);
  const reader = r.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) throw new Error("the stream ended");
    if (mine !== stream || id !== shown) return;
    heard = Date.now();
    connected();
    rest += value;
    let at;
    while ((at = rest.indexOf("\n\n")) >= 0) {
      receive(rest.slice(0, at));
      rest = rest.slice(at + 2);
    }
  }
}

function receive(block) {
  let event = "", data = "";
  for (const line of block.split("\n")) {
    if (line.startsWith("event: ")) event = line.slice(7);
    if (line.startsWith("data: ")) data += line.slice(6);
  }
  if (!data) return;
  const v = JSON.parse(data);
  if (event === "view") update(v);
  if (event === "list") showList(v);
  if (event === "problem" && v.error.code === "not_found") gone(v.error.message);
  else if (event === "problem") throw new Error(v.error.message);
}

function connected() {
  if (failures === 0 && $("banner").hidden) return;
  failures = 0;
  $("banner").hidden = true;
  document.body.classList.remove("offline");
  tick();
}

function disconnected() {
  trusted = false;
  failures++;
  const wait = Math.min(5000, 200 * 2 ** Math.min(failures, 5));
  if (failures > 1 || !navigator.onLine) {
    document.body.classList.add("offline");
    $("banner").textContent = navigator.onLine ? "Not connected: trying to reach fermata…" : "Offline: waiting for the network…";
    $("banner").hidden = false;
  }
  clearTimeout(retry);
  retry = setTimeout(connect, wait);
}

// A page that sleeps is cut off without a word. It looks again when it wakes, and when nothing is heard.
let away = false, awayTimer = 0;
setInterval(() => {
  if (stream && Date.now() - heard > 25000) { stream.abort(); stream = null; disconnected(); }
}, 5000);
addEventListener("online", () => connect());
addEventListener("offline", () => { if (stream) stream.abort(); stream = null; disconnected(); });
addEventListener("pageshow", e => { if (e.persisted) connect(); });
document.addEventListener("visibilitychange", () => {
  clearTimeout(awayTimer);
  if (document.hidden) {
    // A browser gives a host six connections: those of pages that nobody looks at are returned.
    awayTimer = setTimeout(() => { away = true; trusted = false; if (stream) stream.abort(); stream = null; clearTimeout(retry); }, 60000);
    return;
  }
  away = false;
  if (!stream || Date.now() - heard > 15000) connect();
});
