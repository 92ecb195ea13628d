/**
 * Maximum clock skew between servers that share a store, in milliseconds: one hour. Anything that depends on
 * a token's expiry waits this much longer, so that the token has expired on all servers.
 */
export const maxClockDifferenceMs = 3600 * 1000;
