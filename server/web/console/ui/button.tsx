// Things to press: `<Button kind="primary" busy={saving}>Save</Button>`, links that look alike, and copying.

import type { ButtonHTMLAttributes, ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { texts } from "../texts/en";
import { Icon, type IconName } from "./icon";

type Kind = "primary" | "plain" | "danger" | "quiet";

type ButtonProps = ButtonHTMLAttributes<HTMLButtonElement> & {
  kind?: Kind;
  /** Its action is running; further clicks are ignored. */
  busy?: boolean;
  icon?: IconName;
};

export function Button({
  kind = "plain",
  busy = false,
  icon,
  children,
  type = "button",
  onClick,
  ...rest
}: ButtonProps) {
  return (
    <button
      {...rest}
      type={type}
      class={`button ${kind}`}
      aria-disabled={busy || undefined}
      aria-busy={busy || undefined}
      onClick={busy ? (event) => event.preventDefault() : onClick}
    >
      {icon && <Icon name={icon} />}
      {children}
    </button>
  );
}

/** A link that looks like a button. */
export function LinkButton({
  href,
  kind = "plain",
  icon,
  children,
}: {
  href: string;
  kind?: Kind;
  icon?: IconName;
  children: ComponentChildren;
}) {
  return (
    <a class={`button ${kind}`} href={href}>
      {icon && <Icon name={icon} />}
      {children}
    </a>
  );
}

/** A button of a picture alone; `label` is its name. */
export function IconButton({
  icon,
  label,
  ...rest
}: { icon: IconName; label: string } & ButtonHTMLAttributes<HTMLButtonElement>) {
  return (
    <button {...rest} type="button" class="icon-button" aria-label={label} title={label}>
      <Icon name={icon} />
    </button>
  );
}

const COPIED_MS = 2_000;

/** Copies a text and says so. Where the browser refuses, the text is selected by the page that shows it. */
export function Copy({
  text,
  label = texts.actions.copy,
  kind = "plain",
  onCopied,
}: {
  text: string;
  label?: string;
  kind?: Kind;
  onCopied?: () => void;
}) {
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return;
    const timer = setTimeout(() => setCopied(false), COPIED_MS);
    return () => clearTimeout(timer);
  }, [isCopied]);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setCopied(true);
      onCopied?.();
    } catch {
      setCopied(false);
    }
  };
  return (
    <Button kind={kind} icon={isCopied ? "check" : "copy"} onClick={copy}>
      <span aria-live="polite">{isCopied ? texts.actions.copied : label}</span>
    </Button>
  );
}
