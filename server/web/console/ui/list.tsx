// A list of records as a table or as cards, with a search that stands in the address.
//
//     <List data={keys} columns={[{ title: "Label", cell: (key) => key.label }]} rowKey={(key) => key.id}
//       searched={(key) => key.label} empty={<Empty … />} label="API keys" />

import { useLocation } from "preact-iso";
import type { ComponentChildren } from "preact";
import type { Data } from "../api/cache";
import { texts } from "../texts/en";
import { Icon } from "./icon";
import { Empty, Failed, Loading } from "./page";
import { number } from "./time";

export interface Column<Row> {
  title: string;
  cell: (row: Row) => ComponentChildren;
  /** Numbers and buttons stand at the end. */
  end?: boolean;
  /** The title is for those who listen only. */
  silent?: boolean;
}

interface FrameProps<Row> {
  data: Data<{ data: Row[]; next?: string | null | undefined }>;
  label: string;
  /** The words of a row that the search looks through; without it there is no search. */
  searched?: (row: Row) => string;
  /** Empty state. */
  empty: ComponentChildren;
  /** Beside the search. */
  filters?: ComponentChildren;
  /** Rows that stay beside the search. */
  only?: (row: Row) => boolean;
}

interface ListProps<Row> extends FrameProps<Row> {
  columns: Column<Row>[];
  rowKey: (row: Row) => string | number;
}

interface CardsProps<Row> extends FrameProps<Row> {
  card: (row: Row) => ComponentChildren;
}

/** Rows that are drawn at most; the search finds the others. */
const DRAWN_MAX = 300;

/** Records as cards on a grid. */
export function Cards<Row>({ card, ...frame }: CardsProps<Row>) {
  return (
    <Frame {...frame}>
      {(rows) => (
        <ul class="cards" aria-label={frame.label}>
          {rows.map(card)}
        </ul>
      )}
    </Frame>
  );
}

export function List<Row>({ columns, rowKey, ...frame }: ListProps<Row>) {
  return (
    <Frame {...frame}>
      {(rows) => (
        <div class="box table-box">
          <table aria-label={frame.label}>
            <thead>
              <tr>
                {columns.map((column) => (
                  <th key={column.title} scope="col" class={column.end ? "at-end" : undefined}>
                    {column.silent ? <span class="vh">{column.title}</span> : column.title}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr key={rowKey(row)}>
                  {columns.map((column) => (
                    <td
                      key={column.title}
                      class={column.end ? "at-end" : undefined}
                      data-title={column.silent ? "" : column.title}
                    >
                      {column.cell(row)}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Frame>
  );
}

/** Search, count and states around the rows that match. */
function Frame<Row>({
  data,
  label,
  searched,
  empty,
  filters,
  only = () => true,
  children,
}: FrameProps<Row> & { children: (rows: Row[]) => ComponentChildren }) {
  const { query } = useLocation();
  if (data.isLoading)
    return (
      <div class="box">
        <Loading />
      </div>
    );
  if (data.error && !data.value)
    return (
      <div class="box">
        <Failed error={data.error} onRetry={data.reload} />
      </div>
    );
  const rows = data.value?.data ?? [];
  if (!rows.length) return <div class="box">{empty}</div>;
  const sought = (query.q ?? "").toLowerCase();
  const matching = rows.filter((row) => only(row) && (!searched || searched(row).toLowerCase().includes(sought)));
  return (
    <>
      {(searched || filters) && (
        <div class="list-tools">
          {searched && <Search label={texts.lists.search(label)} />}
          {filters}
          <p class="count" role="status">
            {texts.lists.count(number(matching.length), number(rows.length))}
          </p>
        </div>
      )}
      {matching.length === 0 ? (
        <div class="box">
          <Empty title={texts.lists.noMatch} text={texts.lists.noMatchText} />
        </div>
      ) : (
        children(matching.slice(0, DRAWN_MAX))
      )}
      {matching.length > DRAWN_MAX && <p class="note">{texts.lists.cut(number(DRAWN_MAX), number(matching.length))}</p>}
      {data.value?.next && <p class="note">{texts.lists.more(number(rows.length))}</p>}
    </>
  );
}

/** The search field of a page: its text is the query parameter `q`. */
export function Search({ label }: { label: string }) {
  const { path, query, route } = useLocation();
  const search = (text: string) => {
    const parameters = new URLSearchParams(query);
    if (text) parameters.set("q", text);
    else parameters.delete("q");
    route(path + (parameters.size ? `?${parameters}` : ""), true);
  };
  return (
    <label class="search">
      <Icon name="search" />
      <input
        type="search"
        value={query.q ?? ""}
        placeholder={label}
        aria-label={label}
        onInput={(event) => search(event.currentTarget.value)}
      />
    </label>
  );
}
