// @ts-check
// The demo page: a fake product with a real embed, and everything that a host can do with it.
//
// It uses the public helper and nothing else, so it is also our own way to try an embed by hand.

import { mountDashboard } from "/sdk/v1/embed.js";

/** @typedef {import("../host/embed.js").InlayDashboard} InlayDashboard */

/** @type {<T extends HTMLElement>(id: string) => T} */
const byId = (id) => /** @type {any} */ (document.getElementById(id));

/** @type {Record<string, Record<string, string>>} */
const THEMES = {
  inlay: {
    primaryColor: "#315ed9",
    backgroundColor: "#f7f7f5",
    cardBackground: "#ffffff",
    cardBorder: "#e6e5e1",
    textColor: "#17181c",
    mutedColor: "#6b6e78",
  },
  teal: {
    primaryColor: "#0f766e",
    backgroundColor: "#fbf6ef",
    cardBackground: "#fffdf8",
    cardBorder: "#ecdfcd",
    textColor: "#2a211a",
    mutedColor: "#786a5c",
  },
  rose: {
    primaryColor: "#e11d48",
    backgroundColor: "#fff7f8",
    cardBackground: "#ffffff",
    cardBorder: "#f3d9de",
    textColor: "#1f1216",
    mutedColor: "#7b6068",
  },
  night: {
    primaryColor: "#a78bfa",
    backgroundColor: "#0b0d14",
    cardBackground: "#141824",
    cardBorder: "#262c3d",
    textColor: "#eef0f7",
    mutedColor: "#8d94a8",
  },
};

const tenant = byId("tenant");
const fetchEmbedUrl = async (/** @type {{ signal: AbortSignal }} */ { signal }) => {
  const response = await fetch(`/v1/demo/embed-url?tenant_id=${/** @type {any} */ (tenant).value}`, { signal });
  return response.json();
};

const dashboard = mountDashboard("#dashboard", { fetchEmbedUrl, label: "API usage" });

const log = byId("log");
for (const type of /** @type {const} */ ([
  "ready",
  "resize",
  "filter",
  "period-change",
  "drill",
  "error",
  "session-swapped",
])) {
  dashboard.on(type, (/** @type {any} */ detail) => {
    const line = document.createElement("li");
    const name = document.createElement("b");
    name.textContent = type;
    line.append(name, ` ${JSON.stringify(detail)}`);
    log.prepend(line);
    while (log.children.length > 100) log.lastChild?.remove();
  });
}

/** The six colours of the pickers. */
const colors = () =>
  Object.fromEntries(
    [...document.querySelectorAll("input[type=color]")].map((input) => [input.id, /** @type {any} */ (input).value]),
  );

/** @param {Record<string, string>} theme */
function show(theme) {
  for (const [key, value] of Object.entries(theme)) {
    const input = /** @type {HTMLInputElement} */ (byId(key));
    input.value = value;
    input.setAttribute("value", value);
  }
  dashboard.setTheme(theme);
  const { style } = document.documentElement;
  style.setProperty("--bg", theme.backgroundColor);
  style.setProperty("--card", theme.cardBackground);
  style.setProperty("--card-border", theme.cardBorder);
  style.setProperty("--text", theme.textColor);
  style.setProperty("--muted", theme.mutedColor);
}

byId("preset").addEventListener("change", (event) => show(THEMES[/** @type {any} */ (event.target).value]));
for (const input of document.querySelectorAll("input[type=color]"))
  input.addEventListener("input", () => show(colors()));
tenant.addEventListener("change", async () => {
  const { value } = /** @type {HTMLSelectElement} */ (tenant);
  const { embed_url } = await fetchEmbedUrl({ signal: AbortSignal.timeout(10_000) });
  // The last choice counts, however quickly it came.
  if (value === /** @type {HTMLSelectElement} */ (tenant).value) await dashboard.setEmbedUrl(embed_url).catch(() => {});
});
byId("week").addEventListener("click", () => dashboard.setFilters({ period: "7d", dateRanges: {} }));
byId("enterprise").addEventListener("click", () => dashboard.setFilters({ dimensions: { plan: "enterprise" } }));
byId("clear").addEventListener("click", () =>
  dashboard.setFilters({ dimensions: {}, numericRanges: {}, dateRanges: {} }),
);
byId("reload").addEventListener("click", () => dashboard.reload());
