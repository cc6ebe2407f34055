// A statement's way onto a dashboard: the explorer with the same question and its dialog open, or the reason against it.

import { address } from "../../state/environment";
import { say } from "../../state/toast";
import { texts } from "../../texts/en";
import { LinkButton } from "../../ui/button";
import { widgetQueryOf } from "./widget_query";

const text = texts.sql.widget;

export default function ToWidget({ sql }: { sql: string }) {
  const parsed = widgetQueryOf(sql);
  if ("parameters" in parsed) {
    const { granularity, ...others } = parsed.parameters;
    // "In all" is an empty granularity; without one the explorer goes by day.
    const end = `&granularity=${granularity}`;
    return <LinkButton href={address("explore", { ...others, save: "1" }) + end}>{text.turn}</LinkButton>;
  }
  const reason = text.why(parsed.reason);
  return (
    <button type="button" class="button plain" aria-disabled="true" title={reason} onClick={() => say(reason)}>
      {text.turn}
      <span class="vh">. {reason}</span>
    </button>
  );
}
