const composer = $("composer");
function setComposer(text) { composer.value = text; fit(); composer.focus(); keepDraft(); }
function fit() { composer.style.height = "auto"; composer.style.height = composer.scrollHeight + 2 + "px"; }
composer.addEventListener("input", () => { fit(); keepDraft(); });

async function send(mode) {
  const text = composer.value.trim();
  if (!text && !pictures.length || session.read_only) return;
  const at = here();
  const content = text ? [{ type: "text", text }] : [];
  for (const url of pictures) content.push({ type: "image", image_url: url });
  const m = { key: newKey(), text, label: mode === "queue" ? "Queue" : mode === "replace" ? "Replace" : "Send", kind: "user_turn", body: { content, when_busy: mode } };
  if (editing) Object.assign(m, { label: "Save", kind: "edit_input", body: { input: editing, content } });
  else if (text.startsWith("!") && !pictures.length) Object.assign(m, { label: "Run", kind: "user_shell", body: { command: text.slice(1).trim() } });
  composer.value = ""; pictures = []; editing = 0; fit(); showPictures(); keepDraft();
  await deliver(at, m);
  if (at.id === shown) toBottom();
}

$("form").addEventListener("submit", e => { e.preventDefault(); send("steer"); });
composer.addEventListener("keydown", e => {
  if (e.key !== "Enter" || e.isComposing || e.shiftKey) return;
  if (matchMedia("(pointer:coarse)").matches && !e.ctrlKey && !e.metaKey) return;
  e.preventDefault();
  send(e.altKey ? "queue" : e.ctrlKey || e.metaKey ? "replace" : "steer");
});

function addFiles(files) {
  const at = here();
  for (const f of files) {
    if (!/^image\/(png|jpeg|gif|webp)$/.test(f.type)) { toast(f.name + ": not a picture that can be sent"); continue; }
    if (f.size > 5e6) { toast(f.name + ": larger than 5 MB"); continue; }
    const r = new FileReader();
    r.onload = () => {
      if (at.id !== shown) return toast(f.name + " was not added: another conversation is on the page.");
      pictures.push(r.result); showPictures(); keepDraft();
    };
    r.readAsDataURL(f);
  }
}
function showPictures() {
  $("pictures").replaceChildren(...pictures.map((url, i) => {
    const b = make("button", "", { type: "button", "aria-label": "Remove image " + (i + 1) });
    b.append(make("img", "", { src: url, alt: "" }));
    b.addEventListener("click", () => { pictures.splice(i, 1); showPictures(); keepDraft(); });
    return b;
  }));
}
composer.addEventListener("paste", e => { if (e.clipboardData.files.length) { e.preventDefault(); addFiles(e.clipboardData.files); } });
$("file").addEventListener("change", e => { addFiles(e.target.files); e.target.value = ""; });
