/** A choice of the reader that all parts of the page share, and that the browser remembers. */
import { shareValue } from "./shared-value.ts";
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
  // An older version of the page may have stored something else.
  const parse = (text: string | undefined): T => options.find((option) => option === text) ?? options[0];
  const chosen = shareValue(() => parse(readStored("localStorage", storageName)));
  const choose = (choice: string): void => {
    store("localStorage", storageName, parse(choice));
    chosen.set(parse(choice));
  };
  return { options, use: () => [chosen.use(), choose] };
}
