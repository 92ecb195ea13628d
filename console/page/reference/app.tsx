/** The frame of the reference: search, the list of calls, log-in, and the call that the address names. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useSession } from "../session.ts";
import { ThemeChoice } from "../theme.tsx";
import { CallList } from "./call-list.tsx";
import { type ApiDocument, nameOperation } from "./document.ts";
import { findCommonReasons } from "./failures.ts";
import { LogIn } from "./log-in.tsx";
import { OperationView } from "./operation.tsx";
import { Overview } from "./overview.tsx";
import { searchGroups } from "./search.ts";
import { SearchField } from "./search-field.tsx";

export function Reference({ api }: { readonly api: ApiDocument }) {
  const path = useHash();
  const session = useSession();
  const [query, setQuery] = useState("");
  const [isMenuOpen, setMenuOpen] = useState(false);
  const main = useRef<HTMLElement>(null);
  const isFirst = useRef(true);
  const common = useMemo(() => findCommonReasons(api), [api]);
  const groups = useMemo(() => searchGroups(api.groups, query), [api, query]);
  const found = api.operations.find(({ operationId }) => operationId === path);
  const [firstHit] = groups.flatMap(({ operations }) => operations);

  useEffect(() => {
    document.title = found === undefined ? "API reference" : `${nameOperation(found)} – API reference`;
    setMenuOpen(false);
    if (!isFirst.current) {
      scrollTo(0, 0);
      main.current?.focus({ preventScroll: true });
    }
    isFirst.current = false;
  }, [found, path]);

  return (
    <div class="ref">
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        Skip to the call
      </button>
      <header class="ref-top">
        <p class="ref-brand">
          <a href="/">← Console</a>
          <a class="ref-home" href="#/">
            API reference
          </a>
        </p>
        <SearchField
          value={query}
          onChange={(text) => {
            setQuery(text);
            setMenuOpen(text !== "");
          }}
          onEnter={() => {
            if (query !== "" && firstHit !== undefined) location.hash = `#/${firstHit.operationId}`;
            setMenuOpen(false);
          }}
        />
        <button
          type="button"
          class="ref-menu"
          aria-expanded={isMenuOpen}
          aria-controls="calls"
          onClick={() => setMenuOpen(!isMenuOpen)}
        >
          Calls
        </button>
        <LogIn api={api} session={session} />
        <ThemeChoice />
      </header>
      <nav id="calls" class="ref-calls" aria-label="Calls" data-open={isMenuOpen}>
        <CallList groups={groups} current={found} isSearch={query.trim() !== ""} />
      </nav>
      <main ref={main} tabIndex={-1} class="ref-main">
        {found === undefined ? (
          <Overview api={api} common={common} isMissing={path !== ""} />
        ) : (
          <OperationView
            key={found.operationId}
            api={api}
            operation={found}
            common={common}
            session={session}
          />
        )}
      </main>
    </div>
  );
}

/** The address after "#/". */
function useHash(): string {
  const read = (): string => location.hash.replace(/^#\/?/, "");
  const [path, setPath] = useState(read);
  useEffect(() => {
    const onChange = (): void => setPath(read());
    addEventListener("hashchange", onChange);
    onChange();
    return () => removeEventListener("hashchange", onChange);
  }, []);
  return path;
}
