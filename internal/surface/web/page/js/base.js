const $ = id => document.getElementById(id);
const policy = window.trustedTypes
  ? trustedTypes.createPolicy("fermata", { createHTML: s => s })
  : { createHTML: s => s };
// The server makes all HTML; what others wrote is escaped there.
const setHTML = (el, html) => { el.innerHTML = policy.createHTML(html); };
const element = html => { const t = document.createElement("template"); setHTML(t, html); return t.content.firstElementChild; };
const make = (tag, text, attrs = {}) => {
  const el = document.createElement(tag);
  if (text) el.textContent = text;
  for (const [k, v] of Object.entries(attrs)) el.setAttribute(k, v);
  return el;
};

let session = { read_only: false, dir: "" };
let shown = "";                      // the conversation on the page
let have = { cursor: 0, open: {} };  // what the page has of it
let rows = new Map();                // its items by id: {el, n, next}
let state = null;
let pictures = [];
let known;
const begun = new Promise(done => { known = done; }); // the page knows its session
let swapped = 0;                     // when one approval took the place of another
let editing = 0;                     // the waiting message that is in the composer
