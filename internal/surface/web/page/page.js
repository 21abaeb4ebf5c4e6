"use strict";
(() => {
const $ = id => document.getElementById(id);
const policy = window.trustedTypes
  ? trustedTypes.createPolicy("fermata", { createHTML: s => s })
  : { createHTML: s => s };
// The server makes all HTML; what others wrote is escaped there.
const setHTML = (el, html) => { el.innerHTML = policy.createHTML(html); };
const element = html => { const t = document.createElement("template"); setHTML(t, html); return t.content.firstElementChild; };
const make = (tag, text, attrs = {}) => {
  const el = document.createElement(tag);
  if (text) el.textContent = text;
  for (const [k, v] of Object.entries(attrs)) el.setAttribute(k, v);
  return el;
};

let token = localStorage.getItem("token");
let session = { read_only: false, dir: "" };
let shown = "";                      // the conversation on the page
let have = { cursor: 0, open: {} };  // what the page has of it
let rows = new Map();                // its items by id: {el, n, next}
let state = null;
let pictures = [];
let known;
const begun = new Promise(done => { known = done; }); // the page knows its session
let editing = 0;                     // the waiting message that is in the composer

// ---- requests

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

// ---- the stream

let stream = null;      // AbortController of the one that is open
let failures = 0;
let retry = 0;
let heard = 0;

function connect() {
  clearTimeout(retry);
  if (stream) stream.abort();
  if (!token || document.hidden && failures === 0 && away) return;
  const mine = stream = new AbortController();
  run(mine).catch(e => {
    if (mine !== stream) return;
    stream = null;
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
  const r = await fetch("/api/v1/view", {
    method: "POST", headers: headers(), signal: mine.signal, credentials: "same-origin", cache: "no-store",
    body: JSON.stringify({ conversation: id || undefined, have: { cursor: have.cursor, open: have.open }, list: true }),
  });
  if (!r.ok) {
    let e = { code: "http", message: "the server answered " + r.status };
    try { e = (await r.json()).error; } catch { /* keep it */ }
    throw new Refused(r.status, e);
  }
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
}

function disconnected() {
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
    awayTimer = setTimeout(() => { away = true; if (stream) stream.abort(); stream = null; clearTimeout(retry); }, 60000);
    return;
  }
  away = false;
  if (!stream || Date.now() - heard > 15000) connect();
});

// ---- one conversation

function reset() {
  have = { cursor: 0, open: {} };
  rows = new Map();
  $("items").replaceChildren();
  $("earlier").hidden = true;
}

const scroll = $("scroll");
const atBottom = () => scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < 60;
function toBottom() { scroll.scrollTop = scroll.scrollHeight; $("below").hidden = true; }
scroll.addEventListener("scroll", () => { if (atBottom()) $("below").hidden = true; });

function update(u) {
  const stick = u.reset || atBottom();
  if (u.reset) {
    reset();
    $("earlier").hidden = !u.earlier;
  }
  for (const id of u.gone || []) {
    const row = rows.get(id);
    if (row) { row.el.remove(); rows.delete(id); }
    delete have.open[id];
  }
  for (const p of u.items || []) patch(p);
  have.cursor = u.cursor;
  if (u.state) showState(u.state);
  if (stick) toBottom();
  else if ((u.items || []).length) $("below").hidden = false;
}

function patch(p) {
  let row = rows.get(p.id);
  if (p.html !== undefined) {
    const was = row && row.el;
    const el = p.html ? element(p.html) : make("span", "", { hidden: "" });
    el.dataset.n = p.n;
    el.dataset.id = p.id;
    if (was) {
      keepOpen(was, el);
      was.replaceWith(el);
    } else if (!place(el, p.n)) return;
    row = { el, n: p.n };
    rows.set(p.id, row);
    if (!p.open && was && el.classList.contains("message")) speak(el.textContent.slice(0, 600));
  }
  if (!row) return;
  if (p.open) have.open[p.id] = have.open[p.id] || 0; else delete have.open[p.id];
  if (p.blocks) {
    const md = row.el.querySelector(".md");
    while (md.children.length > (p.from || 0)) md.lastElementChild.remove();
    for (const b of p.blocks) { const div = make("div"); setHTML(div, b); md.append(div); }
    have.open[p.id] = (p.from || 0) + p.blocks.length - 1;
  }
  if (p.output) grow(row, p);
}

// grow adds output by its offset: what the page has is not added again.
function grow(row, p) {
  const out = row.el.querySelector(".out");
  if (!out) return;
  if (row.tail) row.tail.remove();
  const stick = out.scrollHeight - out.scrollTop - out.clientHeight < 30;
  const known = row.next || 0;
  if (p.output.from > known) out.append("… " + (p.output.from - known) + " bytes left out\n");
  if (p.output.from >= known) out.append(p.output.text);
  row.next = Math.max(known, p.output.next);
  row.tail = make("span", p.output.tail);
  out.append(row.tail);
  while (out.childNodes.length > 400) out.firstChild.remove();
  if (stick) out.scrollTop = out.scrollHeight;
  have.open[p.id] = row.next;
}

// place puts a new item where its number says. One from before what is shown is left out.
function place(el, n) {
  const items = $("items");
  let at = items.lastElementChild;
  while (at && Number(at.dataset.n) > n) at = at.previousElementSibling;
  if (!at && items.firstElementChild && !$("earlier").hidden && Number(items.firstElementChild.dataset.n) > n && !placing) return false;
  if (at) at.after(el); else items.prepend(el);
  return true;
}
let placing = false;

function keepOpen(was, el) {
  const a = was.querySelectorAll("details"), b = el.querySelectorAll("details");
  for (let i = 0; i < Math.min(a.length, b.length); i++) b[i].open = a[i].open;
}

async function earlier() {
  const first = $("items").firstElementChild;
  const n = first ? Number(first.dataset.n) : 0;
  const got = await act("Show earlier items", () => call("GET", "/conversations/" + shown + "/items?before=" + n));
  if (!got || !got.items) return;
  const from = scroll.scrollHeight - scroll.scrollTop;
  placing = true;
  for (const p of got.items) if (!rows.has(p.id)) patch(p);
  placing = false;
  $("earlier").hidden = got.items.length === 0 || got.items[0].n === 0;
  scroll.scrollTop = scroll.scrollHeight - from;
}

const phases = { ready: "ready", working: "working", stopping: "stopping…", waiting: "waiting for your answer", held: "waiting for a limit" };
const number = n => n >= 1e6 ? (n / 1e6).toFixed(1) + " M" : n >= 1e3 ? (n / 1e3).toFixed(1) + " k" : String(n);
function clock(since) {
  const s = Math.max(0, Math.round((Date.now() - new Date(since)) / 1000));
  return s < 60 ? s + " s" : Math.floor(s / 60) + " min " + s % 60 + " s";
}

function setList(id, html) {
  const el = $(id);
  if (el.dataset.was === html) return;
  const focused = el.contains(document.activeElement);
  el.dataset.was = html;
  setHTML(el, html);
  if (focused) $("composer").focus();
}

function showState(s) {
  const before = state;
  state = s;
  const busy = s.phase !== "ready";
  $("title").textContent = s.title || "untitled";
  document.title = (s.phase === "waiting" ? "● " : "") + (s.title || "fermata");
  const facts = [s.model, s.cwd, s.sandbox, s.usage.total ? number(s.usage.total) + " tokens" : "", s.cost].filter(Boolean);
  $("facts").textContent = facts.join(" · ");
  $("facts").title = "input " + s.usage.input + ", output " + s.usage.output + " tokens";
  document.body.classList.toggle("running", s.phase === "working" || s.phase === "stopping");
  document.body.classList.toggle("attention", s.phase === "waiting" || s.phase === "held");
  for (const b of document.querySelectorAll(".busy")) b.hidden = !busy || session.read_only;
  $("send").textContent = editing ? "Save" : busy ? "Steer" : "Send";
  if (!denying()) setList("approvals", session.read_only ? "" : s.dock.approvals);
  setList("queue", s.dock.queue);
  setList("background", s.dock.background);
  $("hold").hidden = !s.hold;
  $("hold").firstElementChild.textContent = s.hold || "";
  showReturned(s.returned || []);
  for (const b of document.querySelectorAll("[data-act=undo]")) b.disabled = !s.changed || busy;
  tick();
  if (!before || before.phase !== s.phase) speak(phases[s.phase]);
}

function showReturned(list) {
  const key = JSON.stringify(list);
  const el = $("returned");
  if (el.dataset.was === key) return;
  el.dataset.was = key;
  el.replaceChildren(...list.map(text => {
    const li = make("li");
    li.append(make("span", "not delivered", { class: "mode" }), make("span", text, { class: "words" }));
    const use = make("button", "Edit and send", { type: "button" });
    use.addEventListener("click", () => { setComposer(text); li.remove(); });
    li.append(use);
    return li;
  }));
}

function tick() {
  if (!state) return;
  const live = state.phase !== "ready" && state.started;
  $("status").textContent = phases[state.phase] + (live ? " " + clock(state.started) : "");
  for (const el of document.querySelectorAll("footer[data-since]")) el.lastChild.textContent = "running · " + clock(el.dataset.since);
}
setInterval(() => { tick(); ages(); }, 1000);

// ---- the list

function showList(v) {
  const el = $("list");
  if (el.dataset.was !== v.html) {
    const focus = document.activeElement && document.activeElement.dataset.conversation;
    el.dataset.was = v.html;
    setHTML(el, v.html);
    if (focus) { const a = el.querySelector('[data-conversation="' + CSS.escape(focus) + '"]'); if (a) a.focus(); }
  }
  mark();
  ages();
  if (!shown) document.title = v.waiting ? "(" + v.waiting + ") fermata" : "fermata";
}

function mark() {
  for (const a of document.querySelectorAll("#list a")) {
    if (a.dataset.conversation === shown) a.setAttribute("aria-current", "page"); else a.removeAttribute("aria-current");
  }
}

function ages() {
  for (const t of document.querySelectorAll("#list time")) {
    const s = (Date.now() - new Date(t.dateTime)) / 1000;
    t.textContent = s < 60 ? "now" : s < 3600 ? Math.floor(s / 60) + " min" : s < 86400 ? Math.floor(s / 3600) + " h" : Math.floor(s / 86400) + " d";
  }
}

function gone(message) {
  toast(message);
  location.hash = "#/";
}

// ---- where we are

function route() {
  const m = /^#\/c\/([0-9a-f-]{36})$/.exec(location.hash);
  const id = m ? m[1] : "";
  if (id === shown && state) return;
  shown = id;
  state = null;
  editing = 0;
  reset();
  for (const name of ["approvals", "queue", "background"]) setList(name, "");
  showReturned([]);
  document.body.classList.toggle("one", !!id);
  document.body.classList.remove("running", "attention");
  $("tools").hidden = $("dock").hidden = !id;
  $("form").hidden = !id;
  $("empty").hidden = !!id;
  $("title").textContent = id ? "…" : "fermata";
  $("facts").textContent = $("status").textContent = "";
  document.title = "fermata";
  for (const el of document.querySelectorAll("#form button, #composer, [data-act=new], .tools button:not([data-act=diff])")) el.disabled = session.read_only;
  mark();
  connect();
  if (id && matchMedia("(pointer:fine)").matches) $("composer").focus();
}
addEventListener("hashchange", route);

// ---- the composer

const composer = $("composer");
function setComposer(text) { composer.value = text; fit(); composer.focus(); }
function fit() { composer.style.height = "auto"; composer.style.height = composer.scrollHeight + 2 + "px"; }
composer.addEventListener("input", fit);

async function send(mode) {
  const text = composer.value.trim();
  if (!text && !pictures.length || session.read_only) return;
  const kept = pictures;
  const content = text ? [{ type: "text", text }] : [];
  for (const url of kept) content.push({ type: "image", image_url: url });
  const input = editing;
  composer.value = ""; pictures = []; editing = 0; fit(); showPictures();
  const label = input ? "Save" : mode === "queue" ? "Queue" : mode === "replace" ? "Replace" : "Send";
  let done;
  if (input) done = await op(label, "edit_input", { input, content });
  else if (text.startsWith("!") && !kept.length) done = await op("Run", "user_shell", { command: text.slice(1).trim() });
  else done = await op(label, "user_turn", { content, when_busy: mode });
  if (!done) { // what was written is kept
    composer.value = composer.value ? text + "\n\n" + composer.value : text;
    pictures = kept.concat(pictures); fit(); showPictures();
  }
  toBottom();
}

$("form").addEventListener("submit", e => { e.preventDefault(); send("steer"); });
composer.addEventListener("keydown", e => {
  if (e.key !== "Enter" || e.isComposing || e.shiftKey) return;
  if (matchMedia("(pointer:coarse)").matches && !e.ctrlKey && !e.metaKey) return;
  e.preventDefault();
  send(e.altKey ? "queue" : e.ctrlKey || e.metaKey ? "replace" : "steer");
});

function addFiles(files) {
  for (const f of files) {
    if (!/^image\/(png|jpeg|gif|webp)$/.test(f.type)) { toast(f.name + ": not a picture that can be sent"); continue; }
    if (f.size > 5e6) { toast(f.name + ": larger than 5 MB"); continue; }
    const r = new FileReader();
    r.onload = () => { pictures.push(r.result); showPictures(); };
    r.readAsDataURL(f);
  }
}
function showPictures() {
  $("pictures").replaceChildren(...pictures.map((url, i) => {
    const b = make("button", "", { type: "button", "aria-label": "Remove image " + (i + 1) });
    b.append(make("img", "", { src: url, alt: "" }));
    b.addEventListener("click", () => { pictures.splice(i, 1); showPictures(); });
    return b;
  }));
}
composer.addEventListener("paste", e => { if (e.clipboardData.files.length) { e.preventDefault(); addFiles(e.clipboardData.files); } });
$("file").addEventListener("change", e => { addFiles(e.target.files); e.target.value = ""; });

// ---- dialogs

const dialog = $("dialog");
function open(title, build) {
  dialog.replaceChildren(make("h2", title));
  dialog.setAttribute("aria-label", title);
  build(dialog);
  dialog.showModal();
  const last = dialog.querySelector(".answers button");
  if (last && !dialog.querySelector("input")) last.focus();
}
function buttons(list) {
  const div = make("div", "", { class: "answers" });
  for (const [label, f, cls] of list) {
    const b = make("button", label, { type: "button", class: cls || "" });
    b.addEventListener("click", () => { if (!f || f() !== false) dialog.close(); });
    div.append(b);
  }
  return div;
}
function field(d, label, el) {
  const id = "f" + d.querySelectorAll("label").length;
  el.id = id;
  d.append(make("label", label, { for: id }), el);
  return el;
}
function choice(list) {
  const s = make("select");
  for (const [v, text] of list) s.append(make("option", text, { value: v }));
  return s;
}

async function newConversation() {
  await begun;
  open("New conversation", d => {
    const dir = field(d, "Directory", make("input", "", { value: session.dir, spellcheck: "false" }));
    const model = field(d, "Model", make("input", "", { placeholder: "as configured", spellcheck: "false" }));
    const sandbox = field(d, "Commands may", choice([["", "as configured"], ["read-only", "read"], ["workspace-write", "write in the directory"], ["danger-full-access", "do everything (no sandbox)"]]));
    const approval = field(d, "Asks", choice([["", "as configured"], ["untrusted", "for unknown commands"], ["on-request", "when needed"], ["on-failure", "if the sandbox made a command fail"], ["never", "never"]]));
    const prompt = field(d, "Task", make("textarea", "", { rows: "3" }));
    d.append(buttons([["Cancel"], ["Begin", () => {
      act("New conversation", key => call("POST", "/conversations", {
        cwd: dir.value, model: model.value, sandbox: sandbox.value, approvalPolicy: approval.value, prompt: prompt.value,
      }, key)).then(got => {
        if (!got) return;
        for (const r of got.remarks || []) toast(r);
        location.hash = "#/c/" + got.id;
      });
    }, "primary"]]));
    setTimeout(() => prompt.focus());
  });
}

async function showDiff(turn) {
  const got = await act("Diff", () => call("GET", "/conversations/" + shown + "/diff" + (turn ? "?turn=" + turn : "")));
  if (!got) return;
  if (dialog.open) dialog.close();
  open(got.turn && got.diff ? "What turn " + got.turn + " changed" : "No turn has changed files", d => {
    if (got.turns.length > 1) {
      const s = field(d, "Turn", choice(got.turns.map(t => [String(t), "turn " + t])));
      s.value = String(got.turn);
      s.addEventListener("change", () => showDiff(s.value));
    }
    const div = make("div");
    setHTML(div, got.html);
    d.append(div, buttons([["Close"]]));
  });
}

async function undo() {
  const got = await act("Undo", () => call("GET", "/conversations/" + shown + "/undo"));
  if (!got) return;
  open("Undo turn " + got.turn + "?", d => {
    d.append(make("p", got.files ? "This is what changes:" : "The files are already what they were."));
    for (const n of got.notes) d.append(make("p", n, { class: "why" }));
    const div = make("div");
    setHTML(div, got.html);
    d.append(div, buttons([["Cancel"], ["Undo turn " + got.turn, () => {
      act("Undo", key => call("POST", "/conversations/" + shown + "/undo", { turn: got.turn }, key)).then(ok => ok && toast("Turn " + got.turn + " was undone."));
    }, "danger"]]));
  });
}

function rename() {
  open("Rename", d => {
    const t = field(d, "Title", make("input", "", { value: state && state.title || "" }));
    d.append(buttons([["Cancel"], ["Rename", () => { op("Rename", "rename", { title: t.value }); }, "primary"]]));
  });
}

// ---- approvals

// Somebody is writing an answer: what is there is left alone.
const denying = () => {
  const f = $("approvals").querySelector("input, .field");
  return f && (f.value || f === document.activeElement) && $("approvals").contains(document.activeElement);
};
function deny(b) {
  const box = b.closest(".answers");
  const words = make("input", "", { "aria-label": "Why not", placeholder: "Say why (may be empty)" });
  const no = make("button", "Deny", { type: "button", class: "primary" });
  const back = make("button", "Back", { type: "button" });
  const end = () => { words.remove(); $("approvals").dataset.was = ""; showState(state); };
  no.addEventListener("click", () => {
    op("Deny", "approve", { call: b.dataset.call, decision: "denied", message: words.value });
    end();
  });
  back.addEventListener("click", end);
  words.addEventListener("keydown", e => { if (e.key === "Enter") no.click(); if (e.key === "Escape") { e.stopPropagation(); end(); } });
  box.replaceChildren(words, no, back);
  words.focus();
}

// ---- buttons and keys

// elicit answers what an MCP server asks.
function elicit(b) {
  const q = b.closest("section");
  const body = { call: q.dataset.call, number: Number(q.dataset.number), action: b.dataset.action };
  if (body.action === "accept") {
    body.content = {};
    for (const f of q.querySelectorAll(".field")) {
      if (f.value === "") continue;
      body.content[f.name] = f.dataset.type === "number" ? Number(f.value) : f.dataset.type === "boolean" ? f.value === "true" : f.value;
    }
  }
  op(b.textContent, "answer_elicitation", body).then(ok => { if (ok) { q.remove(); } });
}

const names = { approved: "Yes", approved_for_session: "Yes, for this session", abort: "Stop the turn" };
const acts = {
  new: newConversation,
  stop: () => op("Stop", "interrupt", {}),
  queue: () => send("queue"),
  replace: () => send("replace"),
  attach: () => $("file").click(),
  below: toBottom,
  earlier,
  diff: () => showDiff(),
  undo,
  rename,
  compact: () => op("Compact", "compact", {}),
  "try-now": () => op("Try now", "try_now", {}),
  fork: () => act("Fork", key => call("POST", "/conversations/" + shown + "/fork", { up_to: 0 }, key)).then(got => { if (got) location.hash = "#/c/" + got.id; }),
  archive: () => act("Archive", key => call("POST", "/conversations/" + shown + "/archive", {}, key)).then(ok => { if (ok) location.hash = "#/"; }),
  approve: b => b.dataset.decision === "denied" ? deny(b)
    : op(names[b.dataset.decision], "approve", { call: b.dataset.call, decision: b.dataset.decision }),
  elicit,
  kill: b => op("Kill", "kill_background", { id: Number(b.dataset.background) }),
  "delete-input": b => op("Delete", "delete_input", { input: Number(b.dataset.input) }),
  "edit-input": b => { editing = Number(b.dataset.input); setComposer(state.inputs[editing] || ""); $("send").textContent = "Save"; },
  whole: b => {
    const el = b.closest(".item");
    act("Show all", () => call("GET", "/conversations/" + shown + "/items/" + encodeURIComponent(b.dataset.item))).then(got => {
      const row = rows.get(el.dataset.id);
      if (!got || !row) return;
      const full = element(got.html);
      full.dataset.n = el.dataset.n; full.dataset.id = el.dataset.id;
      row.el.replaceWith(full);
      row.el = full;
    });
  },
  theme: () => {
    const next = { auto: "light", light: "dark", dark: "auto" }[localStorage.getItem("theme") || "auto"];
    localStorage.setItem("theme", next);
    theme();
  },
  notify: () => push(),
  logout: () => act("Log out", () => call("DELETE", "/session")).then(ok => ok && loggedOut()),
};

document.addEventListener("click", e => {
  const b = e.target.closest("[data-act]");
  for (const m of document.querySelectorAll(".menu[open]")) if (!m.contains(e.target) || b) m.open = false;
  if (b && !b.disabled) acts[b.dataset.act](b);
});

document.addEventListener("keydown", e => {
  if (dialog.open || e.ctrlKey || e.metaKey || e.altKey) return;
  if (e.key === "Escape") {
    if (editing) { editing = 0; setComposer(""); if (state) showState(state); return; }
    if (state && state.phase !== "ready" && !session.read_only) { e.preventDefault(); acts.stop(); }
    return;
  }
  if (/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)) return;
  const b = $("approvals").querySelector('[data-key="' + CSS.escape(e.key) + '"]');
  if (b) { e.preventDefault(); b.click(); return; }
  if (e.key === "/" && !$("form").hidden) { e.preventDefault(); composer.focus(); }
});

function theme() {
  const t = localStorage.getItem("theme") || "auto";
  if (t === "auto") delete document.documentElement.dataset.theme; else document.documentElement.dataset.theme = t;
  $("theme").textContent = "Theme: " + t;
}

// ---- notifications

async function push() {
  const reg = await navigator.serviceWorker.register("/sw.js");
  if (await Notification.requestPermission() !== "granted") return toast("The browser does not allow notifications here.");
  await navigator.serviceWorker.ready;
  const key = Uint8Array.from(atob(session.push.replace(/-/g, "+").replace(/_/g, "/")), c => c.charCodeAt(0));
  let sub;
  try {
    sub = await reg.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
  } catch (e) {
    return toast("The browser cannot be notified: " + e.message);
  }
  const ok = await act("Notify me", () => call("POST", "/push", sub.toJSON()));
  if (ok) toast("This browser will be notified.");
}
if (navigator.serviceWorker) navigator.serviceWorker.addEventListener("message", e => {
  if (/^[0-9a-f-]{36}$/.test(e.data.open || "")) location.hash = "#/c/" + e.data.open;
});

// ---- the session

function loggedOut() {
  token = null;
  localStorage.removeItem("token");
  if (stream) stream.abort();
  stream = null;
  clearTimeout(retry);
  $("app").hidden = true;
  $("banner").hidden = true;
  $("out").hidden = false;
}

async function begin() {
  theme();
  const link = new URLSearchParams(location.search).get("link");
  if (link) {
    history.replaceState(null, "", "/" + location.hash); // the link is used up: it must not stay in the address
    try {
      const got = await call("POST", "/login", { code: link, name: navigator.userAgent });
      token = got.token;
      session = got.session;
      localStorage.setItem("token", token);
    } catch (e) {
      if (!token) return loggedOut();
    }
  }
  if (!token) return loggedOut();
  known();
  route();
  if (!session.version) {
    try { session = await call("GET", "/session"); } catch { /* the stream says what is wrong */ }
  }
  $("notify").hidden = !(session.push && navigator.serviceWorker && window.PushManager && window.isSecureContext);
  if (session.read_only) document.querySelectorAll("#form button, #composer, [data-act=new], .tools button:not([data-act=diff])").forEach(el => { el.disabled = true; });
}
begin();
})();
