// The list is live as long as nothing is looked for. What is looked for is asked for again when the list changes.

let live = { html: "", next: "" }; // the latest live list
let next = "";                     // where what is shown continues
let asked = 0;                     // counts what was looked for: an answer that is late is dropped

const lookedFor = () => ({ q: $("search").value.trim(), state: $("state").value, cwd: $("project").value });
const isFiltered = () => Object.values(lookedFor()).some(Boolean);

function showList(v) {
  live = v;
  if (isFiltered()) look(); else showRows(v.html, v.next || "");
  const cwds = [...new Set([...element("<div>" + v.html + "</div>").querySelectorAll("[data-cwd]")].map(a => a.dataset.cwd))];
  const project = $("project"), was = project.value;
  if (was && !cwds.includes(was)) cwds.push(was);
  const key = JSON.stringify(cwds);
  if (project.dataset.was !== key) {
    project.dataset.was = key;
    project.replaceChildren(make("option", "All directories", { value: "" }), ...cwds.sort().map(c => make("option", c, { value: c })));
    project.value = was;
  }
  const others = v.waiting - (shown && state && state.phase === "waiting" ? 1 : 0); // besides the one on the page
  $("inbox").hidden = others < 1;
  $("inbox").textContent = others + " waiting";
  if (!shown) document.title = v.waiting ? "(" + v.waiting + ") fermata" : "fermata";
}

function showRows(html, more) {
  const el = $("list");
  if (el.dataset.was !== html) {
    const focus = document.activeElement && document.activeElement.dataset.conversation;
    el.dataset.was = html;
    setHTML(el, html);
    if (focus) { const a = el.querySelector('[data-conversation="' + CSS.escape(focus) + '"]'); if (a) a.focus(); }
  }
  if (!$("older").childElementCount || !more) next = more;
  $("more").hidden = !next;
  $("none").hidden = !!html || !isFiltered();
  mark();
  ages();
}

function listPath(cursor) {
  const { q, state, cwd } = lookedFor();
  const p = new URLSearchParams({ html: "true", limit: "60" });
  if (q) p.set("q", q);
  if (state === "archived") p.set("archived", "true"); else if (state) p.set("state", state);
  if (cwd) p.set("cwd", cwd);
  if (cursor) p.set("cursor", cursor);
  return "/conversations?" + p;
}

// look asks for what is looked for.
async function look() {
  const mine = ++asked;
  const got = await call("GET", listPath("")).catch(e => { if (e instanceof Refused) toast(e.message); return null; }); // else the banner says that it is not there
  if (!got || mine !== asked || !isFiltered()) return;
  $("older").replaceChildren();
  showRows(got.html || "", got.next || "");
}

async function more() {
  const mine = asked;
  const got = await act("Show more", nowhere, () => call("GET", listPath(next)));
  if (!got || mine !== asked) return;
  const seen = new Set([...document.querySelectorAll("#lists [data-conversation]")].map(a => a.dataset.conversation));
  for (const li of [...element("<ul>" + (got.html || "") + "</ul>").children]) if (!seen.has(li.firstElementChild.dataset.conversation)) $("older").append(li);
  next = got.next || "";
  $("more").hidden = !next;
  mark();
  ages();
}

let lookTimer = 0;
function refilter() {
  asked++;
  clearTimeout(lookTimer);
  $("older").replaceChildren();
  if (isFiltered()) lookTimer = setTimeout(look, 250); else showRows(live.html, live.next || "");
}
for (const id of ["search", "state", "project"]) $(id).addEventListener("input", refilter);

function mark() {
  for (const a of document.querySelectorAll("#lists a")) {
    if (a.dataset.conversation === shown) a.setAttribute("aria-current", "page"); else a.removeAttribute("aria-current");
  }
}

function ages() {
  for (const t of document.querySelectorAll("#lists time")) {
    const s = (Date.now() - new Date(t.dateTime)) / 1000;
    t.textContent = s < 60 ? "now" : s < 3600 ? Math.floor(s / 60) + " min" : s < 86400 ? Math.floor(s / 3600) + " h" : Math.floor(s / 86400) + " d";
  }
}

function gone(message) {
  toast(message);
  location.hash = "#/";
}
