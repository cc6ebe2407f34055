// Data of the API in components: asked for once, kept, cancelled when nobody looks, asked again when it may be old.
//
//     const alerts = useData(["alerts"], (signal) => answer(api.GET("/v1/alerts", { signal })));
//     await refresh("alerts");       // after a change
//
// The work is done by TanStack Query's core; this is its binding for Preact.

import { QueryClient, QueryObserver } from "@tanstack/query-core";
import { useEffect, useReducer, useState } from "preact/hooks";
import { environment } from "../state/environment";
import { ApiError } from "./client";

const FRESH_MS = 10_000;
const RETRIES_MAX = 2;

export const cache = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: FRESH_MS,
      // A refusal stays one; what could not be reached or was too busy may be there now.
      retry: (count, error) =>
        count < RETRIES_MAX &&
        error instanceof ApiError &&
        (error.status === 0 || error.status === 503 || error.status === 429),
    },
  },
});

export interface Data<Value> {
  /** The newest answer; undefined before the first. */
  value: Value | undefined;
  error: ApiError | null;
  /** Nothing is there yet, and it is on its way. */
  isLoading: boolean;
  /** Something is there, and a newer answer is on its way. */
  isRefreshing: boolean;
  reload: () => void;
}

interface Options<Value> {
  /** Milliseconds after which it is asked for again while the page is looked at; a function says so of the newest answer. */
  every?: number | ((value: Value | undefined) => number | undefined);
  /** False as long as it must not be asked for. */
  enabled?: boolean;
  /** The answer to the question before stays until the next one is there; a function says of which key it may. */
  keeps?: boolean | ((before: readonly unknown[]) => boolean);
}

/** `key` names the question: the same key is the same answer. */
export function useData<Value>(
  key: readonly unknown[],
  load: (signal: AbortSignal) => Promise<Value>,
  { every, enabled = true, keeps = false }: Options<Value> = {},
): Data<Value> {
  const options = cache.defaultQueryOptions<Value, ApiError, Value, Value, readonly unknown[]>({
    queryKey: [environment.value, ...key],
    queryFn: ({ signal }) => load(signal),
    enabled,
    refetchInterval: typeof every === "function" ? ({ state }) => every(state.data) ?? false : (every ?? false),
    ...(keeps
      ? {
          placeholderData: (before, query) =>
            keeps === true || (query && keeps(query.queryKey.slice(1))) ? before : undefined,
        }
      : {}),
  });
  const [observer] = useState(() => new QueryObserver(cache, options));
  const [, redraw] = useReducer<number, void>((count) => count + 1, 0);
  const result = observer.getOptimisticResult(options);
  useEffect(() => observer.setOptions(options));
  useEffect(() => observer.subscribe(() => redraw()), [observer]);
  return {
    value: result.data,
    error: result.error,
    isLoading: enabled && result.isPending,
    isRefreshing: result.isFetching && !result.isPending,
    reload: () => void observer.refetch(),
  };
}

/** What is known without asking: the answer to a change is the newest one to its question. */
export function remember(key: readonly unknown[], value: unknown): void {
  cache.setQueryData([environment.value, ...key], value);
}

/** Asks again for everything whose key begins with one of these names, in each environment. */
export function refresh(...names: string[]): Promise<void> {
  return cache.invalidateQueries({ predicate: ({ queryKey }) => names.includes(String(queryKey[1])) });
}
