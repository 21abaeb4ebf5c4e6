// What is written and not sent is kept in the browser for each conversation, and so is what could not be sent.

const stored = {
  get(name) {
    try { return JSON.parse(localStorage.getItem(name)); } catch { return null; }
  },
  // set keeps a value, and reports whether there was room for it.
  set(name, value) {
    try {
      if (value === null) localStorage.removeItem(name); else localStorage.setItem(name, JSON.stringify(value));
      return true;
    } catch { return false; }
  },
};

function keepDraft() {
  if (!shown) return;
  const d = { text: composer.value, pictures, editing };
  if (!d.text && !pictures.length) return void stored.set("draft:" + shown, null);
  if (!stored.set("draft:" + shown, d)) stored.set("draft:" + shown, { ...d, pictures: [] });
}

function takeDraft() {
  const d = shown && stored.get("draft:" + shown) || { text: "", pictures: [], editing: 0 };
  composer.value = d.text;
  pictures = d.pictures;
  editing = d.editing;
  fit();
  showPictures();
  showUnsent();
}

// deliver sends a message. One that does not arrive is shown as unsent, with its key: it is carried out once, however
// often it is sent.
async function deliver(at, m) {
  try {
    await call("POST", path(at) + "/ops", { kind: m.kind, body: m.body }, { key: m.key });
    drop(at.id, m.key);
  } catch (e) {
    keepUnsent(at.id, { ...m, why: e instanceof Refused ? e.message + (e.hint ? " (" + e.hint + ")" : "") : "fermata cannot be reached" });
  }
}

const unsent = id => stored.get("unsent:" + id) || [];
function setUnsent(id, list) {
  if (!stored.set("unsent:" + id, list.length ? list : null)) toast("The browser has no room to keep this message: copy it before you leave the page.");
  if (id === shown) showUnsent();
}
function drop(id, key) {
  const list = unsent(id);
  if (list.some(m => m.key === key)) setUnsent(id, list.filter(m => m.key !== key));
}
function keepUnsent(id, m) {
  const list = unsent(id).filter(x => x.key !== m.key);
  setUnsent(id, [...list, m]);
}

function showUnsent() {
  const at = here();
  $("unsent").replaceChildren(...(shown ? unsent(shown) : []).map(m => {
    const li = make("li");
    li.append(make("span", "not sent", { class: "mode", title: m.why || "" }), make("span", m.text || "image", { class: "words" }), make("span", m.why || "", { class: "why" }));
    const button = (label, f) => {
      const b = make("button", label, { type: "button" });
      b.addEventListener("click", f);
      li.append(b);
    };
    button(m.label, () => { for (const b of li.querySelectorAll("button")) b.disabled = true; deliver(at, m); });
    button("Edit", () => {
      drop(at.id, m.key);
      pictures = pictures.concat((m.body.content || []).filter(c => c.type === "image").map(c => c.image_url));
      showPictures();
      setComposer(composer.value ? m.text + "\n\n" + composer.value : m.text);
    });
    button("Delete", () => drop(at.id, m.key));
    return li;
  }));
}
addEventListener("storage", e => { if (e.key === "unsent:" + shown) showUnsent(); });
