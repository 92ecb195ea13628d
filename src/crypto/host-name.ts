/** Host names as they appear in certificates. */

/** Maximum length of a host name, in characters (RFC 1035, section 2.3.4, without the length bytes). */
const maxHostCharacters = 253;

/** One part of a host name (RFC 1123, section 2.1). */
const label = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

/**
 * Returns whether a text is a lower-case host name, or `*.` followed by a host name of two or more labels.
 */
export function isHostName(name: string): boolean {
  const labels = name.replace(/^\*\./, "").split(".");
  const isWildcard = name.startsWith("*.");
  return (
    name.length <= maxHostCharacters &&
    labels.every((part) => label.test(part)) &&
    // Excludes 1.2.3 and 0x7f.1, which URLs treat as addresses (WHATWG URL, section 3.5: ends in a number).
    !/^(\d+|0x[0-9a-f]*)$/.test(labels.at(-1) ?? "") &&
    // Clients reject *.com, and likewise *.internal.
    (!isWildcard || labels.length >= 2)
  );
}
