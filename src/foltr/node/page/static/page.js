// Search as you type, keys, settled lists and quick returns. Without it the page works with forms and links.
"use strict";

(() => {
  const box = document.getElementById("q");
  const results = document.getElementById("results");
  const SETTLE_MS = 300; // without typing, a list has been looked at
  const RETURN_MS = 10000; // back on the page within this time: the opened document was a mistake
  const letters = (text) => text.trim();

  function token() {
    const field = document.querySelector("input[name=csrf]");
    return field ? field.value : "";
  }

  // ---- help

  function showHelp() {
    let dialog = document.getElementById("help");
    if (dialog) { dialog.showModal(); return; }
    fetch("/help", { headers: { "HX-Request": "true" } }).then((answer) => answer.text()).then((text) => {
      dialog = document.createElement("dialog");
      dialog.id = "help";
      dialog.setAttribute("aria-label", "Help");
      const close = document.createElement("button");
      close.className = "close";
      close.textContent = "Close";
      close.addEventListener("click", () => dialog.close());
      const body = document.createElement("div");
      body.innerHTML = text; // our own page, which has no words of documents
      dialog.append(close, body);
      document.body.append(dialog);
      dialog.showModal();
    });
  }

  document.addEventListener("keydown", (event) => {
    const typing = event.target.matches("input, textarea");
    if (event.key === "?" && !typing && !event.ctrlKey && !event.altKey && !event.metaKey) {
      event.preventDefault();
      showHelp();
    }
  });

  if (!box || !results) return;

  // ---- the newest request wins

  let sequence = 0; // of the last request
  let displayed = 0; // of the last answer on the page
  let waiting = false; // a list was asked for and is not here yet
  let focused = -1; // row that had the focus when a new list arrived

  document.body.addEventListener("htmx:configRequest", (event) => {
    if (event.detail.path === "/list") {
      sequence += 1;
      event.detail.headers["X-Sequence"] = String(sequence);
      waiting = true;
      typed();
    }
    if (event.detail.path === "/act" && left) event.detail.parameters.append("returned", left);
  });

  document.body.addEventListener("htmx:beforeSwap", (event) => {
    const number = Number(event.detail.xhr.getResponseHeader("X-Sequence") || 0);
    if (!number) return;
    if (number < displayed || number < sequence) event.detail.shouldSwap = false;
    else displayed = number;
    focused = [...results.querySelectorAll(".open")].indexOf(document.activeElement);
  });

  document.body.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target !== results) return;
    waiting = false;
    const rows = results.querySelectorAll(".open");
    if (focused >= 0) (rows[Math.min(focused, rows.length - 1)] || box).focus(); // whoever moves down while a list arrives
    focused = -1;
    if (due) settle();
  });

  function say(text) {
    const note = document.createElement("p");
    note.className = "problem";
    note.textContent = text;
    document.getElementById("message").replaceChildren(note);
  }
  document.body.addEventListener("htmx:sendError", () => {
    waiting = false;
    say("The node does not answer. Is `foltr node serve` running?");
  });
  document.body.addEventListener("htmx:responseError", (event) => {
    waiting = false;
    const shown = new DOMParser().parseFromString(event.detail.xhr.responseText, "text/html").querySelector("p");
    say(shown ? shown.textContent : "The node could not answer.");
  });

  // ---- what a row shows on demand: the page that it links to, loaded in place of the link

  results.addEventListener("toggle", (event) => {
    const link = event.target.open && event.target.querySelector(".loaded > a");
    if (!link) return;
    const place = link.parentElement; // as the source too: of requests of one source only the last is waited for
    htmx.ajax("GET", link.getAttribute("href"), { source: place, target: place, swap: "innerHTML" });
  }, true);

  // ---- a settled list is logged

  let timer = 0;
  let due = false; // the time is over, the list is not here yet
  let settled = "";

  function typed() {
    clearTimeout(timer);
    due = false;
    document.getElementById("message").replaceChildren();
    timer = setTimeout(settle, SETTLE_MS);
  }

  function settle() {
    clearTimeout(timer);
    if (waiting) { due = true; return; }
    due = false;
    const form = document.getElementById("act");
    const data = new URLSearchParams(new FormData(form));
    const id = data.get("search_id");
    document.getElementById("live").textContent = document.getElementById("count").textContent;
    document.title = letters(box.value) ? box.value + " – foltr" : "foltr";
    if (id === settled) return;
    settled = id;
    const address = new URLSearchParams();
    for (const name of ["q", "sort"]) if (data.get(name)) address.set(name, data.get(name));
    history.replaceState(null, "", "/" + (address.size ? "?" + address : ""));
    const filters = "/filters?" + new URLSearchParams(
      { search_id: id, q: data.get("q"), sort: data.get("sort"), n: data.get("n") });
    htmx.ajax("GET", filters, { target: "#filters", swap: "innerHTML" });
    if (letters(data.get("q"))) fetch("/settle", { method: "POST", body: data });
  }

  if (letters(box.value)) timer = setTimeout(settle, SETTLE_MS);

  // ---- a quick return takes a choice back when something else is opened

  let opened = null; // {name, at}
  let left = ""; // what was left at once

  document.body.addEventListener("htmx:beforeRequest", (event) => {
    if (event.detail.pathInfo.requestPath !== "/act") return;
    settle();
    const button = event.detail.requestConfig.triggeringEvent && event.detail.requestConfig.triggeringEvent.submitter;
    if (!button || !["open", "folder"].includes(button.name)) return;
    const id = document.querySelector("#act input[name=search_id]").value;
    opened = { name: id + ":" + button.value, at: Date.now() };
    left = "";
  });

  function back() {
    if (document.visibilityState !== "visible" || !opened) return;
    left = Date.now() - opened.at <= RETURN_MS ? opened.name : "";
    opened = null;
  }
  document.addEventListener("visibilitychange", back);
  window.addEventListener("focus", back);

  // ---- keys

  const rows = () => Array.from(results.querySelectorAll(".open"));

  function go(step) {
    const all = rows();
    const row = document.activeElement.closest(".row");
    const at = row ? all.indexOf(row.querySelector(".open")) : -1;
    const next = at + step;
    if (next < 0) { box.focus(); return; }
    if (next < all.length) all[next].focus();
  }

  function folder(button) {
    const row = button && button.closest(".row");
    if (row) row.querySelector("button[name=folder]").click();
  }

  function inBox(event) {
    if (event.key === "Enter") {
      event.preventDefault();
      const first = () => { settle(); const all = rows(); event.ctrlKey ? folder(all[0]) : all[0] && all[0].focus(); };
      if (!waiting) { first(); return; }
      due = true;
      document.body.addEventListener("htmx:afterSwap", first, { once: true });
    } else if (event.key === "Escape" && box.value) {
      event.preventDefault();
      box.value = "";
      box.dispatchEvent(new Event("input", { bubbles: true }));
    }
  }

  document.addEventListener("keydown", (event) => {
    if (event.isComposing || event.altKey || event.metaKey || document.querySelector("dialog[open]")) return;
    const inResults = results.contains(event.target);
    if (event.target === box && (event.key === "Enter" || event.key === "Escape")) { inBox(event); return; }
    if (event.key === "ArrowDown" && (event.target === box || inResults)) { event.preventDefault(); go(1); }
    else if (event.key === "ArrowUp" && inResults) { event.preventDefault(); go(-1); }
    else if (event.key === "Enter" && event.ctrlKey && inResults) { event.preventDefault(); folder(event.target); }
    else if (event.key === "Escape") { event.preventDefault(); box.focus(); }
    else if (event.key === "/" && !event.target.matches("input, textarea")) {
      event.preventDefault();
      box.focus();
      box.select();
    }
  });
})();
