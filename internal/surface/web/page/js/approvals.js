// Somebody is writing an answer: what is there is left alone.
const denying = () => {
  const f = $("approvals").querySelector("input, .field");
  return f && (f.value || f === document.activeElement) && $("approvals").contains(document.activeElement);
};
function deny(b) {
  const box = b.closest(".answers");
  const words = make("input", "", { "aria-label": "Why not", placeholder: "Say why (may be empty)" });
  const no = make("button", "Deny", { type: "button", class: "primary" });
  const back = make("button", "Back", { type: "button" });
  const end = () => { words.remove(); $("approvals").dataset.was = ""; showState(state); };
  no.addEventListener("click", () => {
    op("Deny", "approve", { call: b.dataset.call, decision: "denied", message: words.value });
    end();
  });
  back.addEventListener("click", end);
  words.addEventListener("keydown", e => { if (e.key === "Enter") no.click(); if (e.key === "Escape") { e.stopPropagation(); end(); } });
  box.replaceChildren(words, no, back);
  words.focus();
}
