function route() {
  const m = /^#\/c\/([0-9a-f-]{36})$/.exec(location.hash);
  const id = m ? m[1] : "";
  if (id === shown && state) return;
  keepDraft();
  shown = id;
  state = null;
  swapped = Date.now();
  closeOthers();
  takeDraft();
  reset();
  for (const name of ["approvals", "queue", "returned", "background"]) setList(name, "");
  document.body.classList.toggle("one", !!id);
  document.body.classList.remove("running", "attention");
  $("tools").hidden = $("dock").hidden = !id;
  $("form").hidden = !id;
  $("empty").hidden = !!id;
  $("title").textContent = id ? "…" : "fermata";
  $("facts").textContent = $("status").textContent = "";
  document.title = "fermata";
  for (const el of document.querySelectorAll("#form button, #composer, [data-act=new], .tools button:not([data-act=diff])")) el.disabled = session.read_only;
  const row = id && document.querySelector('#lists [data-conversation="' + id + '"]');
  $("archive").textContent = row && row.dataset.archived ? "Unarchive" : "Archive";
  mark();
  connect();
  if (id && matchMedia("(pointer:fine)").matches) $("composer").focus();
}
addEventListener("hashchange", route);
