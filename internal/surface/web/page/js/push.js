async function push() {
  const reg = await navigator.serviceWorker.register("/sw.js");
  if (await Notification.requestPermission() !== "granted") return toast("The browser does not allow notifications here.");
  await navigator.serviceWorker.ready;
  const key = Uint8Array.from(atob(session.push.replace(/-/g, "+").replace(/_/g, "/")), c => c.charCodeAt(0));
  let sub;
  try {
    sub = await reg.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
  } catch (e) {
    return toast("The browser cannot be notified: " + e.message);
  }
  const ok = await act("Notify me", nowhere, () => call("POST", "/push", sub.toJSON()));
  if (ok) toast("This browser will be notified.");
}
if (navigator.serviceWorker) navigator.serviceWorker.addEventListener("message", e => {
  if (/^[0-9a-f-]{36}$/.test(e.data.open || "")) location.hash = "#/c/" + e.data.open;
});
