/**
 * The QUERY method (RFC 10008): a safe request whose query is its body and media type. The query of the
 * target is different: src/transcoding/query.ts reads it.
 */
import { ConnectError } from "@connectrpc/connect";
import { refuse } from "../errors.ts";
import { requireMediaType } from "./body.ts";
import { anyType, listMediaTypes } from "./body-messages.ts";
import type { Route } from "./routes.ts";

/** The header of section 3. Media types are tokens of RFC 9651, so the list needs no quotation marks. */
export const acceptQueryHeader = "accept-query";

/** The value of `accept-query` for the route of a QUERY. */
export function listQueryTypes(route: Route): string {
  return listMediaTypes(route).join(", ");
}

/**
 * Checks the media type of a QUERY before its body is read. Only this method requires one: caches treat the
 * type as part of the query (sections 2 and 2.7).
 *
 * @throws MEDIA_TYPE_MISSING, MEDIA_TYPE_UNSUPPORTED
 */
export function requireQueryType(route: Route, headers: Headers): void {
  const types = listMediaTypes(route);
  try {
    if (!headers.get("content-type"))
      throw refuse("MEDIA_TYPE_MISSING", `a QUERY request needs a content-type; send ${types.join(" or ")}`);
    if (!types.includes(anyType)) requireMediaType(headers, types);
  } catch (error) {
    if (error instanceof ConnectError) error.metadata.set(acceptQueryHeader, types.join(", "));
    throw error;
  }
}
