// The menu at the side: organisation and environment, pages by section, and the user's own things at its foot. On a
// narrow page it is a drawer behind a button.

import { useLocation } from "preact-iso";
import { useEffect, useRef, useState } from "preact/hooks";
import { answer, api, ApiError } from "../api/client";
import { becomes } from "../api/person";
import { ROUTES, type PageRoute } from "../routes";
import { address, environment, PRODUCTION } from "../state/environment";
import { chooseMode, mode, type Mode } from "../state/mode";
import { me } from "../state/session";
import { attempt } from "../state/toast";
import { texts } from "../texts/en";
import { Icon } from "../ui/icon";
import { Menu } from "../ui/menu";
import { isPaletteOpen } from "./palette";

type Section = NonNullable<PageRoute["menu"]>["section"];

const SECTIONS: readonly Section[] = ["first", "build", "deliver", "organization"];
const MODES: readonly Mode[] = ["light", "dark", "system"];

export function Side() {
  const { path } = useLocation();
  const [isOpen, setOpen] = useState(false);
  const toggle = useRef<HTMLButtonElement>(null);
  useEffect(() => setOpen(false), [path]);
  return (
    <>
      <header class="top">
        <button
          ref={toggle}
          type="button"
          class="icon-button"
          aria-label={texts.shell.menu}
          aria-expanded={isOpen}
          aria-controls="side"
          onClick={() => setOpen(!isOpen)}
        >
          <Icon name="menu" />
        </button>
        <b>{me.value?.org.name}</b>
        <button
          type="button"
          class="icon-button"
          aria-label={texts.palette.open}
          onClick={() => (isPaletteOpen.value = true)}
        >
          <Icon name="search" />
        </button>
      </header>
      {isOpen && <div class="shade" onClick={() => setOpen(false)} />}
      <nav
        id="side"
        class="side"
        data-open={isOpen || undefined}
        aria-label={texts.shell.menu}
        onKeyDown={(event) => {
          if (event.key !== "Escape" || !isOpen) return;
          setOpen(false);
          toggle.current?.focus();
        }}
      >
        <Head />
        <div class="side-pages">
          {SECTIONS.map((section) => (
            <Pages key={section} section={section} path={path} />
          ))}
        </div>
        <Foot />
      </nav>
    </>
  );
}

function Head() {
  const { path, route } = useLocation();
  const org = me.value?.org;
  const choose = (name: string) => {
    environment.value = name;
    route(address(path.replace(/^\/console\/?/, "")), true);
  };
  return (
    <div class="side-head">
      <span class="org-mark" aria-hidden="true">
        {org?.name.charAt(0).toUpperCase()}
      </span>
      <b title={org?.name}>{org?.name}</b>
      <select
        class={environment.value === PRODUCTION ? "environment" : "environment other"}
        aria-label={texts.shell.environment}
        value={environment.value}
        onChange={(event) => choose(event.currentTarget.value)}
      >
        {org?.environments.map(({ name }) => (
          <option key={name} value={name}>
            {texts.shell.environments[name] ?? name}
          </option>
        ))}
      </select>
    </div>
  );
}

function Pages({ section, path }: { section: Section; path: string }) {
  const pages = ROUTES.flatMap((page) => (page.menu?.section === section ? [{ ...page, menu: page.menu }] : []));
  const heading = texts.menu.sections[section];
  return (
    <div role="group" class="side-section" aria-label={heading || undefined}>
      {heading && <h2 aria-hidden="true">{heading}</h2>}
      <ul>
        {pages.map((page) => {
          const href = `/console/${page.path}`;
          const isCurrent = path === href || path.startsWith(`${href}/`);
          return (
            <li key={page.path}>
              <a
                href={address(page.path)}
                title={page.menu.title}
                aria-current={isCurrent ? "page" : undefined}
                onPointerEnter={() => void page.load()}
                onFocus={() => void page.load()}
              >
                <Icon name={page.menu.icon} />
                <span>{page.menu.title}</span>
              </a>
            </li>
          );
        })}
      </ul>
    </div>
  );
}

function Foot() {
  const { route } = useLocation();
  const user = me.value?.user;
  const logOut = async () => {
    try {
      await answer(api.POST("/v1/auth/logout"));
    } catch (error) {
      // A session that has ended already needs no log-out.
      if (!(error instanceof ApiError) || error.status !== 401) throw error;
    }
    becomes(null);
    route("/console/login", true);
  };
  return (
    <div class="side-foot">
      <button type="button" class="search-button" onClick={() => (isPaletteOpen.value = true)}>
        <Icon name="search" />
        <span>{texts.palette.open}</span>
        <kbd>{texts.palette.keys}</kbd>
      </button>
      <div class="user">
        <a href={address("account")} title={user?.email}>
          <span class="avatar" aria-hidden="true">
            {initials(user?.name ?? "")}
          </span>
          <span>{user?.name}</span>
        </a>
        <Menu
          label={texts.shell.userMenu}
          items={[
            ...MODES.filter((one) => one !== mode.value).map((one) => ({
              label: texts.shell.modes[one],
              act: () => chooseMode(one),
            })),
            { label: texts.shell.account, act: () => route(address("account")) },
            { label: texts.shell.logOut, act: () => attempt(logOut) },
          ]}
        />
      </div>
    </div>
  );
}

const initials = (name: string) =>
  name
    .split(/\s+/)
    .map((word) => word.charAt(0))
    .slice(0, 2)
    .join("")
    .toUpperCase();
