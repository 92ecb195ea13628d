/** The address of a page within the console: "#/keys/manage?key=key-1". */

export interface Address {
  /** Names the page: "keys/manage". */
  readonly path: string;
  /** What the page shows. */
  readonly query: URLSearchParams;
}

/** @param hash as the browser has it: "#/keys/manage?key=key-1" */
export function parseAddress(hash: string): Address {
  const [path = "", ...query] = hash.replace(/^#\/?/, "").split("?");
  return { path, query: new URLSearchParams(query.join("?")) };
}

/** @returns the address for a link. Empty values are left out. */
export function formatAddress(path: string, values: Readonly<Record<string, string>>): string {
  const query = new URLSearchParams(Object.entries(values).filter(([, value]) => value !== ""));
  return query.size === 0 ? `#/${path}` : `#/${path}?${query}`;
}
