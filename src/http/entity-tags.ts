/** Entity tags (RFC 9110, section 8.8.3). */
import { hash } from "node:crypto";

/** A strong entity tag (RFC 9110, section 8.8.3): 132 bits of the SHA-256 of the bytes. */
export function computeEntityTag(bytes: Uint8Array): string {
  return `"${hash("sha256", bytes, "base64url").slice(0, 22)}"`;
}

/** The weak entity tag for content that is compressed in more than one way. */
export function toWeakTag(tag: string): string {
  return tag.startsWith("W/") ? tag : `W/${tag}`;
}

/** Returns whether an If-None-Match header matches a tag (weak comparison, RFC 9110, section 13.1.2). */
export function matchesEntityTag(ifNoneMatch: string | null, tag: string): boolean {
  if (ifNoneMatch === null) return false;
  if (ifNoneMatch.trim() === "*") return true;
  const opaque = tag.replace(/^W\//, "");
  // Section 8.8.3: the text between the quotes may contain commas.
  for (const [, candidate] of ifNoneMatch.matchAll(/(?:^|,)\s*(?:W\/)?("[^"]*")\s*(?=,|$)/g)) {
    if (candidate === opaque) return true;
  }
  return false;
}
