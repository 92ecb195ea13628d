/**
 * The method QUERY (RFC 10008): a request that changes nothing, and whose body and media type are the question. It is
 * not in the query of the target, which src/transcoding/query.ts reads.
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
 * Checks the media type of a QUERY before its body is read. Without one it is refused, as no other method is: caches
 * count the type as part of the question (sections 2 and 2.7).
 *
 * @throws MEDIA_TYPE_MISSING, MEDIA_TYPE_UNSUPPORTED
 */
export function requireQueryType(route: Route, headers: Headers): void {
  const types = listMediaTypes(route);
  try {
    if (!headers.get("content-type"))
      throw refuse("MEDIA_TYPE_MISSING", `QUERY needs a content-type; send ${types.join(" or ")}`);
    if (!types.includes(anyType)) requireMediaType(headers, types);
  } catch (error) {
    if (error instanceof ConnectError) error.metadata.set(acceptQueryHeader, types.join(", "));
    throw error;
  }
}
