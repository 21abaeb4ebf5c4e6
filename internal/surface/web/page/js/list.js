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
