/** The address of a page within the console: "#/keys/manage?key=key-1", or of a step: "#/keys/steps/rotate". */

export interface Address {
  /** Names the page: "keys/manage". */
  readonly path: string;
  /** Names a step of the page: "rotate". */
  readonly step?: string;
  /** The parameters of the page. */
  readonly query: URLSearchParams;
}

/** @param hash as the browser has it: "#/keys/manage?key=key-1" */
export function parseAddress(hash: string): Address {
  const [before = "", ...rest] = hash.replace(/^#\/?/, "").split("?");
  // Readers who type an address may end it with a slash.
  const place = before.replace(/\/+$/, "");
  const query = new URLSearchParams(rest.join("?"));
  const [, path, step] = /^(.+)\/steps\/([^/]+)$/.exec(place) ?? [];
  return path === undefined || step === undefined ? { path: place, query } : { path, step, query };
}

/** @returns the address for a link. Empty values are left out. */
export function formatAddress(path: string, values: Readonly<Record<string, string>>): string {
  const query = new URLSearchParams(Object.entries(values).filter(([, value]) => value !== ""));
  return query.size === 0 ? `#/${path}` : `#/${path}?${query}`;
}

/** @returns the address of a step for a link */
export function formatStepAddress(path: string, slug: string): string {
  return `#/${path}/steps/${slug}`;
}

/** Words that a slug does without. */
const fillers = new Set(["a", "an", "the", "it", "its", "your", "their", "with"]);

/** Names a step in its address after its title: "rotate" for "Rotate it". */
export function toSlug(title: string): string {
  const words = title.toLowerCase().match(/[a-z0-9]+/g) ?? [];
  return words.filter((word) => !fillers.has(word)).join("-");
}
