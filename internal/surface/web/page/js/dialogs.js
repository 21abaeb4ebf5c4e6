const dialog = $("dialog");
// open shows a dialog, which belongs to a conversation, or to none.
function open(title, at, build) {
  dialog.dataset.conversation = at.id;
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
  const from = shown;
  open("New conversation", nowhere, d => {
    const dir = field(d, "Directory", make("input", "", { value: session.dir, spellcheck: "false" }));
    const known = make("datalist", "", { id: "projects" }); // the directories of the conversations that there are
    for (const o of $("project").options) if (o.value) known.append(make("option", "", { value: o.value }));
    dir.setAttribute("list", "projects");
    d.append(known);
    const model = field(d, "Model", make("input", "", { placeholder: "as configured", spellcheck: "false" }));
    const sandbox = field(d, "Commands may", choice([["", "as configured"], ["read-only", "read"], ["workspace-write", "write in the directory"], ["danger-full-access", "do everything (no sandbox)"]]));
    const approval = field(d, "Asks", choice([["", "as configured"], ["untrusted", "for unknown commands"], ["on-request", "when needed"], ["on-failure", "if the sandbox made a command fail"], ["never", "never"]]));
    const prompt = field(d, "Task", make("textarea", "", { rows: "3" }));
    d.append(buttons([["Cancel"], ["Begin", () => {
      const body = { cwd: dir.value, model: model.value, sandbox: sandbox.value, approvalPolicy: approval.value, prompt: prompt.value };
      act("New conversation", nowhere, key => call("POST", "/conversations", body, { key })).then(got => {
        if (!got) return;
        for (const r of got.remarks || []) toast(r);
        if (from === shown) location.hash = "#/c/" + got.id;
      });
    }, "primary"]]));
    prompt.addEventListener("keydown", e => {
      if (e.key !== "Enter" || !e.ctrlKey && !e.metaKey) return;
      e.preventDefault();
      d.querySelector(".answers .primary").click();
    });
    setTimeout(() => prompt.focus());
  });
}

async function showDiff(at, turn) {
  const got = await act("Diff", at, () => call("GET", path(at) + "/diff" + (turn ? "?turn=" + turn : "")));
  if (!got || at.id !== shown) return;
  if (dialog.open) dialog.close();
  open(got.turn && got.diff ? "What turn " + got.turn + " changed" : "No turn has changed files", at, d => {
    if (got.turns.length > 1) {
      const s = field(d, "Turn", choice(got.turns.map(t => [String(t), "turn " + t])));
      s.value = String(got.turn);
      s.addEventListener("change", () => showDiff(at, s.value));
    }
    const div = make("div");
    setHTML(div, got.html);
    d.append(div, buttons([["Close"]]));
  });
}

async function undo(at) {
  const got = await act("Undo", at, () => call("GET", path(at) + "/undo"));
  if (!got || at.id !== shown) return;
  open("Undo turn " + got.turn + "?", at, d => {
    d.append(make("p", got.files ? "This is what changes:" : "The files are already what they were."));
    for (const n of got.notes) d.append(make("p", n, { class: "why" }));
    const div = make("div");
    setHTML(div, got.html);
    d.append(div, buttons([["Cancel"], ["Undo turn " + got.turn, () => {
      act("Undo", at, key => call("POST", path(at) + "/undo", { turn: got.turn }, { key, shown: got.shown })).then(ok => ok && toast("Turn " + got.turn + " was undone.", at));
    }, "danger"]]));
  });
}

function rename(at) {
  open("Rename", at, d => {
    const t = field(d, "Title", make("input", "", { value: state && state.title || "" }));
    d.append(buttons([["Cancel"], ["Rename", () => { op("Rename", at, "rename", { title: t.value }); }, "primary"]]));
  });
}
