// Comfort only: all pages work without it.
"use strict";

// The options of another verb are shown at once.
for (const select of document.querySelectorAll("[data-submits]")) {
  const button = document.getElementById(select.dataset.submits);
  select.addEventListener("change", () => select.form.requestSubmit(button));
}

// Names of the codebook that begin like the word at the cursor, inserted by a click.
for (const input of document.querySelectorAll("[data-names]")) {
  const buttons = [...document.getElementById(input.dataset.names).children];
  const word = () => /[\p{L}\p{N}_.]*$/u.exec(input.value.slice(0, input.selectionStart))[0];
  const filter = () => {
    const start = word().toLowerCase();
    const fitting = buttons.filter(b => b.textContent.toLowerCase().startsWith(start));
    for (const b of buttons) b.hidden = fitting.length > 0 && !fitting.includes(b);
  };
  input.addEventListener("input", filter);
  input.addEventListener("keyup", filter);
  for (const b of buttons) b.addEventListener("click", () => {
    const end = input.selectionStart, start = end - word().length;
    input.setRangeText(b.textContent, start, end, "end");
    input.focus();
    filter();
  });
}

// A job that waits: the seconds to its public time, when the page is loaded anew.
const waiting = document.querySelector("#waiting progress");
if (waiting) {
  const left = document.getElementById("left");
  const ends = Date.now() + 1000 * waiting.max + 300;
  setInterval(() => {
    const seconds = Math.max((ends - Date.now()) / 1000, 0);
    left.textContent = Math.ceil(seconds);
    waiting.value = waiting.max - seconds;
    if (!seconds) location.reload();
  }, 500);
}
