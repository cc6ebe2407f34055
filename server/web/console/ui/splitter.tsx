// The bar between two boxes, which sets the height of the upper one: by pointer, or by arrow keys once it has focus.
//
//     <Splitter label="Height of the editor" value={height} min={120} max={600} onChange={setHeight} />

import { useRef } from "preact/hooks";

interface SplitterProps {
  label: string;
  /** Pixels. */
  value: number;
  min: number;
  max: number;
  onChange: (value: number) => void;
}

const STEP_PX = 20;

export function Splitter({ label, value, min, max, onChange }: SplitterProps) {
  const from = useRef<{ y: number; value: number } | null>(null);
  const set = (next: number) => onChange(Math.round(Math.min(Math.max(next, min), max)));
  const press = (event: KeyboardEvent) => {
    const next = { ArrowUp: value - STEP_PX, ArrowDown: value + STEP_PX, Home: min, End: max }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    set(next);
  };
  return (
    <div
      class="splitter"
      role="separator"
      tabIndex={0}
      aria-label={label}
      aria-orientation="horizontal"
      aria-valuenow={value}
      aria-valuemin={min}
      aria-valuemax={max}
      onKeyDown={press}
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        from.current = { y: event.clientY, value };
      }}
      onPointerMove={(event) => {
        if (from.current) set(from.current.value + event.clientY - from.current.y);
      }}
      onPointerUp={() => (from.current = null)}
      onPointerCancel={() => (from.current = null)}
    />
  );
}
