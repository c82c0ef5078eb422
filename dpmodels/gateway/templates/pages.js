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

// A job that waits: the time that is left, and its outcome when it is handed out.
const waiting = document.getElementById("waiting");
if (waiting) {
  const left = document.getElementById("left"), bar = waiting.querySelector("progress");
  const look = async () => {
    const answer = await fetch(waiting.dataset.state).catch(() => null);
    if (answer && (answer.redirected || !answer.ok)) return location.reload();
    const job = answer ? await answer.json() : {state: waiting.dataset.was, seconds_left: 5};
    if (job.state !== waiting.dataset.was) return location.reload();
    if (bar) {
      left.textContent = Math.ceil(job.seconds_left);
      bar.value = bar.max - job.seconds_left;
    }
    setTimeout(look, job.seconds_left ? Math.min(1000 * job.seconds_left + 100, 1000) : 2000);
  };
  setTimeout(look, 500);
}
