// The way in: register, log in, accept an invite, ask for and use a link to a new password. One column, one form.
//
// After logging in the page that was asked for is opened (`?next=/console/alerts/7`), if it is one of the console's.

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import { answer, api } from "../api/client";
import { becomes } from "../api/person";
import { boot } from "../boot";
import { address } from "../state/environment";
import { me } from "../state/session";
import { texts } from "../texts/en";
import { Field, Submit, useForm } from "../ui/form";

const text = texts.entrance;
const PASSWORD_MIN = 10;
const PASSWORD_MAX = 200;

export default function Entrance() {
  const { path } = useLocation();
  const Form =
    {
      "/console/register": Register,
      "/console/invite": AcceptInvite,
      "/console/forgot-password": Forgot,
      "/console/reset-password": Reset,
    }[path] ?? LogIn;
  return (
    <main class="entrance">
      <div class="entrance-box">
        <p class="brand" aria-hidden="true">
          <span class="org-mark">I</span>
          {texts.shell.product}
        </p>
        <Form />
      </div>
    </main>
  );
}

/** Where to go after logging in: an address of the console, nothing else. */
export function nextPage(next: string | undefined): string {
  if (!next || !URL.canParse(next, location.origin)) return "/console/";
  const url = new URL(next, location.origin);
  const isOurs =
    url.origin === location.origin &&
    url.pathname.startsWith("/console/") &&
    !/^\/console\/(login|register|invite)$/.test(url.pathname);
  return isOurs ? url.pathname + url.search : "/console/";
}

function useEnter() {
  const { query, route } = useLocation();
  return (logged: Parameters<typeof becomes>[0], page = nextPage(query.next), key: string | null = null) => {
    becomes(logged, key);
    route(page, true);
  };
}

function Titled({ title, lead, children }: { title: string; lead?: ComponentChildren; children: ComponentChildren }) {
  useEffect(() => {
    document.title = texts.shell.documentTitle(title);
  }, [title]);
  return (
    <>
      <h1>{title}</h1>
      {lead && <p class="lead">{lead}</p>}
      {children}
    </>
  );
}

const NewPassword = ({ form, name = "password" }: { form: ReturnType<typeof useForm>; name?: string }) => (
  <Field
    in={form}
    name={name}
    label={text.password}
    hint={text.passwordRule}
    type="password"
    required
    minLength={PASSWORD_MIN}
    maxLength={PASSWORD_MAX}
    autocomplete="new-password"
  />
);

function LogIn() {
  const { query } = useLocation();
  const goOn = useEnter();
  const form = useForm(async (value) =>
    goOn(await answer(api.POST("/v1/auth/login", { body: { email: value("email"), password: value("password") } }))),
  );
  return (
    <Titled title={text.logIn}>
      <form {...form.props}>
        <Field in={form} name="email" label={text.email} type="email" required autocomplete="username" autofocus />
        <Field
          in={form}
          name="password"
          label={text.password}
          type="password"
          required
          autocomplete="current-password"
        />
        <Submit form={form}>{text.logIn}</Submit>
      </form>
      {boot.demo && <Guest />}
      <p class="entrance-links">
        <a href="/console/forgot-password">{text.forgot}</a>
        <a href={`/console/register${query.next ? `?next=${encodeURIComponent(query.next)}` : ""}`}>{text.noAccount}</a>
      </p>
    </Titled>
  );
}

/** With `--demo`: look at everything without an account. */
function Guest() {
  const goOn = useEnter();
  const form = useForm(async () => goOn(await answer(api.POST("/v1/demo/session")), "/console/dashboards"));
  return (
    <form {...form.props} class="guest">
      <p>{text.guestLead}</p>
      {form.message && (
        <p class="fault" role="alert">
          {form.message}
        </p>
      )}
      <button type="submit" class="button plain" aria-busy={form.busy || undefined}>
        {text.guest}
      </button>
    </form>
  );
}

function Register() {
  const goOn = useEnter();
  const form = useForm(async (value) => {
    const body = {
      name: value("name"),
      org_name: value("org_name"),
      email: value("email"),
      password: value("password"),
    };
    const made = await answer(api.POST("/v1/auth/register", { body }));
    goOn(made, address("start"), made.api_key.key);
  });
  return (
    <Titled title={text.register} lead={text.registerLead}>
      <form {...form.props}>
        <Field in={form} name="name" label={text.name} required maxLength={200} autocomplete="name" autofocus />
        <Field in={form} name="org_name" label={text.orgName} required maxLength={200} autocomplete="organization" />
        <Field in={form} name="email" label={text.email} type="email" required autocomplete="username" />
        <NewPassword form={form} />
        <Submit form={form}>{text.register}</Submit>
      </form>
      <p class="entrance-links">
        <a href="/console/login">{text.haveAccount}</a>
      </p>
    </Titled>
  );
}

function AcceptInvite() {
  const { query } = useLocation();
  const goOn = useEnter();
  const form = useForm(async (value) =>
    goOn(
      await answer(
        api.POST("/v1/auth/accept-invite", {
          body: { token: query.token ?? "", name: value("name"), password: value("password") },
        }),
      ),
      "/console/",
    ),
  );
  return (
    <Titled title={text.invite} lead={text.inviteLead}>
      <form {...form.props}>
        <Field in={form} name="name" label={text.name} required maxLength={200} autocomplete="name" autofocus />
        <NewPassword form={form} />
        <Submit form={form}>{text.join}</Submit>
      </form>
    </Titled>
  );
}

function Forgot() {
  const [sentTo, setSentTo] = useState<string | null>(null);
  const form = useForm(async (value) => {
    await answer(api.POST("/v1/auth/forgot-password", { body: { email: value("email") } }));
    setSentTo(value("email"));
  });
  if (sentTo !== null)
    return (
      <Titled title={text.forgotSent} lead={text.forgotSentText(sentTo)}>
        <p class="entrance-links">
          <a href="/console/login">{text.backToLogIn}</a>
        </p>
      </Titled>
    );
  return (
    <Titled title={text.forgotTitle} lead={text.forgotLead}>
      <form {...form.props}>
        <Field in={form} name="email" label={text.email} type="email" required autocomplete="username" autofocus />
        <Submit form={form}>{text.sendLink}</Submit>
      </form>
      <p class="entrance-links">
        <a href="/console/login">{text.backToLogIn}</a>
      </p>
    </Titled>
  );
}

function Reset() {
  const { query } = useLocation();
  const goOn = useEnter();
  const form = useForm(async (value) => {
    me.value = null;
    goOn(
      await answer(
        api.POST("/v1/auth/reset-password", { body: { token: query.token ?? "", password: value("password") } }),
      ),
      "/console/",
    );
  });
  return (
    <Titled title={text.resetTitle} lead={text.resetLead}>
      <form {...form.props}>
        <NewPassword form={form} />
        <Submit form={form}>{text.setPassword}</Submit>
      </form>
      <p class="entrance-links">
        <a href="/console/forgot-password">{text.newLink}</a>
      </p>
    </Titled>
  );
}
