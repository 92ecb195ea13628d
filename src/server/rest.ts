/** Connects the transcoder to Node's requests and responses, for both HTTP/1.1 and HTTP/2. */

import type { Writable } from "node:stream";
import type { ContextValues } from "@connectrpc/connect";
import { refuse } from "../errors.ts";
import { CallHeaders } from "../protocol/call-headers.ts";
import type { RestResponse } from "../transcoding/http.ts";
import type { FoundRoute, Transcoder } from "../transcoding/transcoder.ts";
import { accountKey } from "./byte-budget.ts";
import { toNodeHeaders } from "./metadata.ts";
import type { NodeRequest, NodeResponse } from "./node-http.ts";
import { mediaTypeMissing } from "./request-head.ts";
import { type RequestIds, requestIdHeader } from "./request-ids.ts";

/** Aborts a call when its connection closes. Shared, because creating an error with a stack per call is costly. */
const gone = refuse("CALL_CANCELED", "the caller disconnected");

/** The parts of a server that answer REST requests. */
export interface RestDeps {
  readonly transcoder: Transcoder;
  readonly requestIds: RequestIds;
}

/** Answers a REST request. @param route its route, if it was found already */
export async function serveRest(
  { transcoder, requestIds }: RestDeps,
  req: NodeRequest,
  res: NodeResponse,
  contextValues: ContextValues,
  route?: FoundRoute,
): Promise<void> {
  const controller = new AbortController();
  res.once("close", () => {
    if (!res.writableEnded) controller.abort(gone);
  });
  const request = {
    method: req.method ?? "GET",
    target: req.url ?? "/",
    headers: new CallHeaders(req.headers),
    body: hasBody(req) ? (req.headers["content-type"] ? req : typedBody(req)) : undefined,
    meter: contextValues.get(accountKey),
    contextValues,
    signal: controller.signal,
  };
  const response = await transcoder.handle(request, route);
  // Also for requests that were refused before their call began. An error may be shared by calls, and name another one.
  response.headers.set(requestIdHeader, requestIds.identify(contextValues, req.headers[requestIdHeader]));
  await writeResponse(res, response);
}

/** RFC 9112, section 6: in HTTP/1.1 a header announces content. In HTTP/2 the stream continues after the headers. */
function hasBody(req: NodeRequest): boolean {
  return req.stream === undefined ? announcesBody(req.headers) : !req.stream.endAfterHeaders;
}

/** HTTP/2 does not announce a body: the server learns of it from its first byte. */
async function* typedBody(req: NodeRequest): AsyncGenerator<Uint8Array> {
  // Not "for await": a refusal would end the request and the connection that must carry the answer.
  const chunks: AsyncIterator<Uint8Array> = req[Symbol.asyncIterator]();
  for (let next = await chunks.next(); next.done !== true; next = await chunks.next()) {
    if (!req.headers["content-type"]) throw mediaTypeMissing();
    yield next.value;
  }
}

/** Tells whether headers announce a body that is not empty. HTTP/2 can have a body without such a header. */
export function announcesBody(headers: NodeRequest["headers"]): boolean {
  const length = headers["content-length"];
  return (length !== undefined && length !== "0") || headers["transfer-encoding"] !== undefined;
}

/** Writes a response no faster than its client reads. */
export async function writeResponse(res: NodeResponse, response: RestResponse): Promise<void> {
  if (res.destroyed || res.writableEnded) return;
  // The answer's `vary` is added to the server's own, which names the origin.
  const vary = [res.getHeader("vary"), response.headers.get("vary")].filter(Boolean).join(", ");
  res.writeHead(response.status, { ...toNodeHeaders(response.headers), ...(vary && { vary }) });
  if (response.body instanceof Uint8Array) {
    endInPieces(res, response.body);
  } else {
    // Headers are sent before the first piece: a watcher must learn that it watches before the first event.
    res.flushHeaders();
    await writePieces(res, response.body);
    if (response.trailers !== undefined && !res.destroyed) res.addTrailers(toNodeHeaders(response.trailers));
    res.end();
  }
}

/** Bytes of a piece. The number of remaining pieces shows the progress of a slow reader. */
const pieceBytes = 64 * 1024;

/** Writes a complete body in pieces, so that the progress of a slow reader is visible, and ends the response. */
export function endInPieces(res: Pick<Writable, "write" | "end">, body: Uint8Array): void {
  let at = 0;
  for (; body.length - at > pieceBytes; at += pieceBytes) res.write(body.subarray(at, at + pieceBytes));
  res.end(body.subarray(at));
}

async function writePieces(res: NodeResponse, pieces: AsyncIterable<Uint8Array>): Promise<void> {
  try {
    for await (const piece of pieces) {
      if (res.destroyed) return;
      if (!res.write(piece)) await drained(res);
    }
  } catch {
    // The bytes cannot show that they are truncated. A broken connection can.
    res.destroy();
  }
}

function drained(res: NodeResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      res.off("drain", done);
      res.off("close", done);
      resolve();
    };
    res.on("drain", done);
    res.on("close", done);
  });
}
