// The field for SQL: CodeMirror with the server's dialect. Tab leaves the field unless it indents; Escape, then Tab,
// always leaves.

import { autocompletion, completionKeymap } from "@codemirror/autocomplete";
import { history, historyKeymap, standardKeymap } from "@codemirror/commands";
import { PostgreSQL, sql } from "@codemirror/lang-sql";
import { bracketMatching, HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { Compartment, EditorState, StateEffect, StateField } from "@codemirror/state";
import {
  Decoration,
  type DecorationSet,
  drawSelection,
  EditorView,
  highlightActiveLine,
  keymap,
  lineNumbers,
  placeholder,
} from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useRef } from "preact/hooks";
import type { Schemas } from "../../api/client";
import { boot } from "../../boot";
import { texts } from "../../texts/en";
import { ownCompletions, schemaOf } from "./completion";

export interface EditorHandle {
  /** The selected text, or everything. */
  chosen: () => { sql: string; isSelection: boolean; from: number };
  insert: (text: string) => void;
  /** Marks the place of an error: a line and a column, both from 1, within the statement that was run. */
  mark: (place: { from: number; line: number; column: number } | null) => void;
  focus: () => void;
}

interface EditorProps {
  /** Pixels. */
  height: number;
  /** The text to begin with; another tab is another editor. */
  value: string;
  datasets: readonly Schemas["Dataset"][];
  events: readonly string[];
  onChange: (sql: string) => void;
  onRun: () => void;
  onSave: () => void;
  handle: { current: EditorHandle | null };
}

const highlight = HighlightStyle.define([
  { tag: tags.keyword, class: "sql-keyword" },
  { tag: [tags.string, tags.special(tags.string)], class: "sql-string" },
  { tag: [tags.number, tags.bool, tags.null], class: "sql-number" },
  { tag: tags.comment, class: "sql-comment" },
  { tag: [tags.standard(tags.name), tags.function(tags.variableName)], class: "sql-function" },
]);

const setMark = StateEffect.define<{ from: number; to: number } | null>();
const marks = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(before, transaction) {
    for (const effect of transaction.effects) {
      if (effect.is(setMark))
        return effect.value
          ? Decoration.set([Decoration.mark({ class: "sql-error" }).range(effect.value.from, effect.value.to)])
          : Decoration.none;
    }
    return transaction.docChanged ? Decoration.none : before;
  },
  provide: (field) => EditorView.decorations.from(field),
});

export function SqlEditor({ height, value, datasets, events, onChange, onRun, onSave, handle }: EditorProps) {
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const language = useRef(new Compartment());
  const acts = useRef({ onChange, onRun, onSave });
  acts.current = { onChange, onRun, onSave };
  const dialect = () => [
    sql({
      dialect: PostgreSQL,
      schema: schemaOf(datasets),
      defaultTable: "events",
      upperCaseKeywords: true,
      keywordCompletion: (label, type) => ({ label, type, boost: -50 }),
    }),
    PostgreSQL.language.data.of({ autocomplete: ownCompletions(datasets, events) }),
  ];

  useEffect(() => {
    if (!place.current) return;
    const run = (act: "onRun" | "onSave") => () => {
      acts.current[act]();
      return true;
    };
    const made = new EditorView({
      parent: place.current,
      state: EditorState.create({
        doc: value,
        extensions: [
          keymap.of([
            { key: "Mod-Enter", run: run("onRun") },
            { key: "Mod-s", run: run("onSave"), preventDefault: true },
          ]),
          keymap.of([...completionKeymap, ...historyKeymap, ...standardKeymap]),
          history(),
          lineNumbers(),
          drawSelection(),
          bracketMatching(),
          autocompletion({ icons: false }),
          highlightActiveLine(),
          marks,
          syntaxHighlighting(highlight),
          placeholder(texts.sql.placeholder),
          EditorView.lineWrapping,
          EditorView.cspNonce.of(boot.nonce),
          EditorView.contentAttributes.of({ "aria-label": texts.sql.editor, "aria-description": texts.sql.leave }),
          language.current.of(dialect()),
          EditorView.updateListener.of(
            (update) => update.docChanged && acts.current.onChange(update.state.doc.toString()),
          ),
        ],
      }),
    });
    view.current = made;
    handle.current = {
      chosen() {
        const { main } = made.state.selection;
        const isSelection = !main.empty;
        return {
          sql: isSelection ? made.state.sliceDoc(main.from, main.to) : made.state.doc.toString(),
          isSelection,
          from: isSelection ? main.from : 0,
        };
      },
      insert(text) {
        made.dispatch(made.state.replaceSelection(text));
        made.focus();
      },
      mark(error) {
        if (!error) return made.dispatch({ effects: setMark.of(null) });
        const first = made.state.doc.lineAt(error.from).number;
        const line = made.state.doc.line(Math.min(first + error.line - 1, made.state.doc.lines));
        const indent = error.line === 1 ? error.from - made.state.doc.lineAt(error.from).from : 0;
        const from = Math.min(line.from + indent + error.column - 1, Math.max(line.to - 1, line.from));
        const word = /^\w+/.exec(made.state.sliceDoc(from, line.to))?.[0].length ?? 1;
        if (from < line.to)
          made.dispatch({
            effects: [setMark.of({ from, to: Math.min(from + word, line.to) }), EditorView.scrollIntoView(from)],
          });
      },
      focus: () => made.focus(),
    };
    return () => made.destroy();
  }, []);

  useEffect(() => {
    view.current?.dispatch({ effects: language.current.reconfigure(dialect()) });
  }, [datasets, events]);

  return <div ref={place} class="sql-field" style={{ height: `${height}px` }} />;
}
