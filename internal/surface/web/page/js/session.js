// leave shows why the page cannot be used any more.
function leave(title, text, code) {
  me = null;
  if (stream) stream.abort();
  stream = null;
  clearTimeout(retry);
  $("app").hidden = true;
  $("banner").hidden = true;
  const h = make("h1", title), p = make("p", text + " ");
  if (code) p.append(make("code", code));
  $("out").firstElementChild.replaceChildren(h, p);
  $("out").hidden = false;
  if (dialog.open) dialog.close();
  for (const t of [...toasts]) t.end();
}

function loggedOut() {
  forgetSession();
  leave("No session", "This browser has no session here: it never had one, was logged out, or was not used for a month. Make a link on the machine that runs fermata:", "fermata web --link");
}

// foreign is called when another program answers at this address. What this browser was known by is thrown away: a
// page that the other program has sent could use it.
function foreign() {
  if (me && me.id) forgetSession();
  localStorage.setItem("foreign", String(Date.now()));
  leave("Another program answers here", "At this address is not the fermata that this browser logged in to, or its key has changed. It was given nothing. Close this page. When fermata runs again, make a new link:", "fermata web --link");
}
addEventListener("storage", e => { if (e.key === "foreign" && me) foreign(); });

async function begin() {
  theme();
  if (!window.isSecureContext || !crypto.subtle || !window.indexedDB) {
    return leave("This page needs HTTPS", "Browsers give a page a key of its own only at an https address or at 127.0.0.1.");
  }
  const link = new URLSearchParams(location.search).get("link");
  const before = await loadSession().catch(() => null);
  if (link) {
    history.replaceState(null, "", "/" + location.hash); // the link is used up: it must not stay in the address
    try {
      session = await login(link);
    } catch (e) {
      if (e instanceof Foreign) return foreign();
      if (!before && !(e instanceof Refused)) return leave("Not connected", "fermata could not be reached. Open the link again; it works for ten minutes.");
      if (!before) return leave("This link is not valid", "It was used, has expired or was revoked. Make a new one on the machine that runs fermata:", "fermata web --link");
      me = before; // the session of before may still be there
    }
  } else {
    me = before;
  }
  if (!me || !me.id) return loggedOut();
  known();
  route();
  if (!session.version) {
    try { session = await call("GET", "/session"); } catch { /* the stream says what is wrong */ }
  }
  $("notify").hidden = !(session.push && navigator.serviceWorker && window.PushManager && window.isSecureContext);
  if (session.read_only) {
    $("notify").hidden = true;
    document.querySelectorAll("#form button, #composer, [data-act=new], .tools button:not([data-act=diff])").forEach(el => { el.disabled = true; });
  }
}
begin();
