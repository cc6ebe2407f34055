// The draft of a dashboard while it is edited: every change can be undone, and is saved by itself.
//
// A change is saved 800 ms after the last one, with the version that it began from. When somebody else has saved
// meanwhile, nothing is overwritten: both drafts are there until the user chooses, and the one not chosen can be
// brought back by undo.

import { useEffect, useRef, useState } from "preact/hooks";
import { answer, api, ApiError, type Schemas } from "../../api/client";
import { refresh, remember } from "../../api/cache";

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
  /** What somebody else has saved. */
  theirs: Dashboard | null;
  /** `merged` names the field, so that typing is one step. */
  change: (next: Partial<Draft>, merged?: string) => void;
  undo: (() => void) | null;
  redo: (() => void) | null;
  retry: () => void;
  keepMine: () => void;
  takeTheirs: () => void;
  /** Saves now what waits; resolves when the server has it. */
  flush: () => Promise<void>;
}

const draftOf = ({ name, widgets, settings }: Dashboard): Draft => ({ name, widgets, settings });

export function useDraft(dashboard: Dashboard): Editing {
  const [draft, setDraft] = useState(() => draftOf(dashboard));
  const [past, setPast] = useState<Draft[]>([]);
  const [future, setFuture] = useState<Draft[]>([]);
  const [save, setSave] = useState<SaveState>("saved");
  const [error, setError] = useState<ApiError | null>(null);
  const [theirs, setTheirs] = useState<Dashboard | null>(null);
  const version = useRef(dashboard.version);
  const newest = useRef(draft);
  const stored = useRef(draft);
  const timer = useRef(0);
  const running = useRef<Promise<void> | null>(null);
  const last = useRef({ field: "", at: 0 });

  const store = async (): Promise<void> => {
    clearTimeout(timer.current);
    if (running.current) {
      await running.current;
      if (newest.current === stored.current) return;
    }
    const sent = newest.current;
    setSave("saving");
    running.current = send(dashboard.id, sent, version.current).then(
      (saved) => {
        version.current = saved.version;
        stored.current = sent;
        remember(["dashboard", saved.id], saved);
        setError(null);
        setSave(newest.current === sent ? "saved" : "waiting");
      },
      async (cause: unknown) => {
        const refusal = cause instanceof ApiError ? cause : new ApiError(0, {});
        setError(refusal);
        if (refusal.status === 409) {
          setTheirs(await answer(api.GET("/v1/dashboards/{id}", { params: { path: { id: dashboard.id } } })));
          setSave("conflict");
        } else {
          setSave("failed");
        }
      },
    );
    await running.current;
    running.current = null;
    if (newest.current !== stored.current && newest.current !== sent) await store();
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

  useEffect(() => {
    const warn = (event: BeforeUnloadEvent) => {
      if (newest.current !== stored.current) event.preventDefault();
    };
    addEventListener("beforeunload", warn);
    return () => {
      removeEventListener("beforeunload", warn);
      // Leaving the page within the console must not lose what waits.
      if (newest.current !== stored.current) void store();
      void refresh("dashboard", "dashboards");
    };
  }, []);

  const step = (from: Draft[], setFrom: (steps: Draft[]) => void, setTo: (change: (steps: Draft[]) => Draft[]) => void) => {
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
    draft, save, error, theirs, change,
    undo: step(past, setPast, setFuture),
    redo: step(future, setFuture, setPast),
    retry: () => void store(),
    keepMine() {
      if (theirs) version.current = theirs.version;
      if (theirs) setPast((steps) => [...steps, draftOf(theirs)]);
      setTheirs(null);
      void store();
    },
    takeTheirs() {
      if (!theirs) return;
      version.current = theirs.version;
      setPast((steps) => [...steps, newest.current]);
      newest.current = stored.current = draftOf(theirs);
      setDraft(newest.current);
      setTheirs(null);
      setError(null);
      setSave("saved");
    },
    flush: async () => {
      if (newest.current !== stored.current) await store();
    },
  };
}

function send(id: string, { name, widgets, settings }: Draft, version: number): Promise<Dashboard> {
  const params = { path: { id }, header: { "If-Match": String(version) } };
  return answer(api.PATCH("/v1/dashboards/{id}", { params: params as never, body: { name, widgets, settings } }));
}
