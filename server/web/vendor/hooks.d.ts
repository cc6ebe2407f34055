/** What we use of Preact's hooks. */
type Change<T> = T | ((old: T) => T);
export function useState<T>(initial: T | (() => T)): [T, (next: Change<T>) => void];
export function useRef<T>(initial: T): { current: T };
export function useMemo<T>(make: () => T, inputs: unknown[]): T;
export function useEffect(effect: () => void | (() => void), inputs?: unknown[]): void;
export function useLayoutEffect(effect: () => void | (() => void), inputs?: unknown[]): void;
export function useId(): string;
export function useErrorBoundary(): [unknown, () => void];
