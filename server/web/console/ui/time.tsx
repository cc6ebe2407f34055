// Times and numbers as people read them: `<Ago at="2026-11-24T10:00:00.000Z" />` is "3 min ago" with the full time in
// its title.

import { signal } from "@preact/signals";

const locale = navigator.language;
const relative = new Intl.RelativeTimeFormat(locale, { style: "short", numeric: "auto" });
const full = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "medium" });
const short = new Intl.DateTimeFormat(locale, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" });
const weekday = new Intl.DateTimeFormat(locale, {
  weekday: "short",
  month: "short",
  day: "numeric",
  hour: "2-digit",
  minute: "2-digit",
});
const date = new Intl.DateTimeFormat(locale, { dateStyle: "medium" });
const whole = new Intl.NumberFormat(locale, { maximumFractionDigits: 2 });
const compact = new Intl.NumberFormat(locale, { notation: "compact", maximumFractionDigits: 1 });
const COMPACT_FROM = 10_000;

const UNITS: readonly [Intl.RelativeTimeFormatUnit, number][] = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
  ["second", 1],
];
const MONTH_SECONDS = 30 * 86_400;

/** Moves every few seconds, so that times that are relative stay right. */
const now = signal(Date.now());
setInterval(() => (now.value = Date.now()), 5_000);

export const number = (value: number) => whole.format(value);
/** 12,300 as 12.3K; smaller numbers whole. */
export const shortNumber = (value: number) => (Math.abs(value) < COMPACT_FROM ? whole : compact).format(value);
export const fullTime = (iso: string) => full.format(new Date(iso));
export const shortTime = (iso: string) => short.format(new Date(iso));
/** "Mon, Nov 23, 07:00 AM". */
export const dayTime = (iso: string) => weekday.format(new Date(iso));
export const day = (iso: string) => date.format(new Date(iso));

/** "3 min ago", "in 2 hr.", "now"; a date beyond a month. */
export function ago(iso: string, from = Date.now()): string {
  const seconds = Math.round((Date.parse(iso) - from) / 1000);
  if (Math.abs(seconds) > MONTH_SECONDS) return day(iso);
  if (Math.abs(seconds) < 60) return relative.format(0, "second");
  const [unit, size] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? ["second", 1];
  return relative.format(Math.trunc(seconds / size), unit);
}

export function Ago({ at }: { at: string }) {
  // Read to be drawn again when it moves; the clock itself is newer.
  void now.value;
  return (
    <time dateTime={at} title={fullTime(at)}>
      {ago(at)}
    </time>
  );
}

export function bytes(value: number): string {
  const units = ["byte", "kilobyte", "megabyte", "gigabyte", "terabyte"] as const;
  const at = Math.min(Math.floor(Math.log10(Math.max(value, 1)) / 3), units.length - 1);
  return new Intl.NumberFormat(locale, {
    style: "unit",
    unit: units[at] ?? "byte",
    unitDisplay: "short",
    maximumFractionDigits: at ? 1 : 0,
  }).format(value / 1000 ** at);
}
