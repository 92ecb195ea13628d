/** The browser's storage. A browser that blocks it throws at each access; the page then works, and forgets on reload. */

type Area = "localStorage" | "sessionStorage";

/** @returns undefined if nothing is stored, or the browser blocks its storage */
export function readStored(area: Area, name: string): string | undefined {
  try {
    return globalThis[area].getItem(name) ?? undefined;
  } catch {
    return undefined;
  }
}

/** @param text undefined to remove what is stored */
export function store(area: Area, name: string, text: string | undefined): void {
  try {
    if (text === undefined) globalThis[area].removeItem(name);
    else globalThis[area].setItem(name, text);
  } catch {
    // The browser blocks its storage, or it is full.
  }
}
