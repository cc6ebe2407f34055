// Permissions of an embed session: their form fields, their values, and the same in words.
//
//     <PermissionFields in={form} widgets={dashboard.widgets} />
//     permissionsOf(new FormData(form))     // { allow_drill_down: true, locked_filters: { plan: "pro" } }

import { ApiError, type Schemas } from "../api/client";
import { texts } from "../texts/en";
import { Check, Field, TextArea, type Form } from "../ui/form";
import { PERIODS } from "./query_names";

const text = texts.embedSessions;
type Permissions = Schemas["Permissions"];

interface FieldsProps {
  in: Form;
  /** Those of the dashboard, where one is chosen: each can be hidden. */
  widgets?: readonly Schemas["Widget"][];
}

export function PermissionFields({ in: form, widgets = [] }: FieldsProps) {
  return (
    <>
      <Check name="allow_drill_down" label={text.drill} defaultChecked />
      <details class="more-fields">
        <summary>{text.restrict}</summary>
        <TextArea in={form} name="locked_filters" label={text.locked} hint={text.lockedHint} placeholder="plan=pro" />
        <Field
          in={form}
          name="allowed_dimensions"
          label={text.dimensions}
          hint={text.dimensionsHint}
          placeholder="model, endpoint"
        />
        <Field in={form} name="max_date_range_days" label={text.days} type="number" min={1} max={3660} />
        <fieldset class="checks">
          <legend>{text.periods}</legend>
          {PERIODS.map((period) => (
            <Check key={period} name="allowed_periods" label={period} value={period} defaultChecked />
          ))}
          {form.errors.allowed_periods && (
            <p class="fault" role="alert">
              {form.errors.allowed_periods}
            </p>
          )}
        </fieldset>
        {widgets.length > 0 && (
          <fieldset class="checks">
            <legend>{text.hidden}</legend>
            {widgets.map(({ id, title }) => (
              <Check key={id} name="hidden_widgets" label={title} value={id} />
            ))}
          </fieldset>
        )}
      </details>
    </>
  );
}

/** Throws for invalid fields: a session must never have wider permissions than its form shows. */
export function checkPermissions(form: FormData): void {
  const isLine = (line: string) => line.trim() === "" || line.indexOf("=") > 0;
  const lines = String(form.get("locked_filters") ?? "").split("\n");
  const details = [
    ...(lines.every(isLine) ? [] : [{ field: "locked_filters", code: "invalid_field", message: text.lockedFault }]),
    ...(form.has("allowed_periods")
      ? []
      : [{ field: "allowed_periods", code: "invalid_field", message: text.periodsFault }]),
  ];
  if (details.length) throw new ApiError(400, { code: "invalid_field", error: details[0]?.message ?? "", details });
}

/** The permissions in a form; fields that were left open are absent. */
export function permissionsOf(form: FormData): Permissions {
  const all = (name: string) => form.getAll(name).map(String);
  const text = (name: string) => String(form.get(name) ?? "");
  const periods = all("allowed_periods") as Schemas["PeriodName"][];
  const dimensions = text("allowed_dimensions")
    .split(/[\s,]+/)
    .filter(Boolean);
  const locked = lockedOf(text("locked_filters"));
  const hidden = all("hidden_widgets");
  return {
    allow_drill_down: text("allow_drill_down") === "on",
    ...(Object.keys(locked).length ? { locked_filters: locked } : {}),
    ...(periods.length < PERIODS.length ? { allowed_periods: periods } : {}),
    ...(dimensions.length ? { allowed_dimensions: dimensions } : {}),
    ...(text("max_date_range_days") ? { max_date_range_days: Number(text("max_date_range_days")) } : {}),
    ...(hidden.length ? { hidden_widgets: hidden } : {}),
  };
}

/** Lines `name=value` as filters; a name that comes twice takes any of its values. */
function lockedOf(lines: string): Record<string, string | string[]> {
  const found = new Map<string, string | string[]>();
  for (const line of lines.split("\n")) {
    const at = line.indexOf("=");
    if (at < 1) continue;
    const [name, value] = [line.slice(0, at).trim(), line.slice(at + 1).trim()];
    const before = found.get(name);
    found.set(name, before === undefined ? value : [before, value].flat());
  }
  return Object.fromEntries(found);
}

/** Permissions as sentences: `["may drill down", "only plan = pro"]`. */
export function inWords(permissions: Permissions): string[] {
  const words = text.words;
  const list = (values: readonly string[]) => values.join(", ");
  const {
    locked_filters: locked = {},
    hidden_widgets: hidden = [],
    allowed_dimensions: dimensions,
    allowed_periods: periods,
    max_date_range_days: days,
  } = permissions;
  return [
    permissions.allow_drill_down ? words.drill : words.noDrill,
    ...Object.entries(locked).map(([name, value]) => words.only(name, list([value].flat() as string[]))),
    ...(hidden.length ? [words.hidden(hidden.length)] : []),
    ...(dimensions ? [dimensions.length ? words.dimensions(list(dimensions)) : words.noDimensions] : []),
    ...(periods ? [words.periods(list(periods))] : []),
    ...(days ? [words.days(days)] : []),
  ];
}
