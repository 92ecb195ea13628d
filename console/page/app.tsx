/** The console: the menu, and the page that the address names. */

import { type ComponentType, Fragment } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Frame } from "./frame.tsx";
import { Page as Home } from "./home/page.tsx";
import { KeptPage } from "./kept-pages.tsx";
import { LogIn } from "./log-in.tsx";
import { type PageEntry, stories, tools, views } from "./pages.ts";
import { colour, Icon } from "./parts/icon.tsx";
import { Lead } from "./parts/lead.tsx";
import { useSession } from "./session.ts";
import { settings } from "./settings.ts";
import { useAddress } from "./use-address.ts";

const siteName = "Quantum-Safe Playground";
const home: PageEntry = {
  path: "",
  title: "Home",
  summary: "A live signature, and an overview of all pages.",
  isOpen: true,
  load: async () => ({ Page: Home }),
};
const logIn: PageEntry = {
  path: "log-in",
  title: "Log in",
  summary: "Get a token for your calls.",
  load: async () => ({ Page: LogIn }),
};
const groups = [
  { name: undefined, pages: [home] },
  { name: "Stories", pages: stories },
  { name: "Explore", pages: views },
  { name: "Tools", pages: tools },
].filter(({ pages }) => pages.length > 0);
const pages = groups.flatMap(({ pages }) => pages);

export function App() {
  const { path, step } = useAddress();
  const canLogIn = useSession() === undefined;
  // After a log-in, there is nothing to do on its page.
  const ofLogIn = canLogIn ? logIn : home;
  const found = path === logIn.path ? ofLogIn : pages.find((candidate) => candidate.path === path);
  const mustLogIn = canLogIn && (found === logIn || (settings.wantsToken && found?.isOpen !== true));
  const shown = mustLogIn ? logIn : found;
  return (
    <Frame
      site={siteName}
      title={shown === undefined || shown === home ? siteName : `${shown.title} – ${siteName}`}
      page={shown}
      isFocused={step !== undefined && !mustLogIn}
      path={found?.path}
      logIn={settings.wantsToken ? "#/log-in" : undefined}
      label="Pages"
      menu={groups.map(({ name, pages }) => (
        <Fragment key={name}>
          {name && <h2>{name}</h2>}
          <PageLinks pages={pages} current={found} />
        </Fragment>
      ))}
      links={
        <>
          <p>
            <a href="/reference">API reference</a>
          </p>
          <p>
            <a href="/protos.tar.gz">Protos for gRPC clients</a>
          </p>
        </>
      }
    >
      {mustLogIn ? (
        <LogIn />
      ) : found === undefined ? (
        <NotFound />
      ) : found === home ? (
        // Part of the initial bundle, so that the first screen loads without another request.
        <Home />
      ) : (
        <Loaded key={path} {...found} />
      )}
    </Frame>
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
  // Scrolls a long menu so that the open page's entry is visible.
  useEffect(() => link.current?.scrollIntoView({ block: "nearest" }), [current]);
  return (
    <ul>
      {pages.map((page) => (
        <li key={page.path}>
          <a
            ref={page === current ? link : null}
            href={`#/${page.path}`}
            aria-current={page === current ? "page" : undefined}
            {...colour(page.path)}
          >
            <Icon path={page.path} />
            {page.title}
          </a>
        </li>
      ))}
    </ul>
  );
}

function NotFound() {
  return (
    <Lead title="Page not found">
      This server has no page at this address. <a href="#/">Show all pages.</a>
    </Lead>
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
  // Stories keep their state; all other pages show the server's current data.
  const isKept = stories.some((story) => story.path === path);
  return isKept ? <KeptPage path={path} Page={loading.Page} /> : <loading.Page />;
}
