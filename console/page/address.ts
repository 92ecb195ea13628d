/**
 * An address within the console: "#/keys/manage?key=key-1" for a page, or "#/keys/steps/rotate" for a step.
 */
export interface Address {
  /** The page: "keys/manage". */
  readonly path: string;
  /** A step of the page: "rotate". */
  readonly step?: string;
  /** The page's parameters. */
  readonly query: URLSearchParams;
}

/** @param hash the browser's hash: "#/keys/manage?key=key-1" */
export function parseAddress(hash: string): Address {
  const [before = "", ...rest] = hash.replace(/^#\/?/, "").split("?");
  // A typed address may end with a slash.
  const place = before.replace(/\/+$/, "");
  const query = new URLSearchParams(rest.join("?"));
  const [, path, step] = /^(.+)\/steps\/([^/]+)$/.exec(place) ?? [];
  return path === undefined || step === undefined ? { path: place, query } : { path, step, query };
}

/** @returns the address for a link, without empty values */
export function formatAddress(path: string, values: Readonly<Record<string, string>>): string {
  const query = new URLSearchParams(Object.entries(values).filter(([, value]) => value !== ""));
  return query.size === 0 ? `#/${path}` : `#/${path}?${query}`;
}

/** @returns a step's address, for a link */
export function formatStepAddress(path: string, slug: string): string {
  return `#/${path}/steps/${slug}`;
}

/** Words left out of a slug. */
const fillers = new Set(["a", "an", "the", "it", "its", "your", "their", "with"]);

/** Derives a step's slug from its title: "rotate" for "Rotate it". */
export function toSlug(title: string): string {
  const words = title.toLowerCase().match(/[a-z0-9]+/g) ?? [];
  return words.filter((word) => !fillers.has(word)).join("-");
}
