/** Types of `{base_url}/sdk/v1/embed.js`. Additions only. */

export type Period = "1h" | "24h" | "7d" | "30d" | "90d";

export interface Filters {
  period?: Period;
  /** A value, or any of several. `{}` clears. */
  dimensions?: Record<string, string | string[]>;
  numericRanges?: Record<string, { min?: number; max?: number }>;
  /** Replaces the period. ISO 8601; `to` is the first instant outside. */
  dateRanges?: { timestamp?: { from: string; to: string } };
}

export interface Theme {
  primaryColor?: string;
  backgroundColor?: string;
  cardBackground?: string;
  cardBorder?: string;
  textColor?: string;
  mutedColor?: string;
  mode?: "light" | "dark" | "auto";
  fontFamily?: string;
  /** Of cards, in pixels. */
  radius?: number;
}

/** What `POST /v1/embed-sessions` answers. */
export interface EmbedSession {
  embed_url: string;
  token?: string;
  expires_at?: string;
}

/** Gives a new session; `null`, or an error with `status` 401 or 403, ends the renewing. */
export type FetchEmbedUrl = (options: { signal: AbortSignal }) => Promise<string | EmbedSession | null>;

export interface DashboardEvents {
  ready: { dashboardId: string };
  resize: { height: number };
  filter: {
    period: Period;
    filters: Record<string, string | string[]>;
    numericRanges: NonNullable<Filters["numericRanges"]>;
    dateRanges: NonNullable<Filters["dateRanges"]>;
  };
  "period-change": { previousPeriod: Period; period: Period };
  drill: { dimension: string; value: string | string[]; action: "apply" | "clear" | "detail" };
  error: { message: string; code: string; widgetId?: string; retryable: boolean };
  /** Both as the token says. */
  "session-swapped": { dashboardId?: string; expiresAt?: string };
}

export interface MountOptions {
  /** A signed address; or leave it out and give `fetchEmbedUrl`. */
  embedUrl?: string | EmbedSession;
  fetchEmbedUrl?: FetchEmbedUrl;
  theme?: Theme;
  filters?: Filters;
  mode?: "light" | "dark" | "auto";
  /** BCP 47, such as `de`. */
  locale?: string;
  /** Title of the frame for screen readers. */
  label?: string;
  /** A fixed height; without it the frame follows its content. */
  height?: string;
  /** `lazy` waits until the element is near the viewport. */
  loading?: "lazy" | "eager";
}

/** Puts a dashboard into an element of the page and returns it. */
export declare function mountDashboard(target: string | Element, options: MountOptions): InlayDashboard;

export declare class InlayDashboard extends HTMLElement {
  src: string;
  label: string;
  height: string;
  mode: string;
  locale: string;
  loading: string;
  theme: Theme;
  get filters(): Filters | null;
  set filters(value: Filters | null | undefined);
  fetchEmbedUrl: FetchEmbedUrl | null;
  /** Listens; the function returned stops listening. */
  on<Type extends keyof DashboardEvents>(type: Type, listener: (detail: DashboardEvents[Type]) => void): () => void;
  setFilters(filters: Filters): void;
  setTheme(theme: Theme): void;
  /** Loads the data again. */
  reload(): void;
  /** Asks `fetchEmbedUrl` for a new session now. */
  refresh(): Promise<void>;
  /** Swaps to another session behind the current one; fails without touching it. */
  setEmbedUrl(url: string): Promise<void>;
  getFilters(): Filters | null;
  destroy(): void;
}

declare global {
  interface HTMLElementTagNameMap {
    "inlay-dashboard": InlayDashboard;
  }
}
