/**
 * The frame around the console and the reference: a menu at the side, or behind a button on narrow screens.
 */

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Choice } from "./parts/fields.tsx";
import { colour, type PagePath } from "./parts/icon.tsx";
import { createPreference } from "./preference.ts";
import { setSession, useSession } from "./session.ts";
import { settings } from "./settings.ts";

interface FrameProps {
  /** The site name, which links to the first page. */
  readonly site: string;
  readonly title: string;
  /** The current page. When it changes, the menu closes and the focus moves to the page. */
  readonly page: unknown;
  /** Whether the page sets the focus itself. */
  readonly isFocused?: boolean;
  /** The page's path in the console, for its colour. */
  readonly path?: PagePath | undefined;
  /** The log-in's address; undefined where log-in is not offered. */
  readonly logIn: string | undefined;
  /** The menu's label. */
  readonly label: string;
  readonly menu: ComponentChildren;
  /** Content below the menu. */
  readonly links: ComponentChildren;
  readonly children: ComponentChildren;
}

export function Frame({ site, title, page, isFocused = false, path, logIn, ...parts }: FrameProps) {
  const [isMenuOpen, setMenuOpen] = useState(false);
  const main = useRef<HTMLElement>(null);
  const isFirst = useRef(true);
  useEffect(() => {
    document.title = title;
    setMenuOpen(false);
    // After a menu click, the focus moves to the page; a newly opened page starts at the top.
    if (!isFirst.current && !isFocused) {
      scrollTo(0, 0);
      main.current?.focus({ preventScroll: true });
    }
    isFirst.current = false;
  }, [page]);

  return (
    <div class="frame">
      {/* A button: the hash holds the page, so a fragment link cannot be used. */}
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        Skip to content
      </button>
      <div class="sidebar">
        <header class="top">
          <a class="site" href="#/">
            {site}
          </a>
          <button
            type="button"
            class="menu"
            aria-expanded={isMenuOpen}
            aria-controls="menu"
            onClick={() => setMenuOpen(!isMenuOpen)}
          >
            Menu
          </button>
        </header>
        <nav id="menu" aria-label={parts.label} data-open={isMenuOpen}>
          {parts.menu}
          <Account logIn={logIn} />
          {parts.links}
          <ThemeChoice />
        </nav>
      </div>
      <main id="main" ref={main} tabIndex={-1} {...colour(path)}>
        {parts.children}
      </main>
    </div>
  );
}

/** The current user. */
function Account({ logIn }: Pick<FrameProps, "logIn">) {
  const session = useSession();
  if (session === undefined)
    return logIn === undefined ? null : (
      <p>
        <a href={logIn}>Log in</a>
      </p>
    );
  return (
    <>
      <p class="session">
        Logged in as <strong>{session.username}</strong>{" "}
        <button type="button" onClick={() => setSession(undefined)}>
          Log out
        </button>
      </p>
      {!settings.wantsToken && <p class="hint">{openServer}</p>}
    </>
  );
}

/** Explains what a log-in is for on an open server. */
export const openServer =
  "This server is open: calls run as the user system, and tokens are ignored except for calls that always require one.";

const preferredTheme = createPreference("qsp-theme", ["System", "Light", "Dark"]);

/** Lets the reader override the system's dark or light setting. */
function ThemeChoice() {
  const [theme, choose] = preferredTheme.use();
  useEffect(() => {
    document.documentElement.dataset.theme = theme.toLowerCase();
  }, [theme]);
  return <Choice label="Theme" value={theme} onChange={choose} options={preferredTheme.options} />;
}
