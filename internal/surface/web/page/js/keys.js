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
