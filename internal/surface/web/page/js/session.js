function loggedOut() {
  token = null;
  localStorage.removeItem("token");
  if (stream) stream.abort();
  stream = null;
  clearTimeout(retry);
  $("app").hidden = true;
  $("banner").hidden = true;
  $("out").hidden = false;
}

async function begin() {
  theme();
  const link = new URLSearchParams(location.search).get("link");
  if (link) {
    history.replaceState(null, "", "/" + location.hash); // the link is used up: it must not stay in the address
    try {
      const got = await call("POST", "/login", { code: link, name: navigator.userAgent });
      token = got.token;
      session = got.session;
      localStorage.setItem("token", token);
    } catch (e) {
      if (!token) return loggedOut();
    }
  }
  if (!token) return loggedOut();
  known();
  route();
  if (!session.version) {
    try { session = await call("GET", "/session"); } catch { /* the stream says what is wrong */ }
  }
  $("notify").hidden = !(session.push && navigator.serviceWorker && window.PushManager && window.isSecureContext);
  if (session.read_only) document.querySelectorAll("#form button, #composer, [data-act=new], .tools button:not([data-act=diff])").forEach(el => { el.disabled = true; });
}
begin();
