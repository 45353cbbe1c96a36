// Single-key shortcuts, which can be switched off, and the dialog that lists them.

import { h, icon } from "./dom.js";
import { remember, remembered } from "./theme.js";

const SETTING = "cafleet.shortcuts";
const LIST = [
  ["c", "Write a message"],
  ["j / k", "Next / previous message"],
  ["l", "Latest message"],
  ["m", "Members"],
  ["w", "Monitor"],
  ["f", "Fleets"],
  ["Esc", "Close the details, leave a field"],
  ["?", "This list"],
];

const enabled = () => remembered(SETTING) !== "off";

export function installShortcuts(actions) {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    const typing = event.target.closest?.("input, textarea, select, [contenteditable]");
    if (document.querySelector("dialog[open]")) return;
    if (event.key === "Escape") {
      if (typing) event.target.blur();
      else actions.back();
      return;
    }
    if (typing || !enabled()) return;
    const action = {
      c: actions.compose,
      j: () => actions.timeline(1),
      k: () => actions.timeline(-1),
      l: actions.latest,
      m: actions.roster,
      w: actions.monitor,
      f: actions.fleets,
      "?": showHelp,
    }[event.key];
    if (action) {
      event.preventDefault();
      action();
    }
  });
}

export function showHelp() {
  const close = h("button", {
    type: "button", class: "icon-button", "aria-label": "Close", on: { click: () => dialog.close() },
  }, icon("close"));
  const toggle = h("input", {
    type: "checkbox", checked: enabled(),
    on: { change: () => remember(SETTING, toggle.checked ? "on" : "off") },
  });
  const dialog = h("dialog", { class: "help", "aria-labelledby": "help-title", on: { close: () => dialog.remove() } },
    h("div", { class: "help-head" }, h("h2", { id: "help-title" }, "Keyboard"), close),
    h("dl", {}, LIST.map(([key, text]) => h("div", {}, h("dt", {}, h("kbd", {}, key)), h("dd", {}, text)))),
    h("p", { class: "muted" }, "In the message field: @ completes names, Enter sends, Shift+Enter starts a new line."),
    h("label", { class: "check" }, toggle, "Single-key shortcuts"));
  document.body.append(dialog);
  dialog.showModal();
}
