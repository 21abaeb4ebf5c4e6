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
