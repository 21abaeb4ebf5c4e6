"use strict";
// Shows push messages, and opens the conversation that one is about. It keeps nothing and answers no requests.
self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", e => e.waitUntil(self.clients.claim()));
self.addEventListener("push", e => {
  let m = {};
  try { m = e.data.json(); } catch { /* shown without details */ }
  e.waitUntil(self.registration.showNotification(String(m.title || "fermata"), {
    body: String(m.body || ""), tag: String(m.tag || "fermata"), icon: "/icon.svg", data: { conversation: String(m.conversation || "") },
  }));
});
self.addEventListener("notificationclick", e => {
  e.notification.close();
  const id = e.notification.data.conversation;
  const to = /^[0-9a-f-]{36}$/.test(id) ? "/#/c/" + id : "/";
  e.waitUntil((async () => {
    for (const c of await self.clients.matchAll({ type: "window" })) {
      if ("focus" in c) { c.postMessage({ open: id }); return c.focus(); }
    }
    return self.clients.openWindow(to);
  })());
});
