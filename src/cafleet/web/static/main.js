// Starts the page: follows the address, keeps one store for the fleet that it names, draws the frame.

import { announce, fill, h, icon, setText } from "./dom.js";
import { installShortcuts, showHelp } from "./keys.js";
import { fleetPath, fleetsPath, go, monitorPath, parseRoute, rosterPath } from "./router.js";
import { Store } from "./store.js";
import { applyTheme, currentTheme, nextTheme } from "./theme.js";
import { getFleets } from "./api.js";
import { composer } from "./views/composer.js";
import { fleetsPage } from "./views/fleets.js";
import { memberPanel } from "./views/member.js";
import { monitorPanel } from "./views/monitor.js";
import { roster } from "./views/roster.js";
import { timeline } from "./views/timeline.js";

const app = document.getElementById("app");
const THEME_LABELS = { auto: "Theme: as the system", light: "Theme: light", dark: "Theme: dark" };
const THEME_ICONS = { auto: "auto", light: "sun", dark: "moon" };

let current = null; // The open fleet: {store, parts, inspector}
let fleets = [];
let list = null; // The open list of fleets, where no fleet is open.

applyTheme(currentTheme());

// -- the frame -------------------------------------------------------------------------------------

const picker = h("select", {
  class: "picker", "aria-label": "Fleet",
  on: {
    change: () => go(picker.value ? fleetPath(picker.value) : fleetsPath()),
    focus: () => current && drawPicker(current.store.fleet), // Fleets come and go.
  },
});
const connection = h("span", { class: "connection", data: { state: "closed" } },
  h("span", { class: "dot", "aria-hidden": "true" }), h("span", { class: "connection-text" }));
const themeButton = h("button", {
  class: "icon-button", type: "button", on: { click: () => drawTheme(nextTheme()) },
});
const helpButton = h("button", {
  class: "icon-button help-button", type: "button", "aria-label": "Keyboard shortcuts", title: "Keyboard shortcuts (?)",
  on: { click: () => showHelp() },
}, icon("keyboard"));
const heading = h("h1", { class: "visually-hidden", hidden: true });
const header = h("header", { class: "top" },
  h("a", { class: "brand", href: fleetsPath(), "aria-label": "cafleet, all fleets" },
    h("img", { src: "/static/icon.svg", alt: "", width: 24, height: 24 }), h("span", {}, "cafleet")),
  heading, picker,
  h("span", { class: "spacer" }),
  connection, helpButton, themeButton);
const notice = h("div", { class: "notice", role: "alert", hidden: true });
const tabs = h("nav", { class: "tabs", "aria-label": "Views" });
const body = h("main", { class: "body", id: "main", tabindex: "-1" });
const skip = h("a", {
  class: "skip", href: "#main",
  on: { click: (event) => { event.preventDefault(); body.focus(); } },
}, "Skip to the messages");
fill(app, skip, header, notice, body, tabs);

function drawTheme(theme) {
  fill(themeButton, icon(THEME_ICONS[theme]));
  themeButton.setAttribute("aria-label", THEME_LABELS[theme]);
  themeButton.title = THEME_LABELS[theme];
}
drawTheme(currentTheme());

async function drawPicker(fleet) {
  try {
    fleets = await getFleets();
  } catch {
    return; // The view itself reports that the server does not answer.
  }
  if (current?.store.fleet !== fleet) return; // Somewhere else by now.
  fillPicker(fleet);
  drawTitle();
}

function fillPicker(fleet) {
  const key = JSON.stringify([fleet, fleets]);
  if (picker.dataset.key === key) return; // An open list would close.
  picker.dataset.key = key;
  const options = fleets.map((item) =>
    h("option", { value: item.fleet_id, selected: item.fleet_id === fleet }, `\u2068${item.name ?? "unnamed"}\u2069 · ${item.fleet_id}`));
  if (!fleets.some((item) => item.fleet_id === fleet)) {
    options.unshift(h("option", { value: "", selected: true }, fleet === undefined ? "Choose a fleet" : `fleet ${fleet}`));
  }
  fill(picker, options);
}

// -- routes ----------------------------------------------------------------------------------------

function route() {
  const here = parseRoute(window.location.hash);
  app.dataset.view = here.view;
  if (here.fleet === undefined) {
    closeFleet();
    showFleets(here.view === "unknown");
    return;
  }
  list?.destroy();
  list = null;
  if (current?.store.fleet !== here.fleet) {
    closeFleet();
    openFleet(here.fleet);
    drawPicker(here.fleet);
  }
  showInspector(here);
  drawTabs(here);
  current.parts.roster.select(here.view === "member" ? here.member : null);
  drawTitle();
}

function showFleets(unknown) {
  fill(tabs);
  document.title = "Fleets · cafleet";
  // A page that is opened without an address goes to the only fleet there is.
  const open = window.location.hash === "" ? (fleet) => window.location.replace(fleetPath(fleet)) : null;
  fillPicker(undefined);
  list?.destroy();
  list = fleetsPage({
    unknown,
    openOnly: open,
    onFleets: (found) => {
      fleets = found;
      fillPicker(undefined);
    },
    onConnection: (state) => {
      if (current !== null) return;
      showConnection(state);
      const key = state === "lost" ? "lost" : "";
      if (key !== lastState) fillNotice(key, () => list?.retry());
    },
  });
  fill(body, list.element);
}

function openFleet(fleet) {
  const store = new Store(fleet);
  const write = composer(store);
  const parts = { roster: roster(store), timeline: timeline(store, write.address), composer: write };
  const inspector = h("section", { class: "inspector", "aria-label": "Details" });
  fill(body,
    parts.roster.element,
    h("section", { class: "center", "aria-label": "Timeline" }, parts.timeline.element, write.element),
    inspector);
  current = { store, parts, inspector, panel: null, panelKey: "" };
  store.subscribe((changes) => {
    for (const part of Object.values(parts)) part.update(changes);
    current?.panel?.update(changes);
    drawConnection(store);
    drawTitle();
  });
  store.start();
}

function closeFleet() {
  current?.panel?.destroy?.();
  current?.store.stop();
  current = null;
  notice.hidden = true;
  heading.hidden = true; // The list of fleets has its own.
  lastState = "";
  connection.dataset.state = "none";
  setText(connection.lastChild, "");
}

function showInspector(here) {
  const key = here.view === "member" ? `member ${here.member} ${here.box}` : "monitor";
  if (current.panelKey === key) return;
  const moved = current.panelKey !== "";
  current.panel?.destroy?.();
  current.panelKey = key;
  current.panel = here.view === "member"
    ? memberPanel(current.store, here.member, here.box, current.parts.composer.address)
    : monitorPanel(current.store);
  fill(current.inspector, current.panel.element);
  // Someone who opened a member by keyboard continues there.
  if (moved && here.view === "member") current.panel.focus();
}

function drawTabs(here) {
  const fleet = here.fleet;
  const tab = (view, path, label, name) =>
    h("a", { href: path, "aria-current": view === here.view ? "page" : null }, icon(name), h("span", {}, label));
  fill(tabs,
    tab("timeline", fleetPath(fleet), "Timeline", "chat"),
    tab("members", rosterPath(fleet), "Members", "people"),
    tab("monitor", monitorPath(fleet), "Monitor", "pulse"));
}

function drawTitle() {
  if (current === null) return;
  const { store } = current;
  const known = fleets.find((item) => item.fleet_id === store.fleet);
  let unread = 0;
  for (const member of store.activeMembers()) unread += member.unread;
  const name = known?.name ?? `Fleet ${store.fleet}`;
  heading.hidden = false;
  setText(heading, name);
  const title = `${unread ? `(${unread}) ` : ""}${name} · cafleet`;
  if (document.title !== title) document.title = title;
}

// -- the state of the connection ---------------------------------------------------------------------

const STATES = { connecting: "Connecting", live: "Live", lost: "Disconnected", closed: "Closed" };
let lastState = "";

function showConnection(state) {
  connection.dataset.state = state;
  setText(connection.lastChild, STATES[state]);
}

function drawConnection(store) {
  const state = store.phase === "gone" ? "closed" : store.connection;
  showConnection(state);
  const lost = state === "lost" && store.phase === "ready";
  const gone = store.phase === "gone" && store.members.size > 0;
  const key = lost ? "lost" : gone ? "gone" : "";
  if (key !== lastState) fillNotice(key, () => store.stream?.retryNow(), store.error);
}

function fillNotice(key, retry, detail = "") {
  if (key === "lost") {
    fill(notice, h("span", {}, "Disconnected – reconnecting. What you see may be out of date."),
      h("button", { type: "button", class: "small-button", on: { click: retry } }, "Retry now"));
  } else if (key === "gone") {
    fill(notice, h("span", {}, `This fleet is closed: ${detail}.`));
  } else if (lastState === "lost") {
    announce("Connected again");
  }
  lastState = key;
  notice.hidden = key === "";
}

installShortcuts({
  compose: () => current?.parts.composer.focus(),
  back: () => {
    const here = parseRoute(window.location.hash);
    if (here.view === "member" || here.view === "monitor" || here.view === "members") {
      go(fleetPath(here.fleet));
      current?.parts.roster.focus(here.member);
    }
  },
  roster: () => current?.parts.roster.focus(),
  monitor: () => current && go(monitorPath(current.store.fleet)),
  timeline: (step) => current?.parts.timeline.step(step),
  latest: () => current?.parts.timeline.toLatest(),
  fleets: () => go(fleetsPath()),
});
window.addEventListener("hashchange", route);
route();
// Relative times grow old without any event.
setInterval(() => {
  if (current) {
    current.parts.roster.tick();
    current.panel?.tick?.();
  }
  list?.tick();
}, 5_000);

