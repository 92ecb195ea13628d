/**
 * Keeps stories as the reader left them: results, fields, and what is unfolded. They are kept in memory only, because
 * some hold secret keys of the reader. A reload, and every change of the user, drops them.
 *
 * A kept story is a separate tree in an element that leaves the document with it. Therefore ids must not come from
 * Preact's useId, which counts from the start in each tree; unique-id.ts has them.
 */
import { type ComponentType, createContext, render } from "preact";
import { useContext, useLayoutEffect, useRef, useState } from "preact/hooks";
import { watchSession } from "./session.ts";

/** Where a component is. */
interface Place {
  /** The page; undefined on a page that is not kept. */
  readonly path?: string;
  /** Whether the reader is on the page. */
  readonly isShown: boolean;
  /** Forgets what the reader did on the page; undefined on a page that is not kept. */
  readonly startAgain?: () => void;
}

const PlaceContext = createContext<Place>({ isShown: true });

/** Tells a component which page it belongs to, and whether the reader is there. */
export function usePlace(): Place {
  return useContext(PlaceContext);
}

/** A page that has been opened. */
interface Kept {
  readonly container: HTMLElement;
  /** Tells its components whether the reader is there. */
  show: (isShown: boolean) => void;
}

const pages = new Map<string, Kept>();

watchSession(dropPages);

/** Forgets all that readers did. */
function dropPages(): void {
  for (const { container } of pages.values()) render(null, container);
  pages.clear();
}

interface KeptPageProps {
  readonly path: string;
  readonly Page: ComponentType;
}

/** Shows a page as it was left. Needs its path as its key. */
export function KeptPage({ path, Page }: KeptPageProps) {
  const host = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const kept = pages.get(path) ?? openPage(path, Page);
    host.current?.append(kept.container);
    kept.show(true);
    return () => {
      kept.show(false);
      kept.container.remove();
    };
  }, []);
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
