/** A reader's preference, shared by all parts of the page and stored in the browser. */
import { shareValue } from "./shared-value.ts";
import { readStored, store } from "./storage.ts";

export interface Preference<T extends string> {
  readonly options: readonly T[];
  /** The current choice and its setter, for a component. */
  use(): readonly [choice: T, choose: (choice: string) => void];
}

/**
 * @param storageName the key in the browser's storage
 * @param options the first one is the default
 */
export function createPreference<const T extends string>(
  storageName: string,
  options: readonly [T, ...T[]],
): Preference<T> {
  // An older version of the page may have stored a different value.
  const parse = (text: string | undefined): T => options.find((option) => option === text) ?? options[0];
  const chosen = shareValue(() => parse(readStored("localStorage", storageName)));
  const choose = (choice: string): void => {
    store("localStorage", storageName, parse(choice));
    chosen.set(parse(choice));
  };
  return { options, use: () => [chosen.use(), choose] };
}
