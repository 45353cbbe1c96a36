// Addresses in the hash, so that every view can be linked, reloaded and gone back to:
//
//   #/                               fleets
//   #/fleets/1                       timeline
//   #/fleets/1/members               roster (its own view on a phone)
//   #/fleets/1/members/3[/sent]      one member, inbox or sent
//   #/fleets/1/monitor               monitor

const ROUTE = /^#\/fleets\/(\d{1,15})(?:\/(members|monitor)(?:\/(\d{1,15})(?:\/(inbox|sent))?)?)?$/;

/** `{view: fleets | timeline | members | member | monitor | unknown, fleet, member, box}` */
export function parseRoute(hash) {
  if (hash === "" || hash === "#" || hash === "#/") return { view: "fleets" };
  const match = ROUTE.exec(hash);
  if (match === null) return { view: "unknown" };
  const [, fleet, section, member, box] = match;
  const route = { view: "timeline", fleet: Number(fleet) };
  if (section === "monitor") return member ? { view: "unknown" } : { ...route, view: "monitor" };
  if (section === "members" && !member) return { ...route, view: "members" };
  if (section === "members") return { ...route, view: "member", member: Number(member), box: box ?? "inbox" };
  return route;
}

export const fleetsPath = () => "#/";
export const fleetPath = (fleet) => `#/fleets/${fleet}`;
export const rosterPath = (fleet) => `#/fleets/${fleet}/members`;
export const memberPath = (fleet, member, box = "inbox") =>
  `#/fleets/${fleet}/members/${member}${box === "sent" ? "/sent" : ""}`;
export const monitorPath = (fleet) => `#/fleets/${fleet}/monitor`;

export function go(path) {
  window.location.hash = path;
}
