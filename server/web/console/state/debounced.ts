// Returns a value after it has not changed for a moment, for requests that are made while somebody types.

import { useEffect, useState } from "preact/hooks";

const DEBOUNCE_MS = 300;

export function useDebounced(value: string): string {
  const [debounced, setDebounced] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setDebounced(value), DEBOUNCE_MS);
    return () => clearTimeout(timer);
  }, [value]);
  return debounced;
}
