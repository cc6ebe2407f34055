// The frame of the console: visitors without a session get the entrance, users with one the menu and a page beside it.

import { useEffect, useLayoutEffect } from "preact/hooks";
import { isOnboarded, useOnboarding } from "./api/onboarding";
import { sentRequests } from "./api/requests";
import { ErrorBoundary, lazy, LocationProvider, Route, Router, useLocation } from "preact-iso";
import type { AnyComponent } from "preact";
import { address, environment, PRODUCTION } from "./state/environment";
import { endedSession } from "./state/interrupts";
import { may, me } from "./state/session";
import { loadEntrance, OPEN_PATHS, ROUTES, type PageRoute } from "./routes";
import { Interrupts } from "./shell/interrupts";
import { Missing, Unloadable } from "./shell/missing";
import { Palette } from "./shell/palette";
import { Requests } from "./shell/requests";
import { Side } from "./shell/side";
import { ToastLine } from "./shell/toast_line";
import { texts } from "./texts/en";

const ROOT = "/console/";

const Entrance = lazy(loadEntrance);

const components = new Map<PageRoute["load"], AnyComponent>();
for (const { load } of ROUTES) components.set(load, lazy(load as () => Promise<{ default: AnyComponent }>));

const routesOf = (routes: readonly PageRoute[]) =>
  routes.map(({ path, load }) => (
    <Route key={path} path={ROOT + path} component={components.get(load) as AnyComponent} />
  ));

export function App() {
  return (
    <LocationProvider scope={/^\/console(\/|$)/}>
      <Layout />
      <ToastLine />
    </LocationProvider>
  );
}

function Layout() {
  const { path, route, url } = useLocation();
  const isOpen = OPEN_PATHS.some((open) => path === ROOT + open);
  const isInside = me.value !== null && !isOpen;
  useEffect(() => {
    const known = me.value?.org.environments.map(({ name }) => name);
    if (known && !known.includes(environment.value)) environment.value = PRODUCTION;
    if (me.value === null && !isOpen) route(address("login", { next: path === "/console" ? undefined : url }), true);
  }, [path, isOpen, isInside]);
  // Requests are those of the page that is looked at.
  useLayoutEffect(() => {
    sentRequests.value = [];
  }, [path]);
  if (!isInside) {
    return (
      // Without a router: it would show the next form in the place of the last one, and then replace it with what was typed.
      <ErrorBoundary>{isOpen ? <Entrance /> : <Blank />}</ErrorBoundary>
    );
  }
  return (
    <>
      <a class="skip" href="#page">
        {texts.shell.skip}
      </a>
      <Side />
      <main id="page" tabIndex={-1} inert={endedSession.value || undefined}>
        <PageOutlet path={path} />
        <Requests />
      </main>
      <Palette />
      <Interrupts />
    </>
  );
}

/** The page; a module that cannot be loaded says so instead of leaving it empty. */
function PageOutlet({ path }: { path: string }) {
  return (
    <Unloadable path={path}>
      <Router>
        {routesOf(ROUTES)}
        <Route path="/console" component={Home} />
        <Route default component={Missing} />
      </Router>
    </Unloadable>
  );
}

/** Leads on: to the first steps as long as there are some that this user may do, else to the dashboards. */
function Home() {
  const { route } = useLocation();
  const isAdmin = may("admin");
  const { value, error } = useOnboarding({ enabled: isAdmin });
  const isKnown = !isAdmin || value !== undefined || error !== null;
  useEffect(() => {
    if (isKnown) route(address(value && !isOnboarded(value) ? "start" : "dashboards"), true);
  }, [isKnown]);
  return null;
}

function Blank() {
  return null;
}
