/** Bounds what the compressed body of a stream expands to. */
import { refuse } from "../errors.ts";

/** Messages of the largest size that a stream may expand to, however small they arrive. */
const freeBodies = 4;
/** Expanded bytes for each compressed byte. Text and firmware images stay far below it. */
const maxRatio = 32;
/** Compressed bytes for each message. A line of JSON without compression has no fewer. */
const minMessageBytes = 3;
/** Messages of any stream. */
const freeMessages = 1000;

/** Counts what one stream expands to. */
export interface ExpansionBudget {
  /** Adds bytes as they arrived. */
  addCompressed(bytes: number): void;
  /** Adds bytes after decompression. @throws BODY_TOO_LARGE */
  addExpanded(bytes: number): void;
  /** Adds a message. @throws BODY_TOO_LARGE */
  addMessage(): void;
}

/**
 * Makes the budget of a stream that may be of any length. Four messages of `maxBytes` are always within it. Beyond that,
 * an attacker pays for what the server reads: bytes and messages are bounded by the bytes that arrived.
 */
export function createExpansionBudget(maxBytes: number): ExpansionBudget {
  let compressed = 0;
  let expanded = 0;
  let messages = 0;
  return {
    addCompressed(bytes) {
      compressed += bytes;
    },
    addExpanded(bytes) {
      expanded += bytes;
      if (expanded > freeBodies * maxBytes + maxRatio * compressed)
        throw refuse(
          "BODY_TOO_LARGE",
          `the stream expands to more than ${freeBodies * maxBytes} bytes and more than ${maxRatio} times its size; compress less`,
          { maxBytes: String(freeBodies * maxBytes), maxRatio: String(maxRatio) },
        );
    },
    addMessage() {
      messages += 1;
      if (compressed > 0 && messages > freeMessages + compressed / minMessageBytes)
        throw refuse(
          "BODY_TOO_LARGE",
          `the stream has more than ${freeMessages} messages and less than ${minMessageBytes} bytes for each; compress less`,
          { freeMessages: String(freeMessages), minMessageBytes: String(minMessageBytes) },
        );
    },
  };
}
