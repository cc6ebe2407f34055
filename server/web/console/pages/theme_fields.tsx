// Colours of an embed as fields, for the dashboard's own theme and for that of a page that shows it.

import { texts } from "../texts/en";
import { Select, type Form } from "../ui/form";

const text = texts.theme;

/** Colours of a theme, as the message `setTheme` names them, and their values without one. */
const COLORS = [
  ["primaryColor", "#315ed9"],
  ["backgroundColor", "#f7f7f5"],
  ["cardBackground", "#ffffff"],
  ["cardBorder", "#e6e5e1"],
  ["textColor", "#17181c"],
  ["mutedColor", "#6b6e78"],
] as const;
const MODES = ["", "light", "dark"] as const;

/** A theme as the fields have it. A colour with its usual value is left to the embed; others that were set remain. */
export function themeOf(value: (name: string) => string, before: Record<string, unknown> = {}) {
  const theme = { ...before };
  for (const [name, usual] of COLORS) {
    if (value(name) && value(name) !== usual) theme[name] = value(name);
    else delete theme[name];
  }
  if (value("mode")) theme.mode = value("mode");
  else delete theme.mode;
  return theme;
}

export function ThemeFields({ in: form, theme = {} }: { in: Form; theme?: Record<string, string> }) {
  return (
    <>
      <fieldset class="checks">
        <legend>{text.title}</legend>
        {COLORS.map(([name, usual]) => (
          <label key={name} class="color">
            <input type="color" name={name} defaultValue={theme[name] ?? usual} />
            <span>{text.colors[name]}</span>
          </label>
        ))}
      </fieldset>
      <Select
        in={form}
        name="mode"
        label={text.mode}
        defaultValue={theme.mode ?? ""}
        options={MODES.map((mode) => [mode, text.modes[mode]] as const)}
      />
    </>
  );
}
