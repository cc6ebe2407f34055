// Settings of a dashboard beside its widgets: the period that embeds start with, who may frame them, and their colours.

import type { Schemas } from "../../api/client";
import { texts } from "../../texts/en";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { Select, Submit, TextArea, useForm } from "../../ui/form";
import { PERIODS } from "../query_names";

const text = texts.dashboardSettings;
type Settings = Schemas["Settings"];

/** Colours of a theme, as the message `setTheme` names them, and what they are without one. */
const COLORS = [
  ["primaryColor", "#315ed9"],
  ["backgroundColor", "#f7f7f5"],
  ["cardBackground", "#ffffff"],
  ["cardBorder", "#e6e5e1"],
  ["textColor", "#17181c"],
  ["mutedColor", "#6b6e78"],
] as const;
const MODES = ["", "light", "dark"] as const;

/** Settings as the form has them. A colour that is the usual one is left to the embed. */
function settingsOf(value: (name: string) => string, before: Settings): Settings {
  const theme: Record<string, unknown> = { ...before.theme };
  for (const [name, usual] of COLORS) {
    if (value(name) && value(name) !== usual) theme[name] = value(name);
    else delete theme[name];
  }
  if (value("mode")) theme.mode = value("mode");
  else delete theme.mode;
  return {
    default_period: value("default_period"),
    allowed_origins: value("allowed_origins").split(/\s+/).filter(Boolean),
    theme,
  };
}

export function DashboardSettings({
  settings,
  onChange,
  onClose,
}: {
  settings: Settings;
  onChange: (settings: Settings) => Promise<void>;
  onClose: () => void;
}) {
  const theme = (settings.theme ?? {}) as Record<string, string>;
  const form = useForm(async (value) => {
    await onChange(settingsOf(value, settings));
    onClose();
  });
  return (
    <Dialog title={text.title} onClose={onClose}>
      <form {...form.props}>
        <Select
          in={form}
          name="default_period"
          label={text.period}
          defaultValue={settings.default_period}
          options={PERIODS.map((period) => [period, period] as const)}
          autofocus
        />
        <TextArea
          in={form}
          name="allowed_origins"
          label={text.origins}
          hint={text.originsHint}
          placeholder="https://app.example.com"
          defaultValue={settings.allowed_origins?.join("\n")}
        />
        <fieldset class="checks">
          <legend>{text.theme}</legend>
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
        <div class="foot">
          <Button onClick={onClose}>{texts.actions.cancel}</Button>
          <Submit form={form}>{texts.actions.save}</Submit>
        </div>
      </form>
    </Dialog>
  );
}
