// @ts-check
// The one door to the view library.
//
// Elements are written as `html` templates, own components inside them as `${h(Card, { … })}`: the
// type checker reads calls, not templates. Nothing else imports from `vendor/`.

import { h } from "../vendor/preact.js";
import * as hooks from "../vendor/hooks.js";
import htm from "../vendor/htm.js";

export { h, render, Fragment } from "../vendor/preact.js";
export { useEffect, useId, useLayoutEffect } from "../vendor/hooks.js";
export { batch, signal } from "../vendor/signals.js";

/** @type {(strings: TemplateStringsArray, ...values: any[]) => any} */
export const html = htm.bind(h);

// The vendored files carry no types; these three are where that would hide mistakes.
/** @type {<T>(make: () => T, inputs: any[]) => T} */
export const useMemo = hooks.useMemo;
/** @type {<T>(initial: T) => { current: T }} */
export const useRef = hooks.useRef;
/** @type {<T>(initial: T) => [T, (next: T | ((old: T) => T)) => void]} */
export const useState = hooks.useState;
