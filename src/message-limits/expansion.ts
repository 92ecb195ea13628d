/** Limits the expanded size of a stream's compressed body. */
import { refuse } from "../errors.ts";

/** Messages of the largest size that a stream may expand to, regardless of their compressed size. */
const freeBodies = 4;
/** Expanded bytes for each compressed byte. Text and firmware images stay far below it. */
const maxRatio = 32;
/** Compressed bytes for each message. An uncompressed line of JSON has at least as many. */
const minMessageBytes = 3;
/** Messages that every stream may have. */
const freeMessages = 1000;

/** Counts the expanded bytes and the messages of one stream. */
export interface ExpansionBudget {
  /** Adds bytes as they arrived. */
  addCompressed(bytes: number): void;
  /** Adds bytes after decompression. @throws BODY_TOO_LARGE */
  addExpanded(bytes: number): void;
  /** Adds a message. @throws BODY_TOO_LARGE */
  addMessage(): void;
}

/**
 * Creates the budget of a stream of any length. Four messages of `maxBytes` are always within it. Beyond that, the
 * bytes that arrived limit the expanded bytes and the messages, so an attacker must send more to cause more work.
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
