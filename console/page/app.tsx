/** The frame of the page: navigation, log-in, and the story that the address names. */
import { type ComponentType, Fragment } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { KeptPage } from "./kept-pages.tsx";
import { LogIn } from "./log-in.tsx";
import type { PageEntry } from "./page-entry.ts";
import { shownStories, shownTools, shownViews } from "./pages.ts";
import { Icon } from "./parts/icon.tsx";
import { setSession, useSession } from "./session.ts";
import { settings } from "./settings.ts";
import { Page as Overview } from "./stories/home.tsx";
import { ThemeChoice } from "./theme.tsx";
import { useAddress } from "./use-address.ts";

const siteName = "Quantum-Safe Playground";
const home: PageEntry = {
  path: "",
  title: "Overview",
  summary: "A signature made now, and all pages.",
  icon: "home",
  accent: "teal",
  isOpen: true,
  load: async () => ({ Page: Overview }),
};
const logIn: PageEntry = {
  path: "log-in",
  title: "Log in",
  summary: "Get a token for calls.",
  icon: "login",
  accent: "teal",
  load: async () => ({ Page: LogIn }),
};
const groups = [
  { name: undefined, pages: [home] },
  { name: "Stories", pages: shownStories },
  { name: "Explore", pages: shownViews },
  { name: "Tools", pages: shownTools },
].filter(({ pages }) => pages.length > 0);
const pages = groups.flatMap(({ pages }) => pages);

export function App() {
  const { path, step } = useAddress();
  const session = useSession();
  const [isMenuOpen, setMenuOpen] = useState(false);
  const main = useRef<HTMLElement>(null);
  const isFirst = useRef(true);
  const canLogIn = settings.wantsToken && session === undefined;
  const found = [...pages, ...(canLogIn ? [logIn] : [])].find((candidate) => candidate.path === path);
  const mustLogIn = canLogIn && found?.isOpen !== true;

  useEffect(() => {
    document.title = found === undefined || found === home ? siteName : `${found.title} – ${siteName}`;
    setMenuOpen(false);
    // After a click in the menu, the focus moves to the story; a newly opened page starts at its top. A step takes the
    // focus itself.
    if (!isFirst.current && step === undefined) {
      scrollTo(0, 0);
      main.current?.focus({ preventScroll: true });
    }
    isFirst.current = false;
  }, [found]);

  return (
    <div class="frame">
      {/* A button: the address names the story, so a link to a part of the page cannot use it. */}
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        Skip to the page
      </button>
      <div class="sidebar">
        <header class="top">
          <a class="site" href="#/">
            {siteName}
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
        <nav id="menu" aria-label="Pages" data-open={isMenuOpen}>
          {groups.map(({ name, pages }) => (
            <Fragment key={name}>
              {name && <h2>{name}</h2>}
              <PageLinks pages={pages} current={found} />
            </Fragment>
          ))}
          {canLogIn && (
            <p>
              <a href="#/log-in">Log in</a>
            </p>
          )}
          {session && (
            <p class="session">
              Logged in as <strong>{session.username}</strong>
              <button type="button" onClick={() => setSession(undefined)}>
                Log out
              </button>
            </p>
          )}
          {session && !settings.wantsToken && (
            <p class="hint">
              This server is open: calls count as system, and tokens are ignored, except by calls that always
              need one.
            </p>
          )}
          <p>
            <a href="/reference">Reference of all calls</a>
          </p>
          <p>
            <a href="/protos.tar.gz">Protos for gRPC clients</a>
          </p>
          <ThemeChoice />
        </nav>
      </div>
      <main id="main" ref={main} tabIndex={-1} data-accent={found?.accent}>
        {found !== undefined && found !== home && !mustLogIn && (
          <span class="emblem">
            <Icon name={found.icon} />
          </span>
        )}
        {mustLogIn ? (
          <LogIn />
        ) : found === undefined ? (
          <NotFound />
        ) : found === home ? (
          // Part of the first file, so that the first screen waits for no other.
          <Overview />
        ) : (
          <Loaded key={path} {...found} />
        )}
      </main>
    </div>
  );
}

function PageLinks({
  pages,
  current,
}: {
  readonly pages: readonly PageEntry[];
  readonly current: PageEntry | undefined;
}) {
  const link = useRef<HTMLAnchorElement>(null);
  // A menu that does not fit scrolls; the page that is open should be in sight.
  useEffect(() => link.current?.scrollIntoView({ block: "nearest" }), [current]);
  return (
    <ul>
      {pages.map((page) => (
        <li key={page.path}>
          <a
            ref={page === current ? link : null}
            href={`#/${page.path}`}
            aria-current={page === current ? "page" : undefined}
            data-accent={page.accent}
          >
            <Icon name={page.icon} />
            {page.title}
          </a>
        </li>
      ))}
    </ul>
  );
}

function NotFound() {
  return (
    <header class="lead">
      <h1>No such page</h1>
      <p>
        This server has no page with this address. <a href="#/">Show all pages.</a>
      </p>
    </header>
  );
}

type Loading = { readonly Page: ComponentType } | "loading" | "failed";

type LoadedProps = Pick<PageEntry, "path" | "load">;

function Loaded({ path, load }: LoadedProps) {
  const [loading, setLoading] = useState<Loading>("loading");
  useEffect(() => {
    load().then(
      ({ Page }) => setLoading({ Page }),
      () => setLoading("failed"),
    );
  }, [load]);
  if (loading === "loading") return <p class="hint">Loading …</p>;
  if (loading === "failed") {
    return <p role="alert">This page could not be loaded. Check that the server is running, then reload.</p>;
  }
  // Stories are kept as they were left; the other pages show what the server has now.
  const isKept = shownStories.some((story) => story.path === path);
  return isKept ? <KeptPage path={path} Page={loading.Page} /> : <loading.Page />;
}
