/** What we use of Preact. */
export type Child = unknown;
export function h<Props>(type: string | ((props: Props) => unknown), props: (Props & { key?: unknown }) | null, ...children: Child[]): object;
export function render(tree: unknown, into: Element): void;
export const Fragment: (props: { children?: Child }) => unknown;
