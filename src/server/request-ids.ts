/** Gives every request an ID that appears in its answer and its log lines. A caller may choose the ID. */
import { randomBytes } from "node:crypto";
import type { ConnectError, ContextValues } from "@connectrpc/connect";
import { requestIdKey } from "../calls/call-values.ts";

/** Identifies a request in its answer, its error and the log. */
export const requestIdHeader = "x-request-id";

/** The value of a header that occurs once, several times or not at all, in the forms of Node and Headers. */
type HeaderValue = string | readonly string[] | null | undefined;

export type RequestIds = ReturnType<typeof createRequestIds>;

/** Creates request IDs: a counter after a random prefix, so that IDs differ between servers and restarts. */
export function createRequestIds() {
  const prefix = randomBytes(6).toString("hex");
  let count = 0;
  const choose = (given: HeaderValue): string => {
    if (typeof given === "string" && /^[\w.:-]{1,128}$/.test(given)) return given;
    count += 1;
    return `${prefix}-${count.toString(36)}`;
  };
  return {
    /** Returns the caller's x-request-id if it is safe to log, otherwise a new ID. */
    choose,
    /** Returns the ID of a call, or chooses one for a request whose call has not begun. */
    identify(values: ContextValues, given: HeaderValue): string {
      const known = values.get(requestIdKey);
      if (known !== "") return known;
      const requestId = choose(given);
      values.set(requestIdKey, requestId);
      return requestId;
    },
    /**
     * Gives an error an ID if it has none.
     *
     * @returns the error
     */
    mark(error: ConnectError, given: HeaderValue): ConnectError {
      if (!error.metadata.has(requestIdHeader)) error.metadata.set(requestIdHeader, choose(given));
      return error;
    },
  };
}
