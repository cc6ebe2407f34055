// When a report runs, as fields, with the same in words below, and the next times.

import { answer, api } from "../api/client";
import { useData } from "../api/cache";
import { useDebounced } from "../state/debounced";
import { texts } from "../texts/en";
import { Field, Select, type Form } from "../ui/form";
import { dayTime } from "../ui/time";
import { scheduleInWords, scheduleOf, type Times } from "./schedule";

const text = texts.schedule;
const EVERY: readonly Times["every"][] = ["day", "weekday", "week", "month", "hour", "cron"];

interface ScheduleProps {
  in: Form;
  times: Times;
  change: (part: Partial<Times>) => void;
}

export function ScheduleFields({ in: form, times, change }: ScheduleProps) {
  return (
    <>
      <div class="sentence-fields">
        <Select
          name="every"
          label={text.every}
          value={times.every}
          options={EVERY.map((one) => [one, text.everies[one]] as const)}
          onChange={(event) => change({ every: event.currentTarget.value as Times["every"] })}
        />
        {times.every === "week" && (
          <Select
            name="weekday"
            label={text.weekday}
            value={times.weekday}
            options={text.days.map((name, day) => [String(day), name] as const)}
            onChange={(event) => change({ weekday: event.currentTarget.value })}
          />
        )}
        {times.every === "month" && (
          <Field
            name="monthday"
            label={text.monthday}
            type="number"
            min={1}
            max={28}
            value={times.monthday}
            onInput={(event) => change({ monthday: event.currentTarget.value })}
          />
        )}
        {times.every !== "cron" && times.every !== "hour" && (
          <Field
            name="clock"
            label={text.clock}
            type="time"
            required
            value={times.clock}
            onInput={(event) => change({ clock: event.currentTarget.value })}
          />
        )}
        {times.every === "cron" && (
          <Field
            in={form}
            name="schedule"
            label={text.cronLabel}
            required
            value={times.cron}
            onInput={(event) => change({ cron: event.currentTarget.value })}
          />
        )}
        <Field
          name="zone"
          label={text.zone}
          required
          value={times.zone}
          list="report-zones"
          onInput={(event) => change({ zone: event.currentTarget.value })}
        />
        <datalist id="report-zones">
          {Intl.supportedValuesOf("timeZone").map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
      </div>
      <p class="note" role="status">
        {scheduleInWords(scheduleOf(times))}
        <br />
        <NextRuns times={times} />
      </p>
    </>
  );
}

/** The next times as the server computes them, or the part of the schedule that is wrong. */
function NextRuns({ times }: { times: Times }) {
  const schedule = JSON.stringify(scheduleOf(times));
  const asked = useDebounced(schedule);
  const isComplete = times.clock !== "" && Number(times.monthday) > 0;
  const preview = useData(
    ["report-preview", asked],
    (signal) => answer(api.POST("/v1/reports/preview", { signal, body: { schedule: JSON.parse(asked) } })),
    { enabled: isComplete },
  );
  if (!isComplete || asked !== schedule) return null;
  const { error, value } = preview;
  if (error) {
    const faults: Record<string, string> = { "schedule.timezone": text.noZone, "schedule.cron": text.noCron };
    return <span class="fault">{faults[error.body.field ?? ""] ?? error.message}</span>;
  }
  return value ? <span>{text.next(value.next_runs.map((at) => dayTime(at)).join("; "))}</span> : null;
}
