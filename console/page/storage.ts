/**
 * The browser's storage. If the browser blocks it, each access throws; the page then works but forgets on
 * reload.
 */

type Area = "localStorage" | "sessionStorage";

/** @returns undefined if nothing is stored, or the browser blocks its storage */
export function readStored(area: Area, name: string): string | undefined {
  try {
    return globalThis[area].getItem(name) ?? undefined;
  } catch {
    return undefined;
  }
}

/** @param text undefined removes the stored value */
export function store(area: Area, name: string, text: string | undefined): void {
  try {
    if (text === undefined) globalThis[area].removeItem(name);
    else globalThis[area].setItem(name, text);
  } catch {
    // The browser's storage is blocked or full.
  }
}
