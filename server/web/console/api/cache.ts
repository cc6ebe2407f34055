// Data of the API in components: requested once, cached, cancelled when unused, requested again when it may be stale.
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
      // Retry only unreachable or overloaded servers; other errors are final.
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
  /** Interval of polling in milliseconds, while the page is visible; or a function of the newest value. */
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

/** Stores a response in the cache: the response to a change is the newest version of its record. */
export function remember(key: readonly unknown[], value: unknown): void {
  cache.setQueryData([environment.value, ...key], value);
}

/** Asks again for everything whose key begins with one of these names, in each environment. */
export function refresh(...names: string[]): Promise<void> {
  return cache.invalidateQueries({ predicate: ({ queryKey }) => names.includes(String(queryKey[1])) });
}
