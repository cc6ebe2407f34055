// Every page: its path below `/console/`, where it stands in the menu, and its module, loaded when it is needed.

import type { AnyComponent } from "preact";
import type { Role } from "./state/session";
import { texts } from "./texts/en";
import type { IconName } from "./ui/icon";

export interface PageRoute {
  path: string;
  load: () => Promise<{ default: AnyComponent<never> }>;
  /** Its line of the menu; a page below another one has none. */
  menu?: { section: keyof typeof texts.menu.sections; title: string; icon: IconName };
  /** The least role that the page's data is given to. */
  least?: Role;
}

const titles = texts.menu.pages;

export const ROUTES: readonly PageRoute[] = [
  { path: "start", load: () => import("./pages/start"), menu: { section: "first", title: titles.start, icon: "home" } },
  {
    path: "dashboards",
    load: () => import("./pages/dashboards"),
    menu: { section: "build", title: titles.dashboards, icon: "dashboards" },
  },
  { path: "dashboards/:id", load: () => import("./pages/dashboard") },
  {
    path: "widgets",
    load: () => import("./pages/widgets"),
    menu: { section: "build", title: titles.widgets, icon: "widget" },
  },
  {
    path: "explore",
    load: () => import("./pages/explore"),
    menu: { section: "build", title: titles.explore, icon: "explore" },
  },
  {
    path: "sql",
    load: () => import("./pages/sql"),
    menu: { section: "build", title: titles.sql, icon: "sql" },
    least: "admin",
  },
  { path: "data", load: () => import("./pages/data"), menu: { section: "build", title: titles.data, icon: "data" } },
  {
    path: "embed-sessions",
    load: () => import("./pages/embed_sessions"),
    menu: { section: "deliver", title: titles.embedSessions, icon: "embed" },
    least: "admin",
  },
  {
    path: "alerts",
    load: () => import("./pages/alerts"),
    menu: { section: "deliver", title: titles.alerts, icon: "alert" },
  },
  { path: "alerts/:id", load: () => import("./pages/alert") },
  {
    path: "reports",
    load: () => import("./pages/reports"),
    menu: { section: "deliver", title: titles.reports, icon: "report" },
  },
  { path: "reports/:id", load: () => import("./pages/report") },
  {
    path: "deliveries",
    load: () => import("./pages/deliveries"),
    menu: { section: "deliver", title: titles.deliveries, icon: "delivery" },
    least: "admin",
  },
  {
    path: "api-keys",
    load: () => import("./pages/api_keys"),
    menu: { section: "organization", title: titles.apiKeys, icon: "key" },
    least: "admin",
  },
  {
    path: "team",
    load: () => import("./pages/team"),
    menu: { section: "organization", title: titles.team, icon: "team" },
  },
  {
    path: "usage",
    load: () => import("./pages/usage"),
    menu: { section: "organization", title: titles.usage, icon: "billing" },
  },
  {
    path: "audit",
    load: () => import("./pages/audit"),
    menu: { section: "organization", title: titles.audit, icon: "audit" },
    least: "admin",
  },
  {
    path: "erasures",
    load: () => import("./pages/erasures"),
    menu: { section: "organization", title: titles.erasures, icon: "erasure" },
    least: "admin",
  },
  {
    path: "settings",
    load: () => import("./pages/settings"),
    menu: { section: "organization", title: titles.settings, icon: "settings" },
  },
  { path: "account", load: () => import("./pages/account") },
];

/** The page of visitors without a session, whichever of its paths they are at. */
export const loadEntrance = () => import("./pages/entrance");

/** Paths for visitors without a session. */
export const OPEN_PATHS: readonly string[] = ["login", "register", "invite", "forgot-password", "reset-password"];
