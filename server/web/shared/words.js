// @ts-check
// Every sentence the viewer can read, in one place, so that another language is another object.
// Sentence case, plain verbs, no exclamation marks.

export const words = {
  nothing: "Nothing in this period",
  noEvents: "No events in this period",
  noMatch: (/** @type {string} */ period, /** @type {string} */ filters) =>
    `No events in the last ${period}${filters && ` with ${filters}`}.`,
  clearFilters: "Clear filters",
  chartFailed: "This chart couldn’t load",
  numberFailed: "Couldn’t load.",
  retry: "Retry",
  tryAgain: "Try again",
  connectionLost: "The connection was interrupted.",
  unreachable: "The server couldn’t be reached.",
  busy: "The server is busy right now.",
  sessionEnded: "Your session has ended. Reload the page to continue.",
  notPublished: "This dashboard is no longer published.",
  offline: (/** @type {string} */ clock) => `You’re offline. Showing data from ${clock}.`,
  updating: "Updating",
  updated: "Updated",
  updatedNow: "Updated just now",
  updatedAgo: (/** @type {number} */ minutes) => `Updated ${minutes} min ago`,
  utc: "Times in UTC",
  period: "Period",
  filters: "Filters",
  locked: "locked",
  remove: (/** @type {string} */ name) => `Remove filter ${name}`,
  viewTable: (/** @type {string} */ title) => `View ${title} as a table`,
  topOf: (/** @type {string} */ shown, /** @type {string} */ total) => `Top ${shown} of ${total}`,
  more: (/** @type {number} */ count) => `and ${count} more`,
  cutAxis: "Axis doesn’t start at zero",
  soFar: "so far",
  partial: "partial",
  other: "Other",
  none: "(none)",
  total: "Total",
  value: "Value",
  share: "Share",
  change: "Change",
  previous: "Previous",
  thisPeriod: "This period",
  time: "Time",
  group: "Group",
  up: "up", down: "down", flat: "unchanged",
  versus: (/** @type {string} */ period) => `vs previous ${period}`,
  dataPoint: (/** @type {string} */ title) => `${title}, data points`,
};

/** Periods in words: "vs previous 30 days". @param {string} period */
export function periodWords(period) {
  const match = /^(\d+)([hdwm])$/.exec(period);
  if (!match) return "period";
  const unit = { h: "hour", d: "day", w: "week", m: "month" }[match[2]];
  return match[1] === "1" ? `${unit}` : `${match[1]} ${unit}s`;
}
