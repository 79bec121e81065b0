// What all pages share: parts of pages in place of whole ones, dialogs, help. Without it pages work with forms and links.
"use strict";

const foltr = (() => {
  // ---- parts of pages

  /** Asks for the part of a page that an address stands for; the node sends it without the frame of the page. */
  function part(address, options = {}) {
    return fetch(address, { ...options, headers: { "X-Part": "true", ...options.headers } });
  }

  /** The text of an answer; an error with the sentence that it shows where the node refused. */
  async function text(answer) {
    const content = await answer.text();
    if (answer.ok) return content;
    const sentence = new DOMParser().parseFromString(content, "text/html").querySelector("p");
    throw new Error(sentence ? sentence.textContent : "The node could not answer.");
  }

  /** A sentence for a request that failed. */
  function problem(failure) {
    return failure instanceof TypeError ? "The node does not answer. Is `foltr node serve` running?" : failure.message;
  }

  // ---- parts that are asked for again and again: state of the index, of the demo

  function refresh(place) {
    if (!place.dataset.refresh) return;
    setTimeout(() => part(place.dataset.refresh)
      .then((answer) => (answer.status === 204 ? null : text(answer)))
      .then((content) => {
        if (content === null) { refresh(place); return; }
        const holder = document.createElement("template");
        holder.innerHTML = content;
        const next = holder.content.querySelector("#" + place.id);
        if (next) place.replaceWith(next);
        else place.innerHTML = content;
        document.dispatchEvent(new Event("refreshed"));
        refresh(next || place);
      }, () => refresh(place)), 1000 * Number(place.dataset.seconds));
  }
  for (const place of document.querySelectorAll("[data-refresh]")) refresh(place);

  // ---- dialogs

  /** Shows a part of a page in a dialog; `label` is its name, `ending` that of the button that closes it. */
  function dialog(label, content, ending = "Close") {
    const shown = document.createElement("dialog");
    shown.setAttribute("aria-label", label);
    const close = document.createElement("button");
    close.type = "button";
    close.className = "close";
    close.textContent = ending;
    close.addEventListener("click", () => shown.close());
    const body = document.createElement("div");
    body.innerHTML = content; // escaped by our templates
    shown.append(close, body);
    shown.addEventListener("close", () => shown.remove());
    document.body.append(shown);
    shown.showModal();
    return shown;
  }

  document.addEventListener("keydown", (event) => {
    if (event.key !== "?" || event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.target.matches("input, textarea") || document.querySelector("dialog[open]")) return;
    event.preventDefault();
    part("/help").then(text).then((content) => dialog("Help", content));
  });

  return { part, text, problem, dialog };
})();
