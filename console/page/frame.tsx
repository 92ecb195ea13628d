/** The frame of the console and of the reference: a menu at the side, or behind a button where there is no room. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { colour } from "./colour.ts";
import { setSession, useSession } from "./session.ts";
import { settings } from "./settings.ts";
import { ThemeChoice } from "./theme.tsx";

interface FrameProps {
  /** Names the site, and leads to its first page. */
  readonly site: string;
  readonly title: string;
  /** The page that is shown. With a new one, the menu closes, and the focus moves to the page. */
  readonly page: unknown;
  /** Whether something on the page takes the focus itself. */
  readonly isFocused?: boolean;
  /** The colour of the page, in degrees. */
  readonly hue?: number | undefined;
  /** The address of the log-in; undefined where it is not offered. */
  readonly logIn: string | undefined;
  /** Names the menu. */
  readonly label: string;
  readonly menu: ComponentChildren;
  /** Stands below the menu. */
  readonly links: ComponentChildren;
  readonly children: ComponentChildren;
}

export function Frame({ site, title, page, isFocused = false, hue, logIn, ...parts }: FrameProps) {
  const [isMenuOpen, setMenuOpen] = useState(false);
  const main = useRef<HTMLElement>(null);
  const isFirst = useRef(true);
  useEffect(() => {
    document.title = title;
    setMenuOpen(false);
    // After a click in the menu, the focus moves to the page; a newly opened page starts at its top.
    if (!isFirst.current && !isFocused) {
      scrollTo(0, 0);
      main.current?.focus({ preventScroll: true });
    }
    isFirst.current = false;
  }, [page]);

  return (
    <div class="frame">
      {/* A button: the address names the page, so a link to a part of it cannot use it. */}
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        Skip to the page
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
      <main id="main" ref={main} tabIndex={-1} {...colour(hue)}>
        {parts.children}
      </main>
    </div>
  );
}

/** Who calls. */
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
        Logged in as <strong>{session.username}</strong>
        <button type="button" onClick={() => setSession(undefined)}>
          Log out
        </button>
      </p>
      {!settings.wantsToken && <p class="hint">{openServer}</p>}
    </>
  );
}

/** What a log-in is for where calls need none. */
export const openServer =
  "This server is open: calls count as system, and tokens are ignored, except by calls that always need one.";
