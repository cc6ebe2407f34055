// A value that changes while somebody types, once it has been the same for a moment: what is asked of the server.

import { useEffect, useState } from "preact/hooks";

const SETTLED_AFTER_MS = 300;

export function useSettled(value: string): string {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), SETTLED_AFTER_MS);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}
