// Lines across a chart where a value begins to matter, in the inspector: up to three, each with a value, a name and
// a colour. They are drawn as they are typed.

import { texts } from "../../texts/en";
import { Button } from "../../ui/button";
import type { Widget } from "../../ui/widget";

const text = texts.editor;
const THRESHOLDS_MAX = 3;
const TONES = ["plain", "good", "warn", "bad"] as const;

export interface Threshold {
  value: number;
  label?: string;
  tone?: string;
}

/** The thresholds among drawing options, which hold anything. */
export function listed(thresholds: unknown): Threshold[] {
  const isThreshold = (one: unknown): one is Threshold =>
    typeof one === "object" && one !== null && "value" in one && typeof one.value === "number";
  return Array.isArray(thresholds) ? thresholds.filter(isThreshold) : [];
}

interface ThresholdsProps {
  widget: Widget;
  list: Threshold[];
  /** Nothing where none is left; `merged` names the field that is typed in. */
  onChange: (thresholds: Threshold[] | undefined, merged?: string) => void;
}

export function Thresholds({ widget, list, onChange }: ThresholdsProps) {
  const set = (at: number, part: Partial<Threshold>, merged?: string) =>
    onChange(
      list.map((one, index) => (index === at ? { ...one, ...part } : one)),
      merged && `${widget.id} threshold ${at} ${merged}`,
    );
  const remove = (at: number) => {
    const rest = list.filter((_, index) => index !== at);
    onChange(rest.length ? rest : undefined);
  };
  return (
    <fieldset class="group">
      <legend>{text.thresholds}</legend>
      {list.map((one, at) => (
        <div key={at} class="threshold-row">
          <input
            class="input small"
            type="number"
            step="any"
            aria-label={text.thresholdValue(at + 1)}
            value={one.value}
            onInput={(event) => {
              const value = event.currentTarget.valueAsNumber;
              if (Number.isFinite(value)) set(at, { value }, "value");
            }}
          />
          <input
            class="input small"
            aria-label={text.thresholdLabel(at + 1)}
            placeholder={text.thresholdName}
            maxLength={40}
            value={one.label ?? ""}
            onInput={(event) => set(at, { label: event.currentTarget.value }, "label")}
          />
          <select
            class="input small"
            aria-label={text.thresholdTone(at + 1)}
            value={one.tone ?? "plain"}
            onChange={(event) => set(at, { tone: event.currentTarget.value })}
          >
            {TONES.map((tone) => (
              <option key={tone} value={tone}>
                {text.tones[tone]}
              </option>
            ))}
          </select>
          <button
            type="button"
            class="icon-button"
            aria-label={text.removeThreshold(at + 1)}
            onClick={() => remove(at)}
          >
            ×
          </button>
        </div>
      ))}
      {list.length < THRESHOLDS_MAX && (
        <Button onClick={() => onChange([...list, { value: list.at(-1)?.value ?? 100, tone: "bad" }])}>
          {text.addThreshold}
        </Button>
      )}
    </fieldset>
  );
}
