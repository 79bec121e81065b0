// The search page: search as you type, keys, settled lists and quick returns. Without it the page works with forms and links.
"use strict";

(() => {
  const box = document.getElementById("q");
  const sort = document.getElementById("sort");
  const results = document.getElementById("results");
  const message = document.getElementById("message");
  const SETTLE_MS = 300; // without typing, a list has been looked at
  const LATE_MS = 200; // a list that takes longer is dimmed: it does not belong to the words in the box
  const RETURN_MS = 10000; // back on the page within this time: the opened document was a mistake

  const field = (name) => document.querySelector(`#act input[name=${name}]`).value; // of the displayed list
  const openers = () => Array.from(results.querySelectorAll(".open"));

  function say(text, kind = "problem") {
    const note = document.createElement("p");
    note.className = kind;
    note.textContent = text;
    message.replaceChildren(note);
  }

  // ---- a list for every letter; the newest request wins

  const tab = Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(16)).join("-");
  let sequence = 0; // of the last request
  let request = new AbortController();
  let waiting = false; // a list was asked for and is not here yet
  let late = 0;
  let again = 0; // an empty list is asked for again

  function ask() {
    request.abort();
    request = new AbortController();
    sequence += 1;
    const number = sequence;
    if (!waiting) late = setTimeout(() => results.setAttribute("aria-busy", "true"), LATE_MS);
    waiting = true;
    typed();
    const headers = { "X-Sequence": String(number), "X-Tab": tab }; // the node computes the newest list of a tab only
    foltr.part("/list?" + new URLSearchParams({ q: box.value, sort: sort.value }), { signal: request.signal, headers })
      .then((answer) => (answer.status === 204 ? null : foltr.text(answer)))
      .then((content) => { if (content !== null && number === sequence) show(content); })
      .catch((failure) => {
        if (failure.name === "AbortError" || number !== sequence) return;
        arrived();
        say(foltr.problem(failure));
      });
  }

  function arrived() {
    waiting = false;
    clearTimeout(late);
    results.removeAttribute("aria-busy");
  }

  function show(content) {
    const focused = results.contains(document.activeElement) ? openers().indexOf(document.activeElement) : -1;
    results.innerHTML = content; // escaped by our templates
    arrived();
    if (focused >= 0) { // whoever moves down while a list arrives
      const rows = openers();
      (rows[Math.min(focused, rows.length - 1)] || box).focus();
    }
    results.dispatchEvent(new Event("displayed"));
    askAgain();
    if (due) settle();
  }

  function askAgain() {
    clearTimeout(again);
    const empty = results.querySelector("[data-again]");
    if (empty) again = setTimeout(ask, 1000 * Number(empty.dataset.again));
  }

  box.addEventListener("input", ask);
  sort.addEventListener("change", ask);
  askAgain();

  // ---- what a row shows on demand: the page that it links to, loaded in place of the link

  results.addEventListener("toggle", (event) => {
    const link = event.target.open && event.target.querySelector(".loaded > a");
    if (!link) return;
    foltr.part(link.href).then(foltr.text)
      .then((content) => { link.parentElement.innerHTML = content; })
      .catch((failure) => say(foltr.problem(failure)));
  }, true);

  // ---- a settled list is logged

  let timer = 0;
  let due = false; // the time is over, the list is not here yet
  let settled = "";

  function typed() {
    clearTimeout(timer);
    due = false;
    message.replaceChildren();
    timer = setTimeout(settle, SETTLE_MS);
  }

  function settle() {
    clearTimeout(timer);
    if (waiting) { due = true; return; }
    due = false;
    document.getElementById("live").textContent = document.getElementById("count").textContent;
    document.title = box.value.trim() ? box.value + " – foltr" : "foltr";
    const id = field("search_id");
    if (id === settled) return;
    settled = id;
    const address = new URLSearchParams();
    for (const name of ["q", "sort"]) if (field(name)) address.set(name, field(name));
    history.replaceState(null, "", "/" + (address.size ? "?" + address : ""));
    const names = ["search_id", "q", "sort", "n"];
    const filters = new URLSearchParams(names.map((name) => [name, field(name)]));
    foltr.part("/filters?" + filters).then(foltr.text)
      .then((content) => { if (id === settled) document.getElementById("filters").innerHTML = content; })
      .catch(() => {}); // filters are an offer; the list itself says when the node does not answer
    const data = new URLSearchParams(new FormData(document.getElementById("act")));
    if (field("q").trim()) fetch("/settle", { method: "POST", body: data }).catch(() => {});
  }

  if (box.value.trim()) timer = setTimeout(settle, SETTLE_MS);

  // ---- actions on a row of the displayed list, which is the impression, also while a newer one is on its way

  let opened = null; // {name, at}: the last document that was opened
  let left = ""; // the document that was left at once

  document.addEventListener("submit", (event) => {
    if (event.target.getAttribute("action") !== "/act") return;
    event.preventDefault();
    const button = event.submitter;
    const data = new URLSearchParams(new FormData(event.target, button));
    const dialog = event.target.closest("dialog");
    if (dialog) dialog.close();
    act(data, button ? button.name : "");
  });

  function act(data, name) {
    clearTimeout(timer);
    due = false;
    if (!waiting) settle();
    if (left) data.append("returned", left);
    if (["open", "folder", "with"].includes(name)) {
      opened = { name: `${data.get("search_id")}:${parseInt(data.get(name), 10)}`, at: Date.now() };
      left = "";
      say("Opening …", "note");
    }
    foltr.part("/act", { method: "POST", body: data }).then(foltr.text).then((content) => {
      message.replaceChildren();
      if (content.includes('id="question"')) askPerson(content);
      else message.innerHTML = content; // escaped by our templates
    }).catch((failure) => say(foltr.problem(failure)));
  }

  /** Asks before something is opened that can run code. The focus is on what opens nothing, and a second click of a
   * double click decides nothing: whoever presses Enter twice has not agreed. */
  function askPerson(content) {
    const dialog = foltr.dialog("Open it?", content, "Do not open");
    dialog.addEventListener("click", (event) => { if (event.detail > 1) event.preventDefault(); }, true);
    dialog.querySelector(".close").focus();
  }

  function back() {
    if (document.visibilityState !== "visible" || !opened) return;
    left = Date.now() - opened.at <= RETURN_MS ? opened.name : "";
    opened = null;
  }
  document.addEventListener("visibilitychange", back);
  window.addEventListener("focus", back);

  // ---- what keys do with a row

  const press = (row, name) => row.querySelector(`button[name=${name}]`).click();

  function openWith(row) {
    const link = row.querySelector("a.with");
    foltr.part(link.href).then(foltr.text).then((content) => {
      const first = foltr.dialog("Open with", content).querySelector(".programs button");
      if (first) first.focus();
    })
      .catch((failure) => say(foltr.problem(failure)));
  }

  function copyPath(row) {
    const path = row.querySelector(".copy").dataset.path;
    if (!path) { say("The path has characters that a terminal or another program may take for something else; show the folder instead."); return; }
    navigator.clipboard.writeText(path).then(() => say("Copied the path.", "note"), () => say("The browser does not let the page copy: " + path));
  }

  results.addEventListener("click", (event) => {
    const row = event.target.closest(".row");
    if (event.target.matches(".copy")) copyPath(row);
    if (event.target.matches("a.with")) { event.preventDefault(); openWith(row); }
  });

  /** What a key does with the row that has the focus, or with the first one while the box has it. */
  function rowAction(event, inBox) {
    const ctrl = event.ctrlKey || event.metaKey;
    if (event.key === "Enter" && ctrl) return (row) => press(row, "folder");
    if (event.key === "Enter" && event.shiftKey) return openWith;
    if (event.key === "Enter" && inBox) return (row) => press(row, "open");
    const selected = inBox ? box.selectionStart !== box.selectionEnd : !getSelection().isCollapsed;
    if (event.key === "c" && ctrl && !event.shiftKey && !selected) return copyPath;
    return null;
  }

  // the first row shows that Enter in the box opens it
  const mark = () => results.classList.toggle("enter", document.activeElement === box);
  box.addEventListener("focus", mark);
  box.addEventListener("blur", mark);
  mark();

  function go(step) {
    const all = openers();
    const row = document.activeElement.closest(".row");
    const next = (row ? all.indexOf(row.querySelector(".open")) : -1) + step;
    if (next < 0) box.focus();
    else if (next < all.length) all[next].focus();
  }

  document.addEventListener("keydown", (event) => {
    if (event.isComposing || event.altKey || document.querySelector("dialog[open]")) return;
    const inBox = event.target === box;
    const inResults = results.contains(event.target);
    const action = inBox || inResults ? rowAction(event, inBox) : null;
    if (action) {
      event.preventDefault();
      const row = inBox ? results.querySelector(".row") : event.target.closest(".row");
      if (row && !event.repeat) action(row);
    } else if (event.ctrlKey || event.metaKey) return;
    else if (event.key === "ArrowDown" && (inBox || inResults)) { event.preventDefault(); go(1); }
    else if (event.key === "ArrowUp" && inResults) { event.preventDefault(); go(-1); }
    else if (event.key === "Escape" && inBox) {
      if (!box.value) return;
      event.preventDefault();
      box.value = "";
      ask();
    } else if (event.key === "Escape") { event.preventDefault(); box.focus(); }
    else if (event.key === "/" && !event.target.matches("input, textarea")) {
      event.preventDefault();
      box.focus();
      box.select();
    }
  });
})();
