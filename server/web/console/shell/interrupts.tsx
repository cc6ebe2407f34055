// Two dialogs that may come on any page: log in again without leaving the page, and a limit of the plan.

import { answer, api } from "../api/client";
import { cache } from "../api/cache";
import { becomes } from "../api/person";
import { address } from "../state/environment";
import { endedSession, reachedLimit } from "../state/interrupts";
import { me } from "../state/session";
import { texts } from "../texts/en";
import { LinkButton } from "../ui/button";
import { Dialog } from "../ui/dialog";
import { Field, Submit, useForm } from "../ui/form";
import { number } from "../ui/time";

export function Interrupts() {
  return (
    <>
      {endedSession.value && <LogInAgain />}
      {reachedLimit.value && <PlanLimit />}
    </>
  );
}

function LogInAgain() {
  const email = me.value?.user?.email ?? "";
  const form = useForm(async (values) => {
    becomes(await answer(api.POST("/v1/auth/login", { body: { email, password: values("password") } })));
    await cache.invalidateQueries();
  });
  return (
    <Dialog title={texts.again.title} onClose={() => undefined} closes={false}>
      <form {...form.props}>
        <p class="lead">{texts.again.lead}</p>
        <Field name="email" label={texts.entrance.email} type="email" value={email} readOnly autocomplete="username" />
        <Field
          in={form}
          name="password"
          label={texts.entrance.password}
          type="password"
          required
          autocomplete="current-password"
          autofocus
        />
        <div class="foot">
          <a class="link" href="/console/login" target="_self" onClick={() => (location.href = "/console/login")}>
            {texts.again.other}
          </a>
          <Submit form={form}>{texts.entrance.logIn}</Submit>
        </div>
      </form>
    </Dialog>
  );
}

function PlanLimit() {
  const refusal = reachedLimit.value ?? {};
  const { limit, used, upgrade_to: target, error } = refusal;
  const close = () => (reachedLimit.value = null);
  return (
    <Dialog title={texts.limit.title} onClose={close}>
      <p class="lead">{error}</p>
      {limit != null && used != null && (
        <>
          <meter class="meter" min={0} max={Math.max(limit, used)} value={used} aria-label={texts.limit.title} />
          <p class="note">{texts.limit.used(number(used), number(limit))}</p>
        </>
      )}
      <div class="foot">
        <button type="button" class="button plain" onClick={close}>
          {texts.actions.close}
        </button>
        {target && (
          <span onClick={close}>
            <LinkButton kind="primary" href={address("usage")}>
              {texts.limit.upgrade(target)}
            </LinkButton>
          </span>
        )}
      </div>
    </Dialog>
  );
}
