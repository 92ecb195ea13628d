/** A choice of the reader that all parts of the page share, and that the browser remembers. */
import { useEffect, useState } from "preact/hooks";
import { readStored, store } from "./storage.ts";

export interface Preference<T extends string> {
  readonly options: readonly T[];
  /** The choice, and what changes it, for a component. */
  use(): readonly [choice: T, choose: (choice: string) => void];
}

/**
 * @param storageName names the choice in the browser's storage
 * @param options the first one is chosen until the reader chooses
 */
export function createPreference<const T extends string>(
  storageName: string,
  options: readonly [T, ...T[]],
): Preference<T> {
  const listeners = new Set<(choice: T) => void>();
  let current = parse(readStored("localStorage", storageName));

  function parse(text: string | undefined): T {
    // An older version of the page may have stored something else.
    return options.find((option) => option === text) ?? options[0];
  }

  function choose(choice: string): void {
    current = parse(choice);
    store("localStorage", storageName, current);
    for (const listener of listeners) listener(current);
  }

  function use(): readonly [T, (choice: string) => void] {
    const [choice, setChoice] = useState(current);
    useEffect(() => {
      listeners.add(setChoice);
      setChoice(current);
      return () => void listeners.delete(setChoice);
    }, []);
    return [choice, choose];
  }

  return { options, use };
}
