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
