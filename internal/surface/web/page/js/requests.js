class Refused extends Error {
  constructor(status, error) { super(error.message); this.status = status; this.code = error.code; this.hint = error.hint; }
}

const headers = () => ({ "Content-Type": "application/json", "Authorization": "Bearer " + token });

async function call(method, path, body, key) {
  if (path !== "/login") await begun;
  const h = headers();
  if (key) h["Idempotency-Key"] = key;
  const r = await fetch("/api/v1" + path, { method, headers: h, body: body === undefined ? undefined : JSON.stringify(body), credentials: "same-origin", cache: "no-store" });
  if (r.status === 204) return null;
  let data = null;
  try { data = await r.json(); } catch { /* no JSON: below */ }
  if (!r.ok) {
    const e = data && data.error || { code: "http", message: "the server answered " + r.status };
    if (e.code === "token") loggedOut();
    throw new Refused(r.status, e);
  }
  return data;
}

// act does what a button says. What could not be sent is said, and can be sent again: a key makes
// sure that it is carried out once.
async function act(what, send) {
  const key = crypto.randomUUID ? crypto.randomUUID() : String(Math.random()) + Date.now();
  const attempt = async () => {
    try {
      return await send(key) || true;
    } catch (e) {
      if (e instanceof Refused) {
        toast(what + ": " + e.message + (e.hint ? " (" + e.hint + ")" : ""));
        return null;
      }
      return new Promise(done => toast("Not sent: “" + what + "”. fermata cannot be reached.", "Try again", () => done(attempt()), () => done(null)));
    }
  };
  return attempt();
}

const op = (what, kind, body) => act(what, key => call("POST", "/conversations/" + shown + "/ops", { kind, body }, key));

function toast(text, label, again, gone) {
  const el = make("div", "", { class: "toast", role: "alert" });
  el.append(make("span", text));
  const close = make("button", label || "OK", { type: "button" });
  const end = f => { el.remove(); clearTimeout(timer); if (f) f(); };
  close.addEventListener("click", () => end(again));
  el.append(close);
  if (label) {
    const drop = make("button", "Dismiss", { type: "button" });
    drop.addEventListener("click", () => end(gone));
    el.append(drop);
  }
  const timer = label ? 0 : setTimeout(() => end(), 8000);
  $("toasts").append(el);
}

const speak = text => { $("spoken").textContent = text; };
