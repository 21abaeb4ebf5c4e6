class Refused extends Error {
  constructor(status, error) { super(error.message); this.status = status; this.code = error.code; this.hint = error.hint; }
}

// call makes a request. o.key names it, so that it is carried out once; o.shown is the hash of what it answers.
async function call(method, path, body, o = {}) {
  await begun;
  return answerOf(await signed(method, path, body, o));
}

async function answerOf(r) {
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

const newKey = () => crypto.randomUUID();

// here is what is on the page: an action keeps it from the moment of the press, so that whatever is on the page
// later, it goes to the conversation, the turn and the call that it was pressed for.
const here = () => ({ id: shown, title: $("title").textContent, turn: state ? state.turn : 0 });
const path = at => "/conversations/" + at.id;
const nowhere = { id: "", title: "", turn: 0 };

// act does what a button says. What could not be sent is said, and can be sent again: a key makes
// sure that it is carried out once.
async function act(what, at, send) {
  const key = newKey();
  const attempt = async () => {
    try {
      return await send(key) || true;
    } catch (e) {
      if (e instanceof Refused) {
        toast(what + ": " + e.message + (e.hint ? " (" + e.hint + ")" : ""), at);
        return null;
      }
      const where = at.title ? " to “" + at.title + "”" : "";
      return new Promise(done => toast("Not sent" + where + ": “" + what + "”. fermata cannot be reached.", at, { label: "Try again", again: () => done(attempt()), gone: () => done(null) }));
    }
  };
  return attempt();
}

const op = (what, at, kind, body, shown) => act(what, at, key => call("POST", path(at) + "/ops", { kind, body }, { key, shown }));

const toasts = new Set(); // of those on the page: {at, end}

function toast(text, at = nowhere, o = {}) {
  const el = make("div", "", { class: "toast", role: "alert" });
  el.append(make("span", text));
  const t = { at, end: f => { el.remove(); clearTimeout(timer); toasts.delete(t); if (f) f(); }, gone: o.gone };
  const close = make("button", o.label || "OK", { type: "button" });
  close.addEventListener("click", () => t.end(o.again));
  el.append(close);
  if (o.label) {
    const drop = make("button", "Dismiss", { type: "button" });
    drop.addEventListener("click", () => t.end(o.gone));
    el.append(drop);
  }
  const timer = o.label ? 0 : setTimeout(() => t.end(), 8000);
  toasts.add(t);
  $("toasts").append(el);
}

// closeOthers closes what belongs to a conversation that is not on the page any more.
function closeOthers() {
  for (const t of [...toasts]) if (t.at.id && t.at.id !== shown) t.end(t.gone);
  if (dialog.open && dialog.dataset.conversation && dialog.dataset.conversation !== shown) dialog.close();
}

const speak = text => { $("spoken").textContent = text; };
