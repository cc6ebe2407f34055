// Settings of a dashboard beside its widgets: the period that embeds start with, who may frame them, and their colours.

import type { Schemas } from "../../api/client";
import { texts } from "../../texts/en";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { Select, Submit, TextArea, useForm } from "../../ui/form";
import { PERIODS } from "../query_names";
import { themeIn, themeOf, ThemeFields } from "../theme_fields";

const text = texts.dashboardSettings;
type Settings = Schemas["Settings"];

/** Settings as the form has them. */
function settingsOf(value: (name: string) => string, before: Settings): Settings {
  return {
    default_period: value("default_period"),
    allowed_origins: value("allowed_origins").split(/\s+/).filter(Boolean),
    theme: themeOf(value, themeIn(before)),
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
        <ThemeFields in={form} theme={themeIn(settings)} />
        <div class="foot">
          <Button onClick={onClose}>{texts.actions.cancel}</Button>
          <Submit form={form}>{texts.actions.save}</Submit>
        </div>
      </form>
    </Dialog>
  );
}
