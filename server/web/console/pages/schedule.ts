// Schedules in words: `{"cron": "0 8 * * 1", "timezone": "Europe/Berlin"}` is "Every Monday at 08:00, Europe/Berlin".

import type { Schemas } from "../api/client";
import { texts } from "../texts/en";

const text = texts.schedule;

/** Times that people choose; everything else is a cron expression. */
export type Every = "hour" | "day" | "weekday" | "week" | "month";

export function cronOf(every: Every, hour: number, minute: number, weekday: number, monthday: number): string {
  const at = `${minute} ${hour}`;
  return {
    hour: `${minute} * * * *`,
    day: `${at} * * *`,
    weekday: `${at} * * 1-5`,
    week: `${at} * * ${weekday}`,
    month: `${at} ${monthday} * *`,
  }[every];
}

/** A schedule as the fields of a form have it. */
export interface Times {
  every: Every | "cron";
  /** Hour and minute, as in 08:00. */
  clock: string;
  weekday: string;
  monthday: string;
  cron: string;
  zone: string;
}

/** The named schedules of the API. */
const WORDS: Record<string, Every> = { hourly: "hour", daily: "day", weekly: "week", monthly: "month" };

/** The fields for a schedule; without one those of a new report, in the zone of the user. */
export function timesOf(schedule: Schemas["Schedule"] | undefined, zone: string): Times {
  const fresh: Times = { every: "week", clock: "08:00", weekday: "1", monthday: "1", cron: "0 8 * * 1", zone };
  if (schedule === undefined) return fresh;
  if (typeof schedule === "string") return { ...fresh, every: WORDS[schedule] ?? "week", zone: "UTC" };
  return { ...fresh, every: "cron", cron: schedule.cron, zone: schedule.timezone ?? "UTC" };
}

export function scheduleOf({ every, clock, weekday, monthday, cron, zone }: Times): Schemas["CronSchedule"] {
  const [hour = 8, minute = 0] = clock.split(":").map(Number);
  return {
    cron: every === "cron" ? cron : cronOf(every, hour, minute, Number(weekday), Number(monthday)),
    timezone: zone,
  };
}

const WHOLE = /^\d+$/;

export function scheduleInWords(schedule: Schemas["Schedule"]): string {
  if (typeof schedule === "string") return text.names[schedule] ?? schedule;
  const zone = schedule.timezone ?? "UTC";
  const [minute = "", hour = "", day = "", month = "", weekday = ""] = schedule.cron.trim().split(/\s+/);
  const clock = `${hour.padStart(2, "0")}:${minute.padStart(2, "0")}`;
  const isPlain = WHOLE.test(minute) && month === "*";
  if (isPlain && hour === "*" && day === "*" && weekday === "*") return text.hourly(minute.padStart(2, "0"));
  if (!isPlain || !WHOLE.test(hour)) return text.cron(schedule.cron, zone);
  if (day === "*" && weekday === "*") return text.daily(clock, zone);
  if (day === "*" && weekday === "1-5") return text.weekdays(clock, zone);
  if (day === "*" && /^[0-6]$/.test(weekday)) return text.weekly(text.days[Number(weekday)] ?? weekday, clock, zone);
  if (WHOLE.test(day) && weekday === "*") return text.monthly(day, clock, zone);
  return text.cron(schedule.cron, zone);
}
