// ⌘K: every page, dashboard, saved query and action by its name. `?` shows the keys that work.

import { signal } from "@preact/signals";
import { useLocation } from "preact-iso";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { answer, api } from "../api/client";
import { useData } from "../api/cache";
import { ROUTES } from "../routes";
import { address } from "../state/environment";
import { chooseMode } from "../state/mode";
import { may } from "../state/session";
import { texts } from "../texts/en";
import { Dialog } from "../ui/dialog";

export const isPaletteOpen = signal(false);
const areKeysShown = signal(false);

interface Entry {
  title: string;
  kind: string;
  act: () => void;
}

const SHOWN_MAX = 12;

export function Palette() {
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const isTyping =
        event.target instanceof HTMLElement &&
        (event.target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName));
      if ((event.metaKey || event.ctrlKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        isPaletteOpen.value = !isPaletteOpen.value;
      } else if (event.key === "?" && !isTyping) {
        areKeysShown.value = true;
      } else if (event.key === "/" && !isTyping) {
        const search = document.querySelector<HTMLInputElement>('main input[type="search"]');
        if (search) event.preventDefault();
        search?.focus();
      }
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
  return (
    <>
      {isPaletteOpen.value && <Finder onClose={() => (isPaletteOpen.value = false)} />}
      {areKeysShown.value && (
        <Dialog title={texts.palette.keysTitle} onClose={() => (areKeysShown.value = false)}>
          <dl class="keys">
            {texts.palette.shortcuts.map(([keys, what]) => (
              <div key={keys}>
                <dt>
                  <kbd>{keys}</kbd>
                </dt>
                <dd>{what}</dd>
              </div>
            ))}
          </dl>
        </Dialog>
      )}
    </>
  );
}

function Finder({ onClose }: { onClose: () => void }) {
  const { route } = useLocation();
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const id = useId();
  const dashboards = useData(["dashboards"], (signal) => answer(api.GET("/v1/dashboards", { signal })));
  const queries = useData(["saved-queries"], (signal) => answer(api.GET("/v1/saved-queries", { signal })));
  // Focus at once: keys pressed right after the shortcut belong to the field.
  useLayoutEffect(() => {
    const before = document.activeElement;
    dialog.current?.showModal();
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  const go =
    (page: string, query = {}) =>
    () =>
      route(address(page, query));
  const kinds = texts.palette.kinds;
  const entries: Entry[] = [
    ...ROUTES.flatMap((page) => (page.menu ? [{ title: page.menu.title, kind: kinds.page, act: go(page.path) }] : [])),
    { title: texts.menu.pages.account, kind: kinds.page, act: go("account") },
    ...(dashboards.value?.data ?? []).map(({ id, name }) => ({
      title: name,
      kind: kinds.dashboard,
      act: go(`dashboards/${id}`),
    })),
    ...(queries.value?.data ?? []).map(({ id, name }) => ({
      title: name,
      kind: kinds.query,
      act: go("sql", { query: id }),
    })),
    ...(may("admin")
      ? texts.palette.actions.map(([title, page, query]) => ({ title, kind: kinds.action, act: go(page, query) }))
      : []),
    { title: texts.palette.light, kind: kinds.action, act: () => chooseMode("light") },
    { title: texts.palette.dark, kind: kinds.action, act: () => chooseMode("dark") },
    { title: texts.palette.system, kind: kinds.action, act: () => chooseMode("system") },
    { title: texts.palette.keysTitle, kind: kinds.action, act: () => (areKeysShown.value = true) },
  ];
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const found = entries
    .filter(({ title, kind }) => words.every((word) => `${title} ${kind}`.toLowerCase().includes(word)))
    .slice(0, SHOWN_MAX);
  const chosen = Math.min(at, found.length - 1);
  const act = (entry: Entry | undefined) => {
    if (!entry) return;
    onClose();
    entry.act();
  };
  const press = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && found.length) setAt((chosen + step + found.length) % found.length);
    else if (event.key === "Enter") act(found[chosen]);
    else return;
    event.preventDefault();
  };
  return (
    <dialog
      ref={dialog}
      class="dialog palette"
      aria-label={texts.palette.open}
      onCancel={onClose}
      onPointerDown={(event) => event.target === dialog.current && onClose()}
    >
      <div class="dialog-box">
        <input
          class="palette-input"
          role="combobox"
          aria-expanded="true"
          aria-controls={id}
          aria-activedescendant={found[chosen] ? `${id}-${chosen}` : undefined}
          aria-label={texts.palette.open}
          placeholder={texts.palette.placeholder}
          value={text}
          autocomplete="off"
          spellcheck={false}
          onInput={(event) => {
            setText(event.currentTarget.value);
            setAt(0);
          }}
          onKeyDown={press}
        />
        <ul id={id} role="listbox" aria-label={texts.palette.open}>
          {found.map((entry, index) => (
            <li
              key={`${entry.kind} ${entry.title} ${index}`}
              id={`${id}-${index}`}
              role="option"
              aria-selected={index === chosen}
              onPointerMove={() => setAt(index)}
              onClick={() => act(entry)}
            >
              <span>{entry.title}</span>
              <small>{entry.kind}</small>
            </li>
          ))}
        </ul>
        {found.length === 0 && <p class="note">{texts.lists.noMatch}</p>}
      </div>
    </dialog>
  );
}
