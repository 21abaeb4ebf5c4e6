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
  const at = here();
  const got = await act("Show earlier items", at, () => call("GET", path(at) + "/items?before=" + n));
  if (!got || !got.items || at.id !== shown) return;
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
  if (id === "approvals" && el.childElementCount) swapped = Date.now();
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
  guardAnswers();
  setList("queue", s.dock.queue);
  setList("returned", s.dock.returned);
  setList("background", s.dock.background);
  $("hold").hidden = !s.hold;
  $("hold").firstElementChild.textContent = s.hold || "";
  for (const b of document.querySelectorAll("[data-act=undo]")) b.disabled = !s.changed || busy;
  tick();
  if (!before || before.phase !== s.phase) speak(phases[s.phase]);
}

function tick() {
  if (!state) return;
  if (document.body.classList.contains("offline")) { $("status").textContent = "not connected"; return; } // nobody knows how long it runs
  const live = state.phase !== "ready" && state.started;
  $("status").textContent = phases[state.phase] + (live ? " " + clock(state.started) : "");
  for (const el of document.querySelectorAll("footer[data-since]")) el.lastChild.textContent = "running · " + clock(el.dataset.since);
}
setInterval(() => { tick(); ages(); }, 1000);
