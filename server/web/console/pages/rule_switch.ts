// Rules, of alerts and of reports, are paused and go on alike: at once, with a way back.

import { attempt, say } from "../state/toast";

interface Rule {
  name: string;
  enabled: boolean;
}

interface Texts {
  paused: (name: string) => string;
  resumed: (name: string) => string;
}

/** Pauses a rule that is active, or the other way round. `change` stores it. */
export async function switchRule(rule: Rule, text: Texts, change: (enabled: boolean) => Promise<unknown>) {
  await change(!rule.enabled);
  const said = rule.enabled ? text.paused(rule.name) : text.resumed(rule.name);
  say(said, () => attempt(() => change(rule.enabled)));
}
