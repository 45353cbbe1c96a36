// The list of live fleets.

import { getFleets } from "../api.js";
import { fill, h } from "../dom.js";
import { fleetPath } from "../router.js";
import { ago, fullTime } from "../time.js";
import { errorCard } from "./parts.js";

/** `openOnly(fleetId)`: called instead of showing a list of one; null: the list is wanted. */
export function fleetsPage({ unknown, openOnly }) {
  const list = h("div", { class: "fleet-list", "aria-busy": "true" }, h("p", { class: "muted" }, "Loading…"));
  const page = h("div", { class: "fleets" },
    h("h1", {}, "Fleets"),
    unknown && h("p", { class: "card", role: "alert" }, "There is no page at this address."),
    list);

  async function load() {
    try {
      const fleets = await getFleets();
      list.removeAttribute("aria-busy");
      if (openOnly && fleets.length === 1) openOnly(fleets[0].fleet_id);
      else fill(list, fleets.length ? h("ul", { class: "plain" }, fleets.map(card)) : empty());
    } catch (error) {
      list.removeAttribute("aria-busy");
      fill(list, errorCard("The fleets could not be loaded", error.message, load));
    }
  }

  load();
  return page;
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
    h("p", {}, "Start one from inside a tmux pane, then reload this page:"),
    h("pre", { class: "command" }, "cafleet fleet create --name my-team --coding-agent claude"),
    h("p", {}, "Or watch a small one at work, without any account:"),
    h("pre", { class: "command" }, "cafleet demo --keep"));
}
