// Colours of an embed as fields, for the dashboard's own theme and for that of a page that shows it.

import type { Schemas } from "../api/client";
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

type Theme = Record<string, string>;

/** The theme in the settings of a dashboard. */
export const themeIn = ({ theme }: Schemas["Settings"]) => (theme ?? {}) as Theme;

/** The system's mode has two names. */
const modeOf = ({ mode }: Theme) => (mode === undefined || mode === "auto" ? "" : mode);

/** The theme of a dashboard as the fields have it. A colour with its usual value is left to the embed. */
export function themeOf(value: (name: string) => string, before: Theme): Theme {
  const theme = { ...before };
  for (const [name, usual] of COLORS) {
    if (value(name) && value(name) !== usual) theme[name] = value(name);
    else delete theme[name];
  }
  if (value("mode")) theme.mode = value("mode");
  else delete theme.mode;
  return theme;
}

/** What a page sets over the theme of its dashboard: the fields that differ from that. */
export function themeOver(value: (name: string) => string, base: Theme): Theme {
  const theme: Theme = {};
  for (const [name, usual] of COLORS) {
    if (value(name) && value(name) !== (base[name] ?? usual)) theme[name] = value(name);
  }
  if (value("mode") !== modeOf(base)) theme.mode = value("mode") || "auto";
  return theme;
}

/** Colours of six digits have a picker; those by name or function are text, which a picker would replace by black. */
function ColorInput({ name, color }: { name: string; color: string }) {
  return /^#[0-9a-f]{6}$/i.test(color) ? (
    <input type="color" name={name} defaultValue={color} />
  ) : (
    <input type="text" class="input small" name={name} defaultValue={color} />
  );
}

export function ThemeFields({ in: form, theme }: { in: Form; theme: Theme }) {
  return (
    <>
      <fieldset class="checks">
        <legend>{text.title}</legend>
        {COLORS.map(([name, usual]) => (
          <label key={name} class="color">
            <ColorInput name={name} color={theme[name] ?? usual} />
            <span>{text.colors[name]}</span>
          </label>
        ))}
      </fieldset>
      <Select
        in={form}
        name="mode"
        label={text.mode}
        defaultValue={modeOf(theme)}
        options={MODES.map((mode) => [mode, text.modes[mode]] as const)}
      />
    </>
  );
}
