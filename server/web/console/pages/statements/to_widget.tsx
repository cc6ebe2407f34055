// A statement's way onto a dashboard: the explorer with the same question and its dialog open, or why there is none.

import { address } from "../../state/environment";
import { texts } from "../../texts/en";
import { LinkButton } from "../../ui/button";
import { widgetQueryOf } from "./widget_query";

const text = texts.sql.widget;

export default function ToWidget({ sql }: { sql: string }) {
  const asked = widgetQueryOf(sql);
  if ("parameters" in asked) {
    const { granularity, ...others } = asked.parameters;
    // "In all" is an empty granularity; without one the explorer goes by day.
    const end = `&granularity=${granularity}`;
    return <LinkButton href={address("explore", { ...others, save: "1" }) + end}>{text.turn}</LinkButton>;
  }
  return (
    <button type="button" class="button plain" aria-disabled="true" title={text.why(asked.reason)}>
      {text.turn}
      <span class="vh">. {text.why(asked.reason)}</span>
    </button>
  );
}
