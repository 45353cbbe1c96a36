// Light, dark, or as the system says.

const KEY = "cafleet.theme";
const ORDER = ["auto", "light", "dark"];

/** Browsers may refuse storage (private windows): a setting then lasts as long as the page. */
export function remembered(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

export function remember(key, value) {
  try {
    localStorage.setItem(key, value);
  } catch {
    // Not kept.
  }
}

export function currentTheme() {
  const stored = document.documentElement.dataset.theme ?? remembered(KEY);
  return ORDER.includes(stored) ? stored : "auto";
}

export function applyTheme(theme) {
  document.documentElement.dataset.theme = theme;
}

export function nextTheme() {
  const theme = ORDER[(ORDER.indexOf(currentTheme()) + 1) % ORDER.length];
  applyTheme(theme);
  remember(KEY, theme);
  return theme;
}
