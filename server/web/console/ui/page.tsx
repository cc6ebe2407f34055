// The frame of a page: its title and actions, and its states: empty, loading, failed.

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { ApiError } from "../api/client";
import { may, me, type Role } from "../state/session";
import { texts } from "../texts/en";
import { Button } from "./button";
import { Icon } from "./icon";

interface PageProps {
  title: string;
  /** One line below the title. */
  lead?: ComponentChildren;
  actions?: ComponentChildren;
  /** Where the page above is: its name and address. */
  back?: { label: string; href: string };
  children: ComponentChildren;
}

export function Page({ title, lead, actions, back, children }: PageProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = texts.shell.documentTitle(title);
  }, [title]);
  useEffect(() => {
    // Screen readers announce the page that a link led to; focus in a field of the page stays there.
    if (!document.activeElement || document.activeElement === document.body || document.activeElement.closest(".side"))
      heading.current?.focus({ preventScroll: true });
  }, []);
  return (
    <>
      <header class="page-head">
        <div>
          {back && (
            <a class="back" href={back.href}>
              {back.label}
            </a>
          )}
          <h1 ref={heading} tabIndex={-1}>
            {title}
          </h1>
          {lead && <p class="lead">{lead}</p>}
        </div>
        {actions && <div class="page-actions">{actions}</div>}
      </header>
      {children}
    </>
  );
}

/** A box with a head. */
export function Card({
  title,
  lead,
  actions,
  children,
  label,
}: {
  title?: string;
  lead?: ComponentChildren;
  actions?: ComponentChildren;
  children: ComponentChildren;
  label?: string;
}) {
  return (
    <section class="box" aria-label={label ?? title}>
      {title && (
        <header>
          <div>
            <h2>{title}</h2>
            {lead && <p>{lead}</p>}
          </div>
          {actions}
        </header>
      )}
      {children}
    </section>
  );
}

/** Empty state: why there is nothing, and the next step. */
export function Empty({
  title,
  text,
  children,
}: {
  title: string;
  text?: ComponentChildren;
  children?: ComponentChildren;
}) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {text && <p>{text}</p>}
      {children && <div class="empty-actions">{children}</div>}
    </div>
  );
}

/** Error state, with a button to retry. */
export function Failed({ error, onRetry }: { error: ApiError; onRetry?: () => void }) {
  return (
    <div class="empty" role="alert">
      <Icon name="warn" />
      <h2>
        {error.status === 404
          ? texts.errors.notFound
          : error.status === 403
            ? texts.errors.forbidden
            : texts.errors.failed}
      </h2>
      <p>{error.message}</p>
      {onRetry && error.status !== 404 && error.status !== 403 && (
        <Button onClick={onRetry}>{texts.actions.tryAgain}</Button>
      )}
    </div>
  );
}

/** Skeleton lines while data is loading. */
export function Loading({ lines = 6 }: { lines?: number }) {
  return (
    <div class="loading" aria-busy="true" aria-label={texts.shell.loading}>
      {Array.from({ length: lines }, (_, line) => (
        <i key={line} />
      ))}
    </div>
  );
}

/** One line that names the roles that may do something; empty for a user who may. */
export function WhoMay({ least, what }: { least: Role; what: string }) {
  if (!me.value || may(least)) return null;
  return <p class="who-may">{texts.roles.whoMay(least, what)}</p>;
}

/** A small word with a colour, which is never all that it says. */
export function Badge({
  tone = "plain",
  children,
}: {
  tone?: "plain" | "good" | "bad" | "warn";
  children: ComponentChildren;
}) {
  return <span class={`badge ${tone}`}>{children}</span>;
}
