/** Screen properties, for components that depend on them. */
import { useEffect, useState } from "preact/hooks";

/** The width that the style sheet treats as narrow. */
export const narrow = "(max-width: 50rem)";

/** @param query a media query (W3C Media Queries): "(max-width: 50rem)" */
export function useMedia(query: string): boolean {
  const [matches, setMatches] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const list = matchMedia(query);
    const onChange = (): void => setMatches(list.matches);
    list.addEventListener("change", onChange);
    return () => list.removeEventListener("change", onChange);
  }, [query]);
  return matches;
}
