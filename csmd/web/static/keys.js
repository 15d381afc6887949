// Keys, and search as one types. Every page works without this.
"use strict";
const page = document.body.dataset.page;
const items = () => [...document.querySelectorAll("[data-item]")];
const current = () => document.activeElement?.closest?.("[data-item]");

function focusItem(item) {
  item.tabIndex = -1;
  item.focus({ preventScroll: true });
  item.scrollIntoView({ block: "nearest" });
}

function move(step) {
  const all = items();
  const at = all.indexOf(current());
  const next = at < 0 ? all[step > 0 ? 0 : all.length - 1] : all[at + step];
  if (next) focusItem(next);
}

function press(key) {
  const within = page === "review" ? current() || items()[0] : document;
  const target = within?.querySelector(`[data-key="${key}"]`) || document.querySelector(`.notice [data-key="${key}"]`);
  if (!target) return false;
  if (target.tagName === "DETAILS") {
    target.open = true;
    target.querySelector("textarea, input:not([type=hidden])").focus();
  } else {
    target.click();
  }
  return true;
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.repeat && !"jk".includes(event.key)) return;
  const typing = event.target.matches("input:not([type=radio]), textarea, select");
  if (typing) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (event.key === "/") document.querySelector("#search input[type=search], #find").focus();
  else if (event.key === "j" || (event.key === document.body.dataset.later && page === "review")) move(1);
  else if (event.key === "k") move(-1);
  else if (event.key === "Enter" && event.target.matches("[data-item]")) event.target.querySelector("a")?.click();
  else if (!/^[a-z]$/.test(event.key) || !press(event.key)) return;
  event.preventDefault();
});

if (page === "review") {
  const here = document.querySelector("[data-here]") || items().pop();
  if (here) focusItem(here);
}

for (const place of document.querySelectorAll("[data-fetch]")) {
  fetch(place.dataset.fetch).then(async (answer) => {
    if (answer.ok) place.outerHTML = await answer.text(); // made by the server, which escapes every value
  }, () => {});
}

const search = document.querySelector("#search");
if (search) {
  const hits = document.querySelector("#hits");
  let latest = 0;
  let timer = 0;
  const show = async () => {
    const query = new URLSearchParams(new FormData(search));
    const number = ++latest;
    const answer = await fetch(`search/hits?${query}`).catch(() => null);
    if (number !== latest || !answer?.ok) return; // an answer to what was typed before, or none
    hits.innerHTML = await answer.text(); // made by the server, which escapes every value
    history.replaceState(null, "", `search?${query}`);
  };
  search.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(show, 200);
  });
}
