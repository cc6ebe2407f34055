// Events and datasets: which events arrive with which properties, and the tables that SQL reads.

import { useLocation } from "preact-iso";
import { useState } from "preact/hooks";
import { answer, api, type Schemas } from "../api/client";
import { useData } from "../api/cache";
import { address } from "../state/environment";
import { may } from "../state/session";
import { attempt } from "../state/toast";
import { texts } from "../texts/en";
import { Button, LinkButton } from "../ui/button";
import { Search } from "../ui/list";
import { Badge, Card, Empty, Failed, Loading, Page, WhoMay } from "../ui/page";
import { Ago, bytes, number, shortNumber } from "../ui/time";
import Definition from "./definition";

const text = texts.data;

export default function DataPage() {
  const { route } = useLocation();
  const discovered = useData(["discover"], (signal) => answer(api.GET("/v1/discover", { signal })));
  const events = discovered.value?.events ?? [];
  const generate = async () => {
    const made = await answer(api.POST("/v1/discover/auto-create"));
    route(address(`dashboards/${made.dashboard_id}`));
  };
  return (
    <Page
      title={texts.menu.pages.data}
      lead={text.lead}
      actions={
        may("editor") &&
        events.length > 0 && (
          <Button kind="primary" onClick={() => attempt(generate)}>
            {text.generate}
          </Button>
        )
      }
    >
      {discovered.isLoading && (
        <Card label={text.events}>
          <Loading />
        </Card>
      )}
      {discovered.error && (
        <Card label={text.events}>
          <Failed error={discovered.error} onRetry={discovered.reload} />
        </Card>
      )}
      {discovered.value && events.length === 0 && (
        <Card label={text.events}>
          <Empty title={text.none} text={text.noneText}>
            <LinkButton kind="primary" href={address("start")}>
              {text.send}
            </LinkButton>
          </Empty>
        </Card>
      )}
      {events.length > 0 && <Events events={events} meta={discovered.value?.meta} />}
      <h2 class="section">{text.datasets}</h2>
      <WhoMay least="admin" what={text.what} />
      {may("admin") && <Datasets />}
    </Page>
  );
}

function Events({ events, meta }: { events: Schemas["DiscoveredEvent"][]; meta: Schemas["DiscoverMeta"] | undefined }) {
  const { query } = useLocation();
  const sought = (query.q ?? "").toLowerCase();
  const shown = events.filter((event) =>
    JSON.stringify([
      event.event_name,
      event.string_props.map(({ name }) => name),
      event.numeric_props.map(({ name }) => name),
    ])
      .toLowerCase()
      .includes(sought),
  );
  return (
    <>
      <div class="list-tools">
        <Search label={texts.lists.search(text.events)} />
        <p class="count" role="status">
          {texts.lists.count(number(shown.length), number(events.length))}
          {meta?.sampled ? ` · ${text.sampled}` : ""}
        </p>
      </div>
      {shown.map((event) => (
        <EventBox key={event.event_name} event={event} />
      ))}
    </>
  );
}

function EventBox({ event }: { event: Schemas["DiscoveredEvent"] }) {
  return (
    <details class="box event">
      <summary>
        <b>{event.event_name}</b>
        <span>{text.count(shortNumber(event.count), number(event.tenants))}</span>
        <span class="muted">
          {text.seen} <Ago at={event.last_seen} />
        </span>
      </summary>
      <table aria-label={text.properties(event.event_name)}>
        <thead>
          <tr>
            <th scope="col">{text.property}</th>
            <th scope="col">{text.type}</th>
            <th scope="col">{text.values}</th>
            <th scope="col" class="at-end">
              {text.coverage}
            </th>
          </tr>
        </thead>
        <tbody>
          {event.string_props.map((property) => (
            <tr key={property.name}>
              <td data-title={text.property}>
                <code>{property.name}</code> {property.rollup && <Badge>{text.rollup}</Badge>}
              </td>
              <td data-title={text.type}>{text.string}</td>
              <td data-title={text.values}>
                <span class="samples">{property.samples.join(", ")}</span>{" "}
                <span class="muted">{text.distinct(shortNumber(property.distinct_approx))}</span>
              </td>
              <td data-title={text.coverage} class="at-end">
                {percent(property.coverage)}
              </td>
            </tr>
          ))}
          {event.numeric_props.map((property) => (
            <tr key={property.name}>
              <td data-title={text.property}>
                <code>{property.name}</code>
              </td>
              <td data-title={text.type}>{text.number}</td>
              <td data-title={text.values}>
                {text.range(number(property.min), number(property.max), number(property.avg))}
              </td>
              <td data-title={text.coverage} class="at-end">
                {percent(property.coverage)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <p class="event-actions">
        <LinkButton href={address("explore", { event: event.event_name })}>{text.explore}</LinkButton>
        {may("admin") && <LinkButton href={address("sql", { sql: sampleOf(event.event_name) })}>{text.sql}</LinkButton>}
      </p>
    </details>
  );
}

const percent = (share: number) => `${Math.round(share * 100)} %`;
const sampleOf = (name: string) =>
  `SELECT timestamp, tenant_id, user_id, string_props, numeric_props\nFROM events\nWHERE event_name = '${name.replaceAll("'", "''")}'\nORDER BY timestamp DESC\nLIMIT 100`;

function Datasets() {
  const [opened, setOpened] = useState<string | null>(null);
  const datasets = useData(["datasets"], (signal) => answer(api.GET("/v1/datasets", { signal })));
  if (datasets.isLoading)
    return (
      <Card label={text.datasets}>
        <Loading />
      </Card>
    );
  if (datasets.error)
    return (
      <Card label={text.datasets}>
        <Failed error={datasets.error} onRetry={datasets.reload} />
      </Card>
    );
  return (
    <>
      {datasets.value?.data.map((dataset) => (
        <details key={dataset.name} class="box event">
          <summary>
            <b>{dataset.name}</b>
            <span>{text.rows(shortNumber(dataset.rows), bytes(dataset.bytes))}</span>
            <span class="muted">
              {dataset.engine}
              {dataset.updated_at && (
                <>
                  {" "}
                  · {text.updated} <Ago at={dataset.updated_at} />
                </>
              )}
            </span>
          </summary>
          <p class="lead">{dataset.description}</p>
          <table aria-label={text.columnsOf(dataset.name)}>
            <thead>
              <tr>
                <th scope="col">{text.column}</th>
                <th scope="col">{text.type}</th>
                <th scope="col">{text.meaning}</th>
              </tr>
            </thead>
            <tbody>
              {dataset.columns.map((column) => (
                <tr key={column.name}>
                  <td data-title={text.column}>
                    <code>{column.name}</code>
                  </td>
                  <td data-title={text.type}>{column.type}</td>
                  <td data-title={text.meaning}>{column.description}</td>
                </tr>
              ))}
            </tbody>
          </table>
          <p class="event-actions">
            <Button onClick={() => setOpened(dataset.name)}>{text.ddl}</Button>
            <LinkButton href={address("sql", { sql: `SELECT *\nFROM ${dataset.name}\nLIMIT 100` })}>
              {text.sql}
            </LinkButton>
          </p>
        </details>
      ))}
      {opened && <Definition name={opened} onClose={() => setOpened(null)} />}
    </>
  );
}
