// @ts-check
// What the parts that come later share with the page, through one door.
//
// The bundler cuts a file for every set of entries that need a module; with one door there is one set,
// and the page is two files instead of eight.

export { h, html, useEffect, useId, useLayoutEffect, useRef, useState } from "../shared/ui.js";
export { humanize } from "../shared/format.js";
export { words } from "../shared/words.js";
export { BarList } from "../charts/groups.js";
export { NumberTile } from "../charts/kinds.js";
export { isEmpty } from "../charts/series.js";
export { tableOf } from "../charts/table.js";
export { LineChart } from "../charts/timed.js";
export { chosenOf } from "./drill.js";
export { hasDates } from "./filters.js";
