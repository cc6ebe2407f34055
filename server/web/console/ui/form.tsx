// Forms: fields with their label, hint and error, and sending, with the API's errors at the fields that they name.
//
//     const form = useForm(async (values) => { await answer(api.POST("/v1/api-keys", { body: … })); });
//     <form {...form.props}><Field in={form} name="label" label="Label" required /><Submit form={form}>Create</Submit></form>

import type { ComponentChildren, InputHTMLAttributes, SelectHTMLAttributes, TextareaHTMLAttributes } from "preact";
import { useId, useRef, useState } from "preact/hooks";
import { ApiError } from "../api/client";
import { texts } from "../texts/en";
import { Button } from "./button";

export interface Form {
  props: { onSubmit: (event: SubmitEvent) => void; noValidate: false };
  busy: boolean;
  /** Messages by field. */
  errors: Record<string, string>;
  /** A message that belongs to no field of this form. */
  message: string | null;
}

type Values = (name: string) => string;

/** `send` gets the values of the fields by name; an error that it throws is shown in the form. */
export function useForm(send: (values: Values, form: FormData) => Promise<void>): Form {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError | null>(null);
  const [known, setKnown] = useState<Set<string>>(new Set());
  const isSending = useRef(false);
  const onSubmit = async (event: SubmitEvent) => {
    event.preventDefault();
    if (isSending.current) return;
    const element = event.currentTarget as HTMLFormElement;
    const form = new FormData(element);
    isSending.current = true;
    setBusy(true);
    setError(null);
    try {
      await send((name) => String(form.get(name) ?? ""), form);
    } catch (cause) {
      const refusal = cause instanceof ApiError ? cause : new ApiError(0, { error: texts.errors.unknown });
      setKnown(new Set(Array.from(element.elements, (input) => input.getAttribute("name") ?? "")));
      setError(refusal);
      const [first] = Object.keys(refusal.fields);
      const input = first ? element.elements.namedItem(first) : null;
      if (input instanceof HTMLElement) input.focus();
    } finally {
      isSending.current = false;
      setBusy(false);
    }
  };
  const fields = error?.fields ?? {};
  const isShown = Object.keys(fields).some((field) => known.has(field));
  return {
    props: { onSubmit, noValidate: false },
    busy,
    errors: fields,
    message: error && !isShown ? error.message : null,
  };
}

interface Labelled {
  /** The form whose errors are shown. */
  in?: Form | undefined;
  name: string;
  label: string;
  hint?: ComponentChildren;
}

/** A label above, a hint and an error below of `control`. */
function Around({
  id,
  label,
  hint,
  error,
  children,
}: {
  id: string;
  label: string;
  hint?: ComponentChildren;
  error: string | undefined;
  children: ComponentChildren;
}) {
  return (
    <div class="field" data-wrong={error ? "" : undefined}>
      <label for={id}>{label}</label>
      {children}
      {hint && !error && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {error && (
        <p class="fault" id={`${id}-fault`} role="alert">
          {error}
        </p>
      )}
    </div>
  );
}

function useControl(form: Form | undefined, name: string, hint: ComponentChildren) {
  const id = useId();
  const error = form?.errors[name];
  return {
    id,
    error,
    attributes: {
      id,
      name,
      "aria-invalid": error ? true : undefined,
      "aria-describedby": error ? `${id}-fault` : hint ? `${id}-hint` : undefined,
    },
  };
}

export function Field({ in: form, name, label, hint, ...rest }: Labelled & InputHTMLAttributes<HTMLInputElement>) {
  const { id, error, attributes } = useControl(form, name, hint);
  return (
    <Around id={id} label={label} hint={hint} error={error}>
      <input class="input" {...rest} {...attributes} />
    </Around>
  );
}

type Options = readonly (readonly [value: string, label: string])[];

export function Select({
  in: form,
  name,
  label,
  hint,
  options,
  defaultValue,
  ...rest
}: Labelled & { options: Options } & SelectHTMLAttributes<HTMLSelectElement>) {
  const { id, error, attributes } = useControl(form, name, hint);
  return (
    <Around id={id} label={label} hint={hint} error={error}>
      <select class="input" {...rest} {...attributes}>
        {options.map(([value, text]) => (
          <option key={value} value={value} selected={defaultValue === undefined ? undefined : value === defaultValue}>
            {text}
          </option>
        ))}
      </select>
    </Around>
  );
}

export function TextArea({
  in: form,
  name,
  label,
  hint,
  ...rest
}: Labelled & TextareaHTMLAttributes<HTMLTextAreaElement>) {
  const { id, error, attributes } = useControl(form, name, hint);
  return (
    <Around id={id} label={label} hint={hint} error={error}>
      <textarea class="input" rows={3} {...rest} {...attributes} />
    </Around>
  );
}

interface CheckProps extends Omit<Labelled, "in"> {
  defaultChecked?: boolean;
  /** The value that is submitted when checked; "on" by default. */
  value?: string;
}

export function Check({ name, label, hint, ...rest }: CheckProps) {
  return (
    <label class="check">
      <input type="checkbox" name={name} {...rest} />
      <span>
        {label}
        {hint && <small>{hint}</small>}
      </span>
    </label>
  );
}

/** The submit button, with the error that belongs to no field above it. */
export function Submit({
  form,
  children,
  kind = "primary",
}: {
  form: Form;
  children: ComponentChildren;
  kind?: "primary" | "danger";
}) {
  return (
    <>
      {form.message && (
        <p class="fault" role="alert">
          {form.message}
        </p>
      )}
      <Button type="submit" kind={kind} busy={form.busy}>
        {children}
      </Button>
    </>
  );
}

/** E-mail addresses in a field, one a line or with commas. */
export const addressesOf = (lines: string) => lines.split(/[\s,;]+/).filter(Boolean);
