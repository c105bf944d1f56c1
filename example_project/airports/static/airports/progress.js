// Keeps the list of imports on the page up to date. Without this script the page reloads itself.
"use strict";

const BUSY_MS = 400;
const IDLE_MS = 4000;

const list = document.getElementById("imports");

async function getFresh(url) {
  const answer = await fetch(url, { cache: "no-store" });
  if (!answer.ok) throw new Error(`${url}: ${answer.status}`);
  return answer;
}

// A new import, a report or an end changes what a card is made of: take it from the server.
async function redraw() {
  const text = await (await getFresh(location.pathname)).text();
  const fresh = new DOMParser().parseFromString(text, "text/html").getElementById("imports");
  list.replaceChildren(...fresh.childNodes);
}

function card(found) {
  return list.querySelector(`[data-import="${found.id}"]`);
}

function looksDifferent(found) {
  const shown = card(found);
  return (
    !shown ||
    Boolean(shown.dataset.report) !== found.has_report ||
    Boolean(shown.dataset.ended) !== found.has_ended
  );
}

function update(found) {
  const shown = card(found);
  const stage = shown.querySelector("[data-stage]");
  stage.dataset.stage = stage.textContent = found.stage;
  shown.querySelector("progress").value = found.percent;
  shown.querySelector("[data-text]").textContent = found.text;
  const corrupted = shown.querySelector("[data-corrupted]");
  if (corrupted) corrupted.textContent = found.corrupted;
}

async function look() {
  let pause = IDLE_MS;
  try {
    const { imports, workers } = await (await getFresh(list.dataset.progress)).json();
    if (imports.some(looksDifferent)) await redraw();
    else imports.forEach(update);
    list.querySelector("[data-no-worker]").hidden = workers > 0;
    if (imports.some((found) => !found.has_ended)) pause = BUSY_MS;
  } catch (problem) {
    console.warn("The progress is not to be had:", problem.message);
  }
  setTimeout(look, document.hidden ? IDLE_MS : pause);
}

look();
