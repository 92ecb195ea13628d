/** Limits on the work that an untrusted signature can cause. */

/** Maximum embedded content in bytes; it is held in memory. */
export const maxEmbeddedBytes = 16 * 1024 * 1024;

/** Maximum signed document in bytes: the largest content in base64, plus 1 MiB for signatures and names. */
export const maxDocumentBytes = Math.ceil((maxEmbeddedBytes * 4) / 3) + 1024 * 1024;

/** Maximum signatures per document. Each one costs a verification. */
export const maxSignatures = 16;

/**
 * Maximum brackets, colons, commas and strings in a JSON document, so that a short text cannot build a huge
 * value.
 */
export const maxJsonTokens = 1000;
