// Who is who. The page signs each request with a key that cannot be taken out of the browser, and gives nothing to a
// server that has not shown that it is the one of the login: whoever else listens at this address gets nothing to use.

let me = null;       // {id, keys, server}: the session, its key pair, and the server's public key as text
let trusted = false; // the server has shown who it is, and has been there since
let its = { nonce: "", ahead: 0 }; // of the server's process: its nonce, and how far its clock is ahead in seconds

const utf8 = text => new TextEncoder().encode(text);
const base64 = bytes => btoa(String.fromCharCode(...new Uint8Array(bytes))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
const fromBase64 = text => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), c => c.charCodeAt(0));
const sha256 = async bytes => new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
const ecdsa = { name: "ECDSA", hash: "SHA-256" }, curve = { name: "ECDSA", namedCurve: "P-256" };

class Foreign extends Error {}

// verified reports whether a text was signed by the server.
async function verified(server, text, signature) {
  try {
    const key = await crypto.subtle.importKey("raw", fromBase64(server), curve, false, ["verify"]);
    return await crypto.subtle.verify(ecdsa, key, fromBase64(signature), utf8(text));
  } catch { return false; }
}

// hello asks who listens at this address. It sends a random text and nothing else. expected says whether a public key is
// the right one.
async function hello(expected) {
  const challenge = base64(crypto.getRandomValues(new Uint8Array(32)));
  const r = await fetch("/api/v1/hello?challenge=" + challenge, { credentials: "omit", cache: "no-store", redirect: "error", referrerPolicy: "no-referrer" });
  if (r.status >= 500) throw new Error("the server is not there"); // a proxy says so
  let h = null;
  try { h = await r.json(); } catch { /* not ours */ }
  const text = h && ["fermata hello", challenge, h.origin, h.nonce, h.time].join("\n");
  if (!h || h.origin !== location.origin || !await expected(h.key) || !await verified(h.key, text, h.signature)) throw new Foreign();
  its = { nonce: h.nonce, ahead: h.time - Math.floor(Date.now() / 1000) };
  trusted = true;
  return h.key;
}

const pinned = key => !!me && key === me.server;

// signed makes a request with a proof, when the server has shown who it is, and checks that it was the one who answered.
async function signed(method, path, body, o = {}) {
  for (let again = false; ; again = true) {
    try {
      if (!trusted) await hello(pinned);
      const r = await request(method, path, body, o);
      if (again || r.status !== 403) return r;
      const e = await r.clone().json().catch(() => null);
      if (!e || !e.error || e.error.code !== "proof") return r;
      trusted = false; // another process of the server, or another time: sign again for it
    } catch (e) {
      trusted = false;
      if (e instanceof Foreign && me) foreign();
      throw e;
    }
  }
}

async function request(method, path, body, o) {
  if (!me) throw new Error("there is no session");
  const text = body === undefined ? "" : JSON.stringify(body);
  const url = "/api/v1" + path;
  const claim = {
    session: me.id, htm: method, htu: location.origin + url, iat: Math.floor(Date.now() / 1000) + its.ahead, jti: newKey(), nonce: its.nonce,
    body: base64(await sha256(utf8(text))),
  };
  const part = base64(utf8(JSON.stringify(claim)));
  const headers = { "Fermata-Proof": part + "." + base64(await crypto.subtle.sign(ecdsa, me.keys.privateKey, utf8(part))) };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (o.key) headers["Idempotency-Key"] = o.key;
  if (o.shown) headers["Fermata-Shown"] = o.shown;
  const r = await fetch(url, { method, headers, body: body === undefined ? undefined : text, signal: o.signal, credentials: "omit", cache: "no-store", redirect: "error" });
  if (await verified(me.server, "fermata answer\n" + claim.jti + "\n" + location.origin, r.headers.get("Fermata-Answer") || "")) return r;
  if (r.status >= 500) throw new Error("the server is not there");
  throw new Foreign();
}

// ---- what the browser keeps

const database = () => new Promise((done, fail) => {
  const q = indexedDB.open("fermata", 1);
  q.onupgradeneeded = () => q.result.createObjectStore("session");
  q.onsuccess = () => done(q.result);
  q.onerror = () => fail(q.error);
});
async function inStore(mode, f) {
  const db = await database();
  try {
    return await new Promise((done, fail) => {
      const t = db.transaction("session", mode);
      const q = f(t.objectStore("session"));
      t.oncomplete = () => done(q.result);
      t.onerror = t.onabort = () => fail(t.error);
    });
  } finally { db.close(); }
}
const loadSession = () => inStore("readonly", s => s.get("me"));
const keepSession = value => inStore("readwrite", s => s.put(value, "me"));
const forgetSession = () => inStore("readwrite", s => s.delete("me")).catch(() => {});

// login uses a link: CODE.PRINT, where PRINT is the beginning of the hash of the server's key.
async function login(link) {
  const print = link.split(".")[1] || "";
  const server = await hello(async key => {
    if (!print) return true;
    try { return base64((await sha256(fromBase64(key))).slice(0, 16)) === print; } catch { return false; }
  });
  const keys = await crypto.subtle.generateKey(curve, false, ["sign"]);
  me = { id: "", keys, server };
  const key = base64(await crypto.subtle.exportKey("raw", keys.publicKey));
  const got = await answerOf(await signed("POST", "/login", { code: link, name: navigator.userAgent, key }));
  me = { id: got.session.id, keys, server };
  await keepSession(me);
  return got.session;
}
