// Dialogs, in the browser's own `<dialog>`: focus goes in, stays, and comes back; Escape and the backdrop close.

import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";
import { texts } from "../texts/en";
import { IconButton } from "./button";
import { Field, Submit, useForm } from "./form";

interface DialogProps {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  /** False where closing by accident would lose something that is shown once. */
  closes?: boolean;
  wide?: boolean;
}

export function Dialog({ title, onClose, children, closes = true, wide = false }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null);
  const id = useId();
  useLayoutEffect(() => {
    const before = document.activeElement;
    ref.current?.showModal();
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={ref}
      class={wide ? "dialog wide" : "dialog"}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        if (closes) onClose();
      }}
      onPointerDown={(event) => {
        if (closes && event.target === ref.current) onClose();
      }}
    >
      <div class="dialog-box">
        <header>
          <h2 id={id}>{title}</h2>
          {closes && <IconButton icon="close" label={texts.actions.close} onClick={onClose} />}
        </header>
        {children}
      </div>
    </dialog>
  );
}

interface ConfirmProps {
  title: string;
  /** The consequence, and what cannot be restored. */
  text: string;
  action: string;
  /** A name that has to be typed, where nothing brings it back. */
  name?: string;
  onConfirm: () => Promise<void>;
  onClose: () => void;
}

/** Confirmation of an action that cannot be undone. */
export function Confirm({ title, text, action, name, onConfirm, onClose }: ConfirmProps) {
  const form = useForm(async (value) => {
    if (name !== undefined && value("confirmation") !== name) return;
    await onConfirm();
    onClose();
  });
  return (
    <Dialog title={title} onClose={onClose}>
      <form {...form.props}>
        <p class="lead">{text}</p>
        {name !== undefined && (
          <Field
            name="confirmation"
            label={texts.actions.typeName(name)}
            required
            autocomplete="off"
            onInput={(event) =>
              event.currentTarget.setCustomValidity(
                event.currentTarget.value === name ? "" : texts.actions.typeName(name),
              )
            }
          />
        )}
        <div class="foot">
          <button type="button" class="button plain" onClick={onClose}>
            {texts.actions.cancel}
          </button>
          <Submit form={form} kind="danger">
            {action}
          </Submit>
        </div>
      </form>
    </Dialog>
  );
}
