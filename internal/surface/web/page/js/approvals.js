// Somebody is writing an answer: what is there is left alone.
const denying = () => {
  const f = $("approvals").querySelector("input, .field");
  return f && (f.value || f === document.activeElement) && $("approvals").contains(document.activeElement);
};
// A click or a key that was meant for what was there a moment ago is no answer: the buttons wait.
const settleTime = 500;
function guardAnswers() {
  const left = swapped + settleTime - Date.now();
  for (const b of $("approvals").querySelectorAll(".answers button")) b.disabled = left > 0;
  if (left > 0) setTimeout(guardAnswers, left + 10);
}
const shownBy = b => b.closest("section").dataset.shown;

function deny(b, at) {
  const shown = shownBy(b), call = b.dataset.call;
  const box = b.closest(".answers");
  const words = make("input", "", { "aria-label": "Why not", placeholder: "Say why (may be empty)" });
  const no = make("button", "Deny", { type: "button", class: "primary" });
  const back = make("button", "Back", { type: "button" });
  const end = () => { words.remove(); $("approvals").dataset.was = ""; showState(state); };
  no.addEventListener("click", () => {
    op("Deny", at, "approve", { call, decision: "denied", message: words.value }, shown);
    end();
  });
  back.addEventListener("click", end);
  words.addEventListener("keydown", e => { if (e.key === "Enter") no.click(); if (e.key === "Escape") { e.stopPropagation(); end(); } });
  box.replaceChildren(words, no, back);
  words.focus();
}
