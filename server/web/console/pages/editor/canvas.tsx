// The grid of widgets, with handles to move and resize them by mouse, touch and keyboard.
//
// A widget's handle: drag it, or press Space and use the arrows (with Shift they resize); Enter drops, Escape takes it
// back. Each step is said to screen readers.

import { useEffect, useRef, useState } from "preact/hooks";
import { texts } from "../../texts/en";
import { Icon } from "../../ui/icon";
import { WidgetCard, type Looking, type Widget } from "../../ui/widget";
import { COLUMNS, placed } from "./layout";

const text = texts.editor;
const ROW_PX = 44;
const GAP_PX = 16;

type Layout = Widget["layout"];

interface CanvasProps {
  widgets: Widget[];
  looking: Looking;
  selected: string | null;
  onSelect: (id: string) => void;
  onChange: (widgets: Widget[]) => void;
}

const ARROWS: Record<string, readonly [dx: number, dy: number]> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

export function Canvas({ widgets, looking, selected, onSelect, onChange }: CanvasProps) {
  const grid = useRef<HTMLDivElement>(null);
  /** The widgets as they stand while one is dragged or lifted. */
  const [tried, setTried] = useState<{ id: string; widgets: Widget[]; start: Layout } | null>(null);
  const [said, setSaid] = useState("");
  const shown = tried?.widgets ?? widgets;

  const cell = () => ((grid.current?.clientWidth ?? 1200) + GAP_PX) / COLUMNS;
  const layoutIn = (list: Widget[], id: string) => list.find((widget) => widget.id === id)?.layout;

  const drag = (event: PointerEvent, widget: Widget, isResize: boolean) => {
    if (event.button !== 0) return;
    event.preventDefault();
    onSelect(widget.id);
    const handle = event.currentTarget as HTMLElement;
    handle.focus();
    handle.setPointerCapture(event.pointerId);
    const [fromX, fromY, scrolled] = [event.clientX, event.clientY, scrollY];
    const start = widget.layout;
    let latest = widgets;
    const move = (now: PointerEvent) => {
      const dx = Math.round((now.clientX - fromX) / cell());
      const dy = Math.round((now.clientY - fromY + scrollY - scrolled) / (ROW_PX + GAP_PX));
      const target = isResize
        ? { ...start, w: Math.min(start.w + dx, COLUMNS - start.x), h: start.h + dy }
        : { ...start, x: start.x + dx, y: start.y + dy };
      latest = placed(widgets, widget.id, target);
      setTried({ id: widget.id, widgets: latest, start });
    };
    const end = (isDone: boolean) => {
      handle.removeEventListener("pointermove", move);
      setTried(null);
      if (isDone && latest !== widgets) onChange(latest);
    };
    handle.addEventListener("pointermove", move);
    handle.addEventListener("pointerup", () => end(true), { once: true });
    handle.addEventListener("pointercancel", () => end(false), { once: true });
  };

  const press = (event: KeyboardEvent, widget: Widget) => {
    const isLifted = tried?.id === widget.id;
    const arrow = ARROWS[event.key];
    if (event.key === " " || (event.key === "Enter" && isLifted)) {
      event.preventDefault();
      if (!isLifted) {
        setTried({ id: widget.id, widgets, start: widget.layout });
        setSaid(text.lifted(widget.title));
      } else {
        onChange(tried.widgets);
        setTried(null);
        setSaid(text.dropped(widget.title));
      }
    } else if (event.key === "Escape" && isLifted) {
      event.preventDefault();
      event.stopPropagation();
      setTried(null);
      setSaid(text.putBack(widget.title));
    } else if (arrow && isLifted) {
      event.preventDefault();
      const [dx, dy] = arrow;
      const now = layoutIn(tried.widgets, widget.id) ?? widget.layout;
      const target = event.shiftKey
        ? { ...now, w: Math.min(now.w + dx, COLUMNS - now.x), h: now.h + dy }
        : { ...now, x: now.x + dx, y: now.y + dy };
      // Moving down means below the next one, not one row that it would be pulled up from again.
      let next = placed(widgets, widget.id, target);
      for (let more = 1; !event.shiftKey && dy > 0 && layoutIn(next, widget.id)?.y === now.y && more < 12; more++)
        next = placed(widgets, widget.id, { ...target, y: target.y + more });
      setTried({ ...tried, widgets: next });
      const { x, y, w, h } = layoutIn(next, widget.id) ?? target;
      setSaid(text.at(x + 1, y + 1, w, h));
    } else if (event.key === "Enter") {
      onSelect(widget.id);
    }
  };

  return (
    <div class="canvas-box">
      <div ref={grid} class="grid editing" role="list" aria-label={text.canvas}>
        {shown.map((widget) => {
          const { x, y, w, h } = widget.layout;
          const isHeld = tried?.id === widget.id;
          return (
            <div
              key={widget.id}
              role="listitem"
              class={`card is-${widget.kind}${widget.id === selected ? " selected" : ""}${isHeld ? " held" : ""}`}
              aria-label={widget.title}
              data-id={widget.id}
              style={{ "--x": x + 1, "--y": y + 1, "--w": w, "--h": h }}
              onClick={() => onSelect(widget.id)}
            >
              <button
                type="button"
                class="handle"
                aria-label={text.handle(widget.title)}
                aria-describedby="canvas-keys"
                aria-pressed={isHeld}
                onPointerDown={(event) => drag(event, widget, false)}
                onKeyDown={(event) => press(event, widget)}
                onBlur={() => isHeld && setTried(null)}
              >
                <Icon name="more" />
              </button>
              <Still widget={widget} looking={looking} />
              <i class="resize" aria-hidden="true" onPointerDown={(event) => drag(event, widget, true)} />
            </div>
          );
        })}
      </div>
      <p id="canvas-keys" class="vh">
        {text.keys}
      </p>
      <p class="vh" role="status">
        {said}
      </p>
    </div>
  );
}

/** The card's content; nothing in it can be pressed while the page is edited. */
function Still({ widget, looking }: { widget: Widget; looking: Looking }) {
  const ref = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (ref.current) ref.current.inert = true;
  }, []);
  return (
    <div ref={ref} class="still">
      <WidgetCard widget={widget} looking={looking} />
    </div>
  );
}

/** The same grid for looking only. */
export function Board({ widgets, looking }: { widgets: Widget[]; looking: Looking }) {
  return (
    <div class="canvas-box">
      <div class="grid">
        {widgets.map((widget) => {
          const { x, y, w, h } = widget.layout;
          return (
            <section
              key={widget.id}
              class={`card is-${widget.kind}`}
              aria-label={widget.title}
              style={{ "--x": x + 1, "--y": y + 1, "--w": w, "--h": h }}
            >
              <WidgetCard widget={widget} looking={looking} />
            </section>
          );
        })}
      </div>
    </div>
  );
}
