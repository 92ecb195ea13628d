/** Checks the headers that the RPC protocols share. */

import { readTimeout } from "../../calls/timeout.ts";
import { excerpt } from "../../errors/shorten.ts";
import { refuse } from "../../errors.ts";
import type { Exchange } from "../exchange.ts";
import type { CallForm } from "./form.ts";

interface CallHead {
  readonly exchange: Pick<Exchange, "headers">;
  readonly form: CallForm;
  /** The query, for a Connect GET. */
  readonly query?: URLSearchParams | undefined;
}

/**
 * Returns the milliseconds that a caller allows for its call; undefined if it sets no limit.
 *
 * Also refuses Connect versions other than 1 (connectrpc.com/docs/protocol, "Unary-Request"). Some clients
 * omit the version.
 *
 * @throws HTTP_INVALID, TIMEOUT_INVALID
 */
export function readCallHead(
  { exchange: { headers }, form, query }: CallHead,
  header: Headers,
): number | undefined {
  const [version, expected, name] =
    query === undefined
      ? [headers["connect-protocol-version"], "1", "the header connect-protocol-version"]
      : [query.get("connect"), "v1", "the query parameter connect"];
  if (version === undefined || version === null || version === expected)
    return readTimeout(header, form.protocol);
  throw refuse("HTTP_INVALID", `${name} is "${excerpt(String(version))}"; it must be "${expected}"`);
}
