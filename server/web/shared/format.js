// @ts-check
// Numbers and dates as people read them, by Intl, in the viewer's locale.
//
// `short` is for places with little room (10,000 and more become 41.2K), `full` for tooltips, tables
// and screen readers. An axis has one unit for all its labels. Minus is U+2212; nothing is "—".

import { words } from "./words.js";

export { pickLocale } from "./locale.js";

/**
 * How a widget's values read (`viz.format`). `percent` takes fractions, `duration` milliseconds
 * unless `unit` is "s", `bytes` bytes.
 * @typedef {{ style?: string, unit?: string | null, currency?: string | null, decimals?: number | null }} Spec
 */
/** @typedef {"minute" | "hour" | "day" | "week" | "month"} Granularity */
/** @typedef {ReturnType<typeof createFormat>} Format */

/** Letters of a period's name. @type {Record<string, string>} */
const UNITS = { h: "hour", d: "day", w: "week", m: "month" };

export const NOTHING = "—";
const NBSP = "\u00a0";

const DURATIONS = [
  [3_600_000, "h"],
  [60_000, "min"],
  [1000, "s"],
  [1, "ms"],
];
const SIZES = [
  [1e12, "TB"],
  [1e9, "GB"],
  [1e6, "MB"],
  [1e3, "KB"],
  [1, "B"],
];

/** Fraction digits that keep about three significant ones. @param {number} value */
function digits(value) {
  const size = Math.abs(value);
  return Number.isInteger(value) || size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : size >= 0.01 ? 3 : 5;
}

/** Unit steps of a spec, largest first, or null for plain numbers. @param {Spec} spec @returns {any[] | null} */
function steps(spec) {
  if (spec.style === "bytes") return SIZES;
  return spec.style === "duration" || spec.unit === "ms" || spec.unit === "s" ? DURATIONS : null;
}

/** @param {any[]} of @param {number} value */
const stepFor = (of, value) => of.find(([size]) => Math.abs(value) >= size) ?? of[of.length - 1];

/**
 * The change from `previous` to `current`; null when one of them is missing.
 * @param {number | null | undefined} current @param {number | null | undefined} previous
 * @returns {{ direction: "up" | "down" | "flat", ratio: number | null } | null} ratio null: new, previous was 0
 */
export function change(current, previous) {
  if (current == null || previous == null) return null;
  if (previous === 0 && current !== 0) return { direction: current > 0 ? "up" : "down", ratio: null };
  const ratio = previous === 0 ? 0 : (current - previous) / Math.abs(previous);
  // Below half of the last digit shown it would read "0.0%" with an arrow.
  const direction = Math.abs(ratio) < 0.0005 ? "flat" : ratio > 0 ? "up" : "down";
  return { direction, ratio };
}

/** @param {string} locale @param {string} [timeZone] */
export function createFormat(locale, timeZone = "UTC") {
  /** @type {Map<string, any>} */
  const cache = new Map();
  /** @param {Intl.NumberFormatOptions} options @returns {Intl.NumberFormat} */
  const numbers = (options) => {
    const key = JSON.stringify(options);
    if (!cache.has(key)) cache.set(key, numberFormat(options));
    return cache.get(key);
  };
  /** What a widget asks for may be no currency, or more places than there are: then it is plain. @param {Intl.NumberFormatOptions} options */
  function numberFormat(options) {
    try {
      return new Intl.NumberFormat(locale, { signDisplay: "negative", ...options });
    } catch {
      return new Intl.NumberFormat(locale);
    }
  }
  /** @param {Intl.DateTimeFormatOptions} options @returns {Intl.DateTimeFormat} */
  const dates = (options) => {
    const key = JSON.stringify(options);
    return (
      cache.get(key) ?? (cache.set(key, new Intl.DateTimeFormat(locale, { timeZone, ...options })), cache.get(key))
    );
  };
  /** @param {number} value @param {Intl.NumberFormatOptions} options */
  const write = (value, options) =>
    numbers(options)
      .format(value === 0 ? 0 : value)
      .replace(/-/g, "\u2212");
  /** @param {number} value @param {number | null} [places] */
  const plain = (value, places) => write(value, places == null ? precision(value) : { maximumFractionDigits: places });
  /** Tiny values have no digits among the first few. @param {number} value @returns {Intl.NumberFormatOptions} */
  const precision = (value) =>
    value !== 0 && Math.abs(value) < 0.001 ? { maximumSignificantDigits: 3 } : { maximumFractionDigits: digits(value) };

  /** The compact suffix of a value: "K", "万", or nothing where the language has none. @param {number} v @param {Intl.NumberFormatOptions} [style] */
  const suffix = (v, style) =>
    numbers({ ...style, notation: "compact" })
      .formatToParts(v)
      .find((part) => part.type === "compact")?.value ?? "";

  /** @param {number | null | undefined} value @param {Spec | null} [spec] @param {boolean} [compact] */
  function value(value, spec, compact = false) {
    if (value == null || !Number.isFinite(value)) return NOTHING;
    const { style, unit, decimals, currency } = spec ?? {};
    const units = steps(spec ?? {});
    if (units) {
      const base = unit === "s" ? value * 1000 : value;
      const [size, name] = stepFor(units, base);
      return plain(base / size, decimals) + NBSP + name;
    }
    // Beyond the words that languages have for it, a number is told by its power of ten.
    if (Math.abs(value) >= (compact ? 1e15 : 1e21))
      return write(value, { notation: "scientific", maximumSignificantDigits: 3 });
    const large = compact && Math.abs(value) >= 10_000 && suffix(value) !== "";
    /** @type {Intl.NumberFormatOptions} */
    const options = large ? { notation: "compact", maximumFractionDigits: 1 } : {};
    if (style === "percent") {
      const places = decimals ?? (Math.abs(value) < 0.1 ? (compact ? 1 : 2) : compact ? 0 : 1);
      return write(value, { style: "percent", maximumFractionDigits: places });
    }
    if (style === "currency") {
      // Yen have no cents.
      const own =
        numbers({ style: "currency", currency: currency || "USD" }).resolvedOptions().maximumFractionDigits ?? 2;
      const places = decimals ?? Math.min(own, Math.abs(value) < 1000 ? 2 : large ? 1 : 0);
      const least = large || (Number.isInteger(value) && decimals == null) ? 0 : places;
      return write(value, {
        ...options,
        style: "currency",
        currency: currency || "USD",
        minimumFractionDigits: least,
        maximumFractionDigits: places,
      });
    }
    if (!large)
      Object.assign(
        options,
        decimals != null
          ? { maximumFractionDigits: decimals }
          : compact || Math.abs(value) < 0.001
            ? precision(value)
            : { maximumFractionDigits: Math.max(digits(value), Number.isInteger(value) ? 0 : 2) },
      );
    return write(value, options) + (unit ? NBSP + unit : "");
  }

  /**
   * One unit for a whole axis, chosen by its largest value.
   * @param {number} max @param {Spec | null} [spec]
   * @returns {{ divisor: number, label: (tick: number) => string }} `label` takes ticks already divided
   */
  function axis(max, spec) {
    const { style, unit, currency } = spec ?? {};
    if (max >= 1e15)
      return { divisor: 1, label: (t) => write(t, { notation: "scientific", maximumSignificantDigits: 3 }) };
    const units = steps(spec ?? {});
    if (units) {
      const scale = unit === "s" ? 1000 : 1;
      const [size, name] = stepFor(units, max * scale);
      return { divisor: size / scale, label: (t) => (t === 0 ? "0" : plain(t) + NBSP + name) };
    }
    if (style === "percent")
      return { divisor: 1, label: (t) => write(t, { style: "percent", maximumSignificantDigits: 3 }) };
    /** @type {Intl.NumberFormatOptions} */
    const money =
      style === "currency" ? { style: "currency", currency: currency || "USD", maximumFractionDigits: 0 } : {};
    const compact = numbers({ ...money, notation: "compact" });
    let divisor = 1;
    // The smallest power of ten with the symbol of the largest value: K in English, 万 in Japanese.
    if (max >= 10_000) while (suffix(divisor) !== suffix(max)) divisor *= 10;
    const pattern = divisor > 1 ? compact : numbers(money);
    return {
      divisor,
      label: (t) =>
        t === 0
          ? write(0, money)
          : pattern
              .formatToParts(divisor)
              .map((part) => (part.type === "integer" ? plain(Math.abs(t)) : part.type === "group" ? "" : part.value))
              .join("")
              .replace(/^/, t < 0 ? "\u2212" : ""),
    };
  }

  /**
   * The words for a change: "33%", "9.4%", ">999%", "New".
   * @param {number | null | undefined} current @param {number | null | undefined} previous @param {boolean} [signed]
   */
  function changeText(current, previous, signed = false) {
    const result = change(current, previous);
    if (!result) return NOTHING;
    if (result.ratio === null) return words.fresh;
    const sign = !signed || result.direction === "flat" ? "" : result.ratio < 0 ? "\u2212" : "+";
    const size = result.direction === "flat" ? 0 : Math.abs(result.ratio);
    if (size > 9.995) return `${sign}>${write(9.99, { style: "percent" })}`;
    return sign + write(size, { style: "percent", maximumFractionDigits: size < 0.0995 ? 1 : 0 });
  }

  /** Bucket start on an axis. @param {string} iso @param {Granularity} granularity @param {boolean} [dated] */
  function bucketShort(iso, granularity, dated = true) {
    const date = new Date(iso);
    if (granularity === "month")
      return dates({
        month: "short",
        year: new Date(date.getTime() + BUCKET_MS.day).getUTCMonth() ? undefined : "numeric",
      }).format(date);
    const clock = granularity === "hour" || granularity === "minute";
    return dates(
      clock && !dated
        ? { hour: "numeric", minute: granularity === "minute" ? "2-digit" : undefined }
        : { month: "short", day: "numeric" },
    ).format(date);
  }

  /** Bucket in full, for tooltips. @param {string} iso @param {Granularity} granularity */
  function bucketLong(iso, granularity) {
    const date = new Date(iso);
    if (granularity === "month") return dates({ month: "long", year: "numeric" }).format(date);
    if (granularity === "week")
      return words.weekOf(dates({ month: "short", day: "numeric", year: "numeric" }).format(date));
    const clock = granularity === "hour" || granularity === "minute";
    return dates({
      weekday: clock ? "short" : "long",
      month: "short",
      day: "numeric",
      ...(clock ? { hour: "numeric", minute: "2-digit" } : {}),
    }).format(date);
  }

  return {
    locale,
    axis,
    change: changeText,
    bucketShort,
    bucketLong,
    /** @param {number | null | undefined} v @param {Spec | null} [spec] */
    short: (v, spec) => value(v, spec, true),
    /** @param {number | null | undefined} v @param {Spec | null} [spec] */
    full: (v, spec) => value(v, spec, false),
    /** A part of a whole. @param {number} ratio */
    share: (ratio) =>
      ratio > 0 && ratio < 0.005
        ? "<" + write(0.01, { style: "percent" })
        : write(ratio, { style: "percent", maximumFractionDigits: 0 }),
    /** @param {string} iso */
    startsDay: (iso) =>
      dates({ hour: "2-digit", minute: "2-digit", hourCycle: "h23" }).format(new Date(iso)) === "00:00" ||
      (timeZone === "UTC" && iso.includes("T00:00")),
    /** @param {Date} date */
    clock: (date) => new Intl.DateTimeFormat(locale, { hour: "2-digit", minute: "2-digit" }).format(date),
    /** A length of time: "30 days", or "30d" when `narrow`. @param {string} name such as `30d` @param {"long" | "narrow"} [size] */
    period: (name, size = "long") => {
      const [, count, letter] = /^(\d+)([hdwm])$/.exec(name) ?? [];
      return letter ? numbers({ style: "unit", unit: UNITS[letter], unitDisplay: size }).format(Number(count)) : name;
    },
    /** @param {number} count */
    minutes: (count) => numbers({ style: "unit", unit: "minute", unitDisplay: "short" }).format(count),
    /** @param {string} iso */
    day: (iso) => dates({ month: "short", day: "numeric", year: "numeric" }).format(new Date(iso)),
  };
}

/** Months are not here: their length varies. */
const BUCKET_MS = { minute: 60_000, hour: 3_600_000, day: 86_400_000, week: 604_800_000 };

/** The instant a bucket ends. @param {string} iso @param {Granularity} granularity */
export function bucketEnd(iso, granularity) {
  const start = Date.parse(iso);
  if (granularity !== "month") return start + BUCKET_MS[granularity];
  // A month of any time zone is well begun half a month after its start.
  const inside = new Date(start + 15 * BUCKET_MS.day);
  return start + new Date(Date.UTC(inside.getUTCFullYear(), inside.getUTCMonth() + 1, 0)).getUTCDate() * BUCKET_MS.day;
}

/** A name from the data as a label: `error_code` → "Error code". @param {string} name */
export function humanize(name) {
  const spaced = name.replace(/[_-]+/g, " ").trim();
  return spaced.charAt(0).toUpperCase() + spaced.slice(1);
}
