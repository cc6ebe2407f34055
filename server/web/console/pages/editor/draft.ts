// The draft of a dashboard while it is edited: every change can be undone, and is saved by itself.
//
// A change is saved 800 ms after the last one, with the version that it began from. When somebody else has saved
// meanwhile, nothing is overwritten: both drafts are there until the user chooses, and the one not chosen can be
// brought back by undo.

import { useEffect, useRef, useState } from "preact/hooks";
import { answer, api, ApiError, type Schemas } from "../../api/client";
import { refresh, remember } from "../../api/cache";
import { leaveUnsaved, savedAfterAll, unsavedOf } from "../../api/unsaved";
import { endedSession } from "../../state/interrupts";

type Dashboard = Schemas["Dashboard"];
export type Draft = Pick<Dashboard, "name" | "widgets" | "settings">;
export type SaveState = "saved" | "waiting" | "saving" | "failed" | "conflict";

const SAVE_AFTER_MS = 800;
/** Changes of one field within this time are one step of undo. */
const MERGED_MS = 1_500;
const STEPS_MAX = 100;

export interface Editing {
  draft: Draft;
  save: SaveState;
  /** Why the last save was refused. */
  error: ApiError | null;
  /** The version that another user has saved. */
  theirs: Dashboard | null;
  /** `merged` names the field, so that typing is one step. */
  change: (next: Partial<Draft>, merged?: string) => void;
  undo: (() => void) | null;
  redo: (() => void) | null;
  retry: () => void;
  keepMine: () => void;
  takeTheirs: () => void;
  /** Saves pending changes at once; resolves to whether the server has them. */
  flush: () => Promise<boolean>;
}

const draftOf = ({ name, widgets, settings }: Dashboard): Draft => ({ name, widgets, settings });

export function useDraft(dashboard: Dashboard): Editing {
  const { id } = dashboard;
  // Changes that could not be saved when the page was left are restored.
  const [left] = useState(() => unsavedOf(id));
  const [draft, setDraft] = useState(() => left?.draft ?? draftOf(dashboard));
  const [past, setPast] = useState<Draft[]>([]);
  const [future, setFuture] = useState<Draft[]>([]);
  const [save, setSave] = useState<SaveState>(left ? "waiting" : "saved");
  const [error, setError] = useState<ApiError | null>(null);
  const [theirs, setTheirs] = useState<Dashboard | null>(null);
  const version = useRef(left?.version ?? dashboard.version);
  const newest = useRef(draft);
  const stored = useRef(left ? draftOf(dashboard) : draft);
  const timer = useRef(0);
  const saving = useRef<Promise<boolean> | null>(null);
  const last = useRef({ field: "", at: 0 });

  /** Saves until the server has the newest draft; whether it has. One loop at a time. */
  const store = (): Promise<boolean> => {
    clearTimeout(timer.current);
    saving.current ??= saveAll().finally(() => {
      saving.current = null;
    });
    return saving.current;
  };

  const saveAll = async (): Promise<boolean> => {
    while (newest.current !== stored.current) {
      const sent = newest.current;
      setSave("saving");
      try {
        const saved = await send(id, sent, version.current);
        version.current = saved.version;
        stored.current = sent;
        remember(["dashboard", id], saved);
      } catch (cause) {
        const refusal = cause instanceof ApiError ? cause : new ApiError(0, {});
        setError(refusal);
        setSave((await isConflict(refusal)) ? "conflict" : "failed");
        leaveUnsaved(id, { draft: newest.current, version: version.current });
        return false;
      }
    }
    savedAfterAll(id);
    setError(null);
    setSave("saved");
    return true;
  };

  /** Whether the error is a conflict with another user's version, which is then loaded. */
  const isConflict = async ({ status }: ApiError): Promise<boolean> => {
    if (status !== 409) return false;
    try {
      setTheirs(await answer(api.GET("/v1/dashboards/{id}", { params: { path: { id } } })));
      return true;
    } catch {
      return false;
    }
  };

  const put = (next: Draft) => {
    newest.current = next;
    setDraft(next);
    setSave("waiting");
    clearTimeout(timer.current);
    timer.current = setTimeout(() => void store(), SAVE_AFTER_MS);
  };

  const change = (part: Partial<Draft>, merged = "") => {
    const now = Date.now();
    const isSame = merged !== "" && merged === last.current.field && now - last.current.at < MERGED_MS;
    last.current = { field: merged, at: now };
    if (!isSame) setPast((steps) => [...steps.slice(-STEPS_MAX), newest.current]);
    setFuture([]);
    put({ ...newest.current, ...part });
  };

  // Logged in again, or left unsaved before: it goes on by itself.
  useEffect(() => {
    if (!endedSession.value && newest.current !== stored.current && !theirs) void store();
  }, [endedSession.value]);

  useEffect(() => {
    const warn = (event: BeforeUnloadEvent) => {
      if (newest.current !== stored.current) event.preventDefault();
    };
    addEventListener("beforeunload", warn);
    return () => {
      removeEventListener("beforeunload", warn);
      // Leaving the page within the console must not lose pending changes.
      if (newest.current !== stored.current) {
        leaveUnsaved(id, { draft: newest.current, version: version.current });
        void store();
      }
      void refresh("dashboards");
    };
  }, []);

  const step = (
    from: Draft[],
    setFrom: (steps: Draft[]) => void,
    setTo: (change: (steps: Draft[]) => Draft[]) => void,
  ) => {
    const target = from.at(-1);
    if (!target) return null;
    return () => {
      const current = newest.current;
      setFrom(from.slice(0, -1));
      setTo((steps) => [...steps, current]);
      last.current.field = "";
      put(target);
    };
  };

  return {
    draft,
    save,
    error,
    theirs,
    change,
    undo: step(past, setPast, setFuture),
    redo: step(future, setFuture, setPast),
    retry: () => void store(),
    keepMine() {
      if (theirs) version.current = theirs.version;
      if (theirs) setPast((steps) => [...steps, draftOf(theirs)]);
      setFuture([]);
      setTheirs(null);
      void store();
    },
    takeTheirs() {
      if (!theirs) return;
      version.current = theirs.version;
      setPast((steps) => [...steps, newest.current]);
      setFuture([]);
      savedAfterAll(id);
      remember(["dashboard", id], theirs);
      newest.current = stored.current = draftOf(theirs);
      setDraft(newest.current);
      setTheirs(null);
      setError(null);
      setSave("saved");
    },
    flush: () => store(),
  };
}

function send(id: string, { name, widgets, settings }: Draft, version: number): Promise<Dashboard> {
  const params = { path: { id }, header: { "If-Match": String(version) } };
  return answer(api.PATCH("/v1/dashboards/{id}", { params, body: { name, widgets, settings } }));
}
