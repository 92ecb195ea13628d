/** Handles by which callers name keys: IDs, and names with or without a version. */

/** A parsed handle. */
export type Handle = { readonly kind: "id"; readonly keyId: string } | NameHandle;

/** A name, with or without a version. */
export interface NameHandle {
  readonly kind: "name";
  /** The name's owner; undefined for the caller's own names. */
  readonly user: string | undefined;
  readonly name: string;
  /** Undefined for the primary version. */
  readonly version: number | undefined;
}

/** Parses a handle. Any text that does not have the form of a name is an ID. */
export function parseHandle(text: string): Handle {
  const [, user, rest] = /^(?:user\/([^/]+)\/)?name\/(.+)$/s.exec(text) ?? [];
  if (rest === undefined) return { kind: "id", keyId: text };
  const [, name = rest, number] = /^(.+)\/([1-9]\d{0,8})$/s.exec(rest) ?? [];
  return { kind: "name", user, name, version: number === undefined ? undefined : Number(number) };
}

/** Formats the handle of one of the caller's names. */
export function writeName(name: string): string {
  return `name/${name}`;
}

/** Returns whether a handle stands for all versions of a name. */
export function isWholeName(handle: string): boolean {
  const parsed = parseHandle(handle);
  return parsed.kind === "name" && parsed.version === undefined;
}
