// @ts-check
// The one door to the view library.
//
// Elements are written as `html` templates, own components inside them as `${h(Card, { … })}`: the
// type checker reads calls, not templates. Nothing else imports from `vendor/`.

import { h } from "../vendor/preact.js";
import htm from "../vendor/htm.js";

export { h, render, Fragment } from "../vendor/preact.js";
export { useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "../vendor/hooks.js";
export { batch, computed, effect, signal } from "../vendor/signals.js";

/** @type {(strings: TemplateStringsArray, ...values: any[]) => any} */
export const html = htm.bind(h);
