// The list of live fleets, live.

import { fleetsEvents, getFleets } from "../api.js";
import { fill, h } from "../dom.js";
import { fleetPath } from "../router.js";
import { Stream } from "../stream.js";
import { ago, fullTime } from "../time.js";
import { errorCard } from "./parts.js";

/**
 * `openOnly(fleetId)`: called instead of showing a list of one; null: the list is wanted.
 * `onFleets(fleets)` and `onConnection(state)`: for the frame around.
 */
export function fleetsPage({ unknown, openOnly, onFleets, onConnection }) {
  const list = h("div", { class: "fleet-list", "aria-busy": "true" }, h("p", { class: "muted" }, "Loading…"));
  const element = h("div", { class: "fleets" },
    h("h1", {}, "Fleets"),
    unknown && h("p", { class: "card", role: "alert" }, "There is no page at this address."),
    list);
  let fleets = null;
  let drawn = "";
  const stream = new Stream(fleetsEvents, {
    onEvent: (name, data) => name === "fleets" && show(data),
    onState: (state) => {
      if (state === "lost" && fleets === null) load();
      onConnection(state);
    },
  });

  /** Only where the stream does not come up: a listing says why, or is better than nothing. */
  async function load() {
    try {
      show(await getFleets());
    } catch (error) {
      if (fleets !== null) return;
      list.removeAttribute("aria-busy");
      drawn = "";
      fill(list, errorCard("The fleets could not be loaded", error.message, () => {
        load();
        stream.retryNow();
      }));
    }
  }

  function show(found) {
    const first = fleets === null;
    fleets = found;
    list.removeAttribute("aria-busy");
    onFleets(found);
    if (first && openOnly && found.length === 1) openOnly(found[0].fleet_id);
    else draw();
  }

  function draw() {
    const key = JSON.stringify(fleets);
    if (key === drawn) return;
    drawn = key;
    const focused = list.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    fill(list, fleets.length ? h("ul", { class: "plain" }, fleets.map(card)) : empty());
    if (focused !== null) [...list.querySelectorAll("a")].find((link) => link.getAttribute("href") === focused)?.focus();
  }

  return {
    element,
    tick() {
      for (const time of list.querySelectorAll("time")) time.textContent = ago(time.dateTime);
    },
    retry: () => stream.retryNow(),
    destroy: () => stream.close(),
  };
}

function card(fleet) {
  const members = fleet.member_count === 1 ? "1 member" : `${fleet.member_count} members`;
  return h("li", {},
    h("a", { class: "card fleet-card", href: fleetPath(fleet.fleet_id) },
      h("span", { class: "fleet-name" }, h("bdi", {}, fleet.name ?? "unnamed")),
      h("span", { class: "muted" }, `fleet ${fleet.fleet_id} · ${members} · started `,
        h("time", { datetime: fleet.created_at, title: fullTime(fleet.created_at) }, ago(fleet.created_at)))));
}

function empty() {
  return h("div", { class: "empty" },
    h("h2", {}, "No fleet is running"),
    h("p", {}, "Start one from inside a tmux pane, and it appears here:"),
    h("pre", { class: "command" }, "cafleet fleet create --name my-team --coding-agent claude"),
    h("p", {}, "Or watch a small one at work, without any account:"),
    h("pre", { class: "command" }, "cafleet demo --keep"));
}
