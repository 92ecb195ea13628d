/** Connects the transcoder to exchanges. */
import type { ContextValues } from "@connectrpc/connect";
import { CallHeaders } from "../../protocol/call-headers.ts";
import type { FoundRoute, Transcoder } from "../../transcoding/transcoder.ts";
import { accountKey } from "../byte-budget.ts";
import type { Exchange } from "../exchange.ts";
import { mediaTypeMissing } from "../request-head.ts";
import { type RequestIds, requestIdHeader } from "../request-ids.ts";

/** The parts of a server that answer REST requests. */
export interface RestDeps {
  readonly transcoder: Transcoder;
  readonly requestIds: RequestIds;
}

/** Answers a REST request. @param route undefined if there is none, which the transcoder refuses */
export async function serveRest(
  { transcoder, requestIds }: RestDeps,
  exchange: Exchange,
  route: FoundRoute | undefined,
  contextValues: ContextValues,
): Promise<void> {
  const { method, target, headers, hasBody } = exchange;
  const request = {
    method,
    target,
    headers: new CallHeaders(headers),
    body: hasBody ? readTyped(exchange) : undefined,
    meter: contextValues.get(accountKey),
    contextValues,
    get signal() {
      return exchange.signal;
    },
  };
  const response = await transcoder.handle(request, route);
  // Also for requests that were refused before their call began. An error may be shared by calls, and name another one.
  response.headers.set(requestIdHeader, requestIds.identify(contextValues, headers[requestIdHeader]));
  await exchange.send(response);
}

/** HTTP/2 does not announce a body, so its media type can be missed only when it begins. */
async function* readTyped(exchange: Exchange): AsyncGenerator<Uint8Array> {
  const hasType = Boolean(exchange.headers["content-type"]);
  for await (const piece of exchange.pieces()) {
    if (!hasType) throw mediaTypeMissing();
    yield piece;
  }
}
