/**
 * Keeps stories as the reader left them: results, fields and expanded sections. They are kept in memory only,
 * because some contain the reader's secret keys. A reload or a change of user drops them.
 *
 * A kept story is a separate tree in a detached element. Therefore ids must not come from Preact's useId,
 * which starts from zero in each tree; use unique-id.ts.
 */
import { type ComponentType, createContext, render } from "preact";
import { useContext, useLayoutEffect, useRef, useState } from "preact/hooks";
import { useSession, watchSession } from "./session.ts";

/** Where a component is mounted. */
interface Place {
  /** The page; undefined on a page that is not kept. */
  readonly path?: string;
  /** Whether the page is visible. */
  readonly isShown: boolean;
  /** Resets the page; undefined on a page that is not kept. */
  readonly startAgain?: () => void;
}

const PlaceContext = createContext<Place>({ isShown: true });

/** Provides components with their page and its visibility. */
export function usePlace(): Place {
  return useContext(PlaceContext);
}

/** A page that has been opened. */
interface Kept {
  readonly container: HTMLElement;
  /** Updates its components' visibility. */
  show: (isShown: boolean) => void;
}

const pages = new Map<string, Kept>();

watchSession(dropPages);

/** Drops the state of all pages. */
function dropPages(): void {
  for (const { container } of pages.values()) render(null, container);
  pages.clear();
}

interface KeptPageProps {
  readonly path: string;
  readonly Page: ComponentType;
}

/** Shows a page as it was left. Its key must be its path. */
export function KeptPage({ path, Page }: KeptPageProps) {
  const host = useRef<HTMLDivElement>(null);
  // On an open server the page stays when the user changes, but its state is dropped.
  const session = useSession();
  useLayoutEffect(() => {
    const kept = pages.get(path) ?? openPage(path, Page);
    host.current?.append(kept.container);
    kept.show(true);
    return () => {
      kept.show(false);
      kept.container.remove();
    };
  }, [session]);
  return <div ref={host} />;
}

function openPage(path: string, Page: ComponentType): Kept {
  const kept: Kept = { container: document.createElement("div"), show: () => {} };
  pages.set(path, kept);
  function Tree() {
    const [isShown, show] = useState(true);
    const [start, setStart] = useState(0);
    kept.show = show;
    return (
      <PlaceContext.Provider value={{ path, isShown, startAgain: () => setStart(start + 1) }}>
        <Page key={start} />
      </PlaceContext.Provider>
    );
  }
  render(<Tree />, kept.container);
  return kept;
}
