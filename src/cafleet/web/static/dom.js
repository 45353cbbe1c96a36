// Building elements. Text always enters the page as text: nothing here parses HTML.

const SVG = "http://www.w3.org/2000/svg";

/**
 * An element. `props`: `class`, `on` (event name to listener), `data` (dataset), `vars` (CSS custom
 * properties); a boolean switches an attribute; null and undefined are left out; anything else is an
 * attribute. `children`: nodes and strings; null, undefined and false are left out.
 */
export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else if (name === "data") {
      Object.assign(element.dataset, value);
    } else if (name === "vars") {
      for (const [key, setting] of Object.entries(value)) element.style.setProperty(key, setting);
    } else if (name === "class") {
      element.className = value;
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
}

/** Put `children` in the place of everything that `element` holds. */
export function fill(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

/** Set a text only where it differs, so that assistive technology and selections are left alone. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

const ICONS = {
  send: "M4 12 20 4l-5 16-3.5-6.5zM11.5 13.5 20 4",
  check: "M5 12.5 10 17.5 19 7",
  checks: "M2.5 12.5 7 17.5 15 7M11.5 16.5l1 1L21 7",
  clock: "M12 7v5l3 2M12 3.5a8.5 8.5 0 1 1 0 17 8.5 8.5 0 0 1 0-17",
  all: "M4 10v4h3l6 4V6l-6 4zM16.5 9a4 4 0 0 1 0 6M19 6.5a8 8 0 0 1 0 11",
  bell: "M6 16.5V11a6 6 0 0 1 12 0v5.5l1.5 2h-15zM10 20.5h4",
  close: "M6 6l12 12M18 6 6 18",
  back: "M14.5 5.5 8 12l6.5 6.5",
  down: "M12 5v14M6 13l6 6 6-6",
  sun: "M12 8a4 4 0 1 1 0 8 4 4 0 0 1 0-8M12 2.5v2M12 19.5v2M2.5 12h2M19.5 12h2M5.3 5.3l1.4 1.4M17.3 17.3l1.4 1.4M18.7 5.3l-1.4 1.4M6.7 17.3l-1.4 1.4",
  moon: "M19.5 14.5A8 8 0 0 1 9.5 4.5a8 8 0 1 0 10 10",
  auto: "M12 3.5a8.5 8.5 0 1 1 0 17 8.5 8.5 0 0 1 0-17M12 3.5v17M12 8h6.5M12 12h8.3M12 16h6.5",
  keyboard: "M3 7h18v10H3zM7 10.5h.01M10.5 10.5h.01M14 10.5h.01M17 10.5h.01M8 14h8",
  people: "M9 11.5a3.2 3.2 0 1 0 0-6.4 3.2 3.2 0 0 0 0 6.4M3 19c.4-3.2 2.8-5 6-5s5.600 1.800 6 5M15.500 5.400a3 3 0 0 1 0 5.800M17 14.300c2.300.500 3.700 2.200 4 4.700",
  chat: "M4 5.500h16v10.500h-9l-4.500 3.500V16H4z",
  pulse: "M3 12h4l2.500-6 4.500 12 2.500-6H21",
  reply: "M10 6 4.500 11.500 10 17M5 11.500h8.500a6 6 0 0 1 6 6v.500",
};

/** A decorative line drawing; hidden from assistive technology, so its button needs a label. */
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  return svg;
}

let announcements = [];
let announceTimer = 0;

/** Say something to screen readers, gathered so that a busy fleet does not talk without end. */
export function announce(text) {
  announcements.push(text);
  clearTimeout(announceTimer);
  announceTimer = setTimeout(() => {
    const gathered = announcements.length > 3 ? `${announcements.length} updates` : announcements.join(". ");
    document.getElementById("announcer").textContent = gathered;
    announcements = [];
  }, 700);
}
