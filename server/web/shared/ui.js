// @ts-check
// The one door to the view library.
//
// Elements are written as `html` templates, own components inside them as `${h(Card, { … })}`: the
// type checker reads calls, not templates. Nothing else imports from `vendor/`.

import { h } from "../vendor/preact.js";
import { useEffect, useLayoutEffect, useState } from "../vendor/hooks.js";
import htm from "../vendor/htm.js";

export { h, render, Fragment } from "../vendor/preact.js";
export { useEffect, useErrorBoundary, useId, useLayoutEffect, useMemo, useRef, useState } from "../vendor/hooks.js";

/** @type {(strings: TemplateStringsArray, ...values: any[]) => any} */
export const html = htm.bind(h);

/**
 * A value that components follow.
 * @template T @param {T} value
 */
export function signal(value) {
  /** @type {Set<() => void>} */ const watchers = new Set();
  return {
    get value() {
      return value;
    },
    set value(next) {
      if (next === value) return;
      value = next;
      for (const tell of watchers) tell();
    },
    /** @param {() => void} tell @returns {() => void} ends the watching */
    watch(tell) {
      watchers.add(tell);
      return () => watchers.delete(tell);
    },
  };
}

/** The value of a signal; the component is drawn again when it changes. @template T @param {{ value: T, watch: (tell: () => void) => () => void }} one @returns {T} */
export function useSignal(one) {
  const [, redraw] = useState(0);
  const { value } = one;
  useLayoutEffect(() => {
    const tell = () => redraw((n) => n + 1);
    // It may have changed between the drawing and now.
    if (one.value !== value) tell();
    return one.watch(tell);
  }, [one]);
  return value;
}

/**
 * A component whose module is loaded when it is first drawn. Until then, and when it cannot be
 * loaded, there is nothing; then `onClose` is told.
 * @param {() => Promise<{ default: (props: any) => any }>} load
 */
export function lazy(load) {
  /** @type {((props: any) => any) | null} */ let Loaded = null;
  return function Lazy(/** @type {any} */ props) {
    const [, redraw] = useState(0);
    useEffect(() => {
      if (!Loaded)
        load().then(
          (module) => {
            Loaded = module.default;
            redraw(1);
          },
          () => props.onClose?.(),
        );
    }, []);
    return Loaded && h(Loaded, props);
  };
}
