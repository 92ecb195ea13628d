/** Bounds of what a stranger's signature may make a verifier do. */

/** Longest content inside a signed document, in bytes; it is in memory as a whole. */
export const maxEmbeddedBytes = 16 * 1024 * 1024;

/** Longest signed document, in bytes: the longest content in base64, and 1 MiB for signatures and names. */
export const maxDocumentBytes = Math.ceil((maxEmbeddedBytes * 4) / 3) + 1024 * 1024;

/** Maximum signatures of one document. Each costs a verification. */
export const maxSignatures = 16;

/** Maximum brackets, colons, commas and strings of a JSON document, so that a short text cannot build a huge value. */
export const maxJsonTokens = 1000;
