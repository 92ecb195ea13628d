/** Shortens a key ID in the middle: "key-1f2e3d4c…5b6a". */
export function shortenId(keyId: string): string {
  return keyId.length <= 20 ? keyId : `${keyId.slice(0, 12)}…${keyId.slice(-4)}`;
}
