// elicit answers what an MCP server asks.
function elicit(b, at) {
  const q = b.closest("section");
  const body = { call: q.dataset.call, number: Number(q.dataset.number), action: b.dataset.action };
  if (body.action === "accept") {
    body.content = {};
    for (const f of q.querySelectorAll(".field")) {
      if (f.value === "") continue;
      body.content[f.name] = f.dataset.type === "number" ? Number(f.value) : f.dataset.type === "boolean" ? f.value === "true" : f.value;
    }
  }
  op(b.textContent, at, "answer_elicitation", body, q.dataset.shown).then(ok => { if (ok) { q.remove(); } });
}

const names = { approved: "Yes", approved_for_session: "Yes, for this session", abort: "Stop the turn" };
// acts are what buttons do, each with the place where it was pressed.
const acts = {
  new: newConversation,
  stop: (b, at) => op("Stop", at, "interrupt", { turn: at.turn }),
  queue: () => send("queue"),
  replace: () => send("replace"),
  attach: () => $("file").click(),
  below: toBottom,
  earlier,
  more,
  diff: (b, at) => showDiff(at),
  undo: (b, at) => undo(at),
  rename: (b, at) => rename(at),
  compact: (b, at) => op("Compact", at, "compact", {}),
  "try-now": (b, at) => op("Try now", at, "try_now", {}),
  fork: (b, at) => act("Fork", at, key => call("POST", path(at) + "/fork", { up_to: 0 }, { key })).then(got => { if (got && at.id === shown) location.hash = "#/c/" + got.id; }),
  archive: (b, at) => {
    const what = b.textContent; // Archive, or Unarchive
    act(what, at, key => call("POST", path(at) + "/" + what.toLowerCase(), {}, { key })).then(ok => {
      if (isFiltered()) look();
      if (ok && at.id === shown) { if (what === "Archive") location.hash = "#/"; else b.textContent = "Archive"; }
    });
  },
  approve: (b, at) => {
    if (b.dataset.decision === "denied") return deny(b, at);
    op(names[b.dataset.decision], at, "approve", { call: b.dataset.call, decision: b.dataset.decision }, shownBy(b));
  },
  elicit: elicit,
  kill: (b, at) => op("Kill", at, "kill_background", { id: Number(b.dataset.background) }),
  "delete-input": (b, at) => op("Delete", at, "delete_input", { input: Number(b.dataset.input) }),
  "edit-input": b => { editing = Number(b.dataset.input); setComposer(state.inputs[editing] || ""); $("send").textContent = "Save"; },
  "send-returned": (b, at) => op("Send", at, "user_turn", { content: [], returned: [Number(b.dataset.input)], when_busy: "queue" }),
  "drop-returned": (b, at) => op("Drop", at, "resolve_returned", { inputs: [Number(b.dataset.input)], as: "dropped" }),
  // The draft has the text before the conversation gives it away.
  "edit-returned": (b, at) => {
    const id = Number(b.dataset.input), before = composer.value, text = state.returned[id] || "";
    setComposer(before ? text + "\n\n" + before : text);
    op("Edit", at, "resolve_returned", { inputs: [id], as: "taken" }).then(ok => { if (!ok && at.id === shown) setComposer(before); });
  },
  whole: (b, at) => {
    const el = b.closest(".item");
    act("Show all", at, () => call("GET", path(at) + "/items/" + encodeURIComponent(b.dataset.item))).then(got => {
      const row = rows.get(el.dataset.id);
      if (!got || !row || at.id !== shown) return;
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
  logout: () => act("Log out", nowhere, () => call("DELETE", "/session")).then(ok => ok && loggedOut()),
};

document.addEventListener("click", e => {
  const b = e.target.closest("[data-act]");
  for (const m of document.querySelectorAll(".menu[open]")) if (!m.contains(e.target) || b) m.open = false;
  if (b && !b.disabled) acts[b.dataset.act](b, here());
});

document.addEventListener("keydown", e => {
  if (dialog.open || e.ctrlKey || e.metaKey || e.altKey) return;
  if (e.key === "Escape") {
    if (editing) { editing = 0; setComposer(""); if (state) showState(state); return; }
    if (state && state.phase !== "ready" && !session.read_only) { e.preventDefault(); acts.stop(null, here()); }
    return;
  }
  if (/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)) return;
  const b = $("approvals").querySelector('[data-key="' + CSS.escape(e.key) + '"]');
  if (b) { e.preventDefault(); b.click(); return; } // does nothing while it is disabled
  if (e.key === "/" && !$("form").hidden) { e.preventDefault(); composer.focus(); }
});

function theme() {
  const t = localStorage.getItem("theme") || "auto";
  if (t === "auto") delete document.documentElement.dataset.theme; else document.documentElement.dataset.theme = t;
  $("theme").textContent = "Theme: " + t;
}
