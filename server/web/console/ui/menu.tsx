// A menu behind a button: `<Menu label="Actions" items={[{ label: "Rename", act }]} />`. Native popover, arrow keys.

import { useId, useRef } from "preact/hooks";
import { Icon, type IconName } from "./icon";

export interface MenuItem {
  label: string;
  act: () => void;
  danger?: boolean;
}

interface MenuProps {
  label: string;
  items: MenuItem[];
  /** Beside an icon of its own the label is shown. */
  icon?: IconName;
}

export function Menu({ label, items, icon }: MenuProps) {
  const id = useId();
  const ref = useRef<HTMLDivElement>(null);
  const move = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || !ref.current) return;
    event.preventDefault();
    const buttons = [...ref.current.querySelectorAll("button")];
    const at = buttons.findIndex((button) => button === document.activeElement);
    buttons[(at + step + buttons.length) % buttons.length]?.focus();
  };
  const place = (event: { newState: string }) => {
    const menu = ref.current;
    const button = menu?.previousElementSibling;
    if (event.newState !== "open" || !menu || !button) return;
    const at = button.getBoundingClientRect();
    const below = at.bottom + menu.offsetHeight + 8 < innerHeight;
    menu.style.top = `${below ? at.bottom + 4 : at.top - menu.offsetHeight - 4}px`;
    menu.style.left = `${Math.max(8, Math.min(at.right - menu.offsetWidth, innerWidth - menu.offsetWidth - 8))}px`;
    menu.querySelector("button")?.focus();
  };
  if (!items.length) return null;
  return (
    <>
      <button
        type="button"
        class={icon ? "button plain" : "icon-button"}
        popovertarget={id}
        aria-label={label}
        title={icon ? undefined : label}
        aria-haspopup="menu"
      >
        <Icon name={icon ?? "more"} />
        {icon && label}
      </button>
      <div
        ref={ref}
        id={id}
        popover="auto"
        role="menu"
        class="menu"
        aria-label={label}
        onKeyDown={move}
        onToggle={place}
      >
        {items.map((item) => (
          <button
            key={item.label}
            type="button"
            role="menuitem"
            class={item.danger ? "danger" : undefined}
            onClick={() => {
              ref.current?.hidePopover();
              item.act();
            }}
          >
            {item.label}
          </button>
        ))}
      </div>
    </>
  );
}
