// Beside the SQL editor: tables and columns, the organisation's properties, saved queries.

import { useState } from "preact/hooks";
import type { Schemas } from "../../api/client";
import { texts } from "../../texts/en";
import { Icon } from "../../ui/icon";
import { Tabs } from "../../ui/tabs";
import { shortNumber } from "../../ui/time";

const text = texts.sql;

/** "map" for MAP(VARCHAR, DOUBLE). */
const shortType = (type: string) => type.toLowerCase().replace(/\(.*/, "");

interface SideProps {
  datasets: readonly Schemas["Dataset"][];
  queries: readonly Schemas["SavedQuery"][];
  templates: readonly { title: string; sql: string }[];
  onInsert: (sql: string) => void;
  onOpen: (query: Schemas["SavedQuery"]) => void;
  onTemplate: (template: { title: string; sql: string }) => void;
  onStar: (query: Schemas["SavedQuery"]) => void;
  onDelete: (query: Schemas["SavedQuery"]) => void;
  onDefinition: (dataset: string) => void;
}

export function SqlSide({ datasets, queries, templates, ...on }: SideProps) {
  const { onInsert, onOpen, onTemplate, onStar, onDelete, onDefinition } = on;
  const [tab, setTab] = useState<"schema" | "saved" | "templates">("schema");
  const [sought, setSought] = useState("");
  const matches = (...words: string[]) => words.join(" ").toLowerCase().includes(sought.toLowerCase());
  const starred = [...queries]
    .filter(({ name, sql, dataset }) => matches(name, sql, dataset))
    .sort((a, b) => Number(b.starred) - Number(a.starred));
  return (
    <aside class="sql-side" aria-label={text.side}>
      <Tabs
        label={text.side}
        names={["schema", "saved", "templates"]}
        chosen={tab}
        onChoose={setTab}
        text={(name) => text.sides[name]}
      />
      <label class="search">
        <Icon name="search" />
        <input
          type="search"
          placeholder={text.searchSide}
          aria-label={text.searchSide}
          value={sought}
          onInput={(event) => setSought(event.currentTarget.value)}
        />
      </label>
      {tab === "schema" &&
        datasets.map((dataset) => (
          <details key={dataset.name} open={dataset.name === "events" || sought !== ""}>
            <summary>
              <b>{dataset.name}</b>
              <small>{text.rowsOf(shortNumber(dataset.rows))}</small>
            </summary>
            <ul>
              {dataset.columns
                .filter(({ name }) => matches(dataset.name, name))
                .map((column) => (
                  <li key={column.name}>
                    <button type="button" title={column.description} onClick={() => onInsert(column.name)}>
                      <span>{column.name}</span>
                      <small>{shortType(column.type)}</small>
                    </button>
                  </li>
                ))}
              {dataset.properties
                .filter(({ name }) => matches(name))
                .map((property) => (
                  <li key={property.sql}>
                    <button type="button" class="property" title={property.sql} onClick={() => onInsert(property.sql)}>
                      <span>{property.name}</span>
                      <small>{shortType(property.type)}</small>
                    </button>
                  </li>
                ))}
              <li>
                <button type="button" class="definition" onClick={() => onDefinition(dataset.name)}>
                  {text.definition}
                </button>
              </li>
            </ul>
          </details>
        ))}
      {tab === "saved" &&
        (starred.length === 0 ? (
          <p class="note">{queries.length ? texts.lists.noMatch : text.noSaved}</p>
        ) : (
          <ul class="saved">
            {starred.map((query) => (
              <li key={query.id}>
                <button
                  type="button"
                  class="icon-button"
                  aria-pressed={query.starred}
                  aria-label={text.star(query.name)}
                  onClick={() => onStar(query)}
                >
                  <Icon name="star" />
                </button>
                <button type="button" class="saved-name" title={query.sql} onClick={() => onOpen(query)}>
                  <span>{query.name}</span>
                  <small>{query.dataset}</small>
                </button>
                <button
                  type="button"
                  class="icon-button"
                  aria-label={text.deleteOf(query.name)}
                  onClick={() => onDelete(query)}
                >
                  <Icon name="erasure" />
                </button>
              </li>
            ))}
          </ul>
        ))}
      {tab === "templates" && (
        <ul class="saved">
          {templates
            .filter(({ title }) => matches(title))
            .map((template) => (
              <li key={template.title}>
                <button type="button" class="saved-name" title={template.sql} onClick={() => onTemplate(template)}>
                  <span>{template.title}</span>
                </button>
              </li>
            ))}
        </ul>
      )}
    </aside>
  );
}
