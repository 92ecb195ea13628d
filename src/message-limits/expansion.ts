/** Limits how far the compressed body of a stream may expand. */
import { refuse } from "../errors.ts";

/** A stream may always expand to this many messages of maximum size, regardless of its compressed size. */
const freeBodies = 4;
/** Maximum expanded bytes per compressed byte. Text and firmware images stay far below it. */
const maxRatio = 32;
/** Minimum compressed bytes per message. An uncompressed line of JSON has at least as many. */
const minMessageBytes = 3;
/** Messages that every stream may have. */
const freeMessages = 1000;

/** Counts the expanded bytes and the messages of one stream. */
export type ExpansionBudget = ReturnType<typeof createExpansionBudget>;

/**
 * Creates the budget of a stream of any length. Four messages of `maxBytes` are always within it. Beyond
 * that, the received bytes limit the expanded bytes and the messages, so an attacker must send more to cause
 * more work.
 */
export function createExpansionBudget(maxBytes: number) {
  let compressed = 0;
  let expanded = 0;
  let messages = 0;
  return {
    /** Counts bytes as received. */
    addCompressed(bytes: number): void {
      compressed += bytes;
    },
    /**
     * Counts bytes after decompression.
     *
     * @throws BODY_TOO_LARGE
     */
    addExpanded(bytes: number): void {
      expanded += bytes;
      if (expanded > freeBodies * maxBytes + maxRatio * compressed)
        throw refuse(
          "BODY_TOO_LARGE",
          `the stream expands to more than ${freeBodies * maxBytes} bytes and more than ${maxRatio} times its size; compress less`,
          { maxBytes: String(freeBodies * maxBytes), maxRatio: String(maxRatio) },
        );
    },
    /**
     * Counts a message.
     *
     * @throws BODY_TOO_LARGE
     */
    addMessage(): void {
      messages += 1;
      if (compressed > 0 && messages > freeMessages + compressed / minMessageBytes)
        throw refuse(
          "BODY_TOO_LARGE",
          `the stream has more than ${freeMessages} messages with less than ${minMessageBytes} compressed bytes each; compress less`,
          { freeMessages: String(freeMessages), minMessageBytes: String(minMessageBytes) },
        );
    },
  };
}
