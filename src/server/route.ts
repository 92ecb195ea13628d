/** Finds out what a request addresses: an RPC, a REST call, a page, or nothing known. */
import type { DescMethod } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { findAbsentCall } from "../calls/absent-services.ts";
import type { ServiceProfiles } from "../calls/service-profile.ts";
import { excerpt } from "../errors/shorten.ts";
import { refuse, toConnectError } from "../errors.ts";
import { isKnownMethod } from "../http/http-methods.ts";
import type { FoundRoute } from "../transcoding/call-context.ts";
import { splitTarget } from "../transcoding/http.ts";
import { splitQuery } from "../transcoding/query.ts";
import type { Transcoder } from "../transcoding/transcoder.ts";
import type { Exchange } from "./exchange.ts";
import type { PathMethods } from "./pages.ts";
import {
  type CallForm,
  connectJson,
  readFormElsewhere,
  readGetForm,
  readRpcForm,
  restForm,
} from "./protocols/form.ts";
import type { Rpc } from "./rpcs.ts";

/** Where a request goes, and the form of its answer (or refusal). */
export type Destination = { readonly form: CallForm } & (
  | { readonly kind: "rpc"; readonly rpc: Rpc; readonly query: URLSearchParams | undefined }
  /** The transcoder refuses a request without a route. */
  | { readonly kind: "rest"; readonly route: FoundRoute | undefined; readonly rpc: Rpc | undefined }
  | { readonly kind: "page" }
  | { readonly kind: "nowhere"; readonly error: ConnectError }
);

/** The part of a request that decides its destination. */
export type RequestHead = Pick<Exchange, "method" | "target" | "headers" | "httpVersion">;

/** What a server offers. */
export interface Destinations {
  /** By path. */
  readonly rpcs: ReadonlyMap<string, Rpc>;
  readonly pages: PathMethods;
  readonly transcoder: Pick<Transcoder, "find">;
  readonly profiles: ServiceProfiles;
}

/** Returns the RPC of a destination; undefined for a page or an unknown path. */
export function findMethod(destination: Destination): DescMethod | undefined {
  return "rpc" in destination ? destination.rpc?.method : undefined;
}

/** Creates the function that finds the destination of a request. */
export function createRouting({
  rpcs,
  pages,
  transcoder,
  profiles,
}: Destinations): (head: RequestHead) => Destination {
  const byMethod = new Map([...rpcs.values()].map((rpc) => [rpc.method, rpc]));
  return (head) => {
    const { method, target, headers } = head;
    const rpc = rpcs.get(target);
    if (rpc !== undefined && method === "POST") return routeToRpc(head, rpc);
    const parts = splitTarget(target);
    const { path, rawQuery } = parts;
    const found = rpc ?? rpcs.get(path);
    if (found !== undefined && !pages.has(path)) return routeByMethod(head, path, rawQuery, found);
    if (!isKnownMethod(method)) return nowhere(restForm, methodUnknown(method));
    const form = readFormElsewhere(headers, rawQuery);
    const isCall = form.protocol !== "rest";
    if (pages.has(path)) {
      const allow = pages.allowInstead(method, path);
      if (allow === undefined) return { kind: "page", form };
      if (!(isCall && method === "POST")) return nowhere(restForm, methodNotAllowed(method, path, allow));
    } else {
      const route = transcoder.find(method, parts);
      if (route !== undefined)
        return { kind: "rest", form, route, rpc: byMethod.get(route.match.route.spec.method) };
    }
    if (isCall) return nowhere(form, findAbsentCall(path, profiles) ?? rpcNotFound(path));
    return { kind: "rest", form, route: undefined, rpc: undefined };
  };
}

function routeByMethod(head: RequestHead, path: string, rawQuery: string, rpc: Rpc): Destination {
  const { method } = head;
  if (method === "POST") return routeToRpc(head, rpc);
  const isUnary = rpc.handle !== undefined;
  if (method === "GET" && isUnary && rpc.isSafe) {
    const query = readGetQuery(rawQuery);
    if (query instanceof ConnectError) return nowhere(connectJson, query);
    const form = readGetForm(query.get("encoding"));
    const twice = getParameters.find((name) => query.getAll(name).length > 1);
    if (form !== undefined && twice !== undefined) return nowhere(form, parameterRepeated(twice));
    if (form !== undefined) return { kind: "rpc", form, rpc, query };
    return nowhere(plainJson, encodingParameterMissing(query.get("encoding")));
  }
  if (!isKnownMethod(method)) return nowhere(restForm, methodUnknown(method));
  const allow = isUnary && rpc.isSafe ? "GET, POST" : "POST";
  const why = method === "GET" && !isUnary ? "; a stream cannot be called with GET" : "";
  return nowhere(plainJson, methodNotAllowed(method, path, allow, why));
}

function routeToRpc({ headers, httpVersion }: RequestHead, rpc: Rpc): Destination {
  const form = readRpcForm(headers["content-type"]);
  const isUnary = rpc.handle !== undefined;
  if (form === undefined || form.protocol === (isUnary ? "connect-stream" : "connect"))
    return nowhere(plainJson, mediaTypeUnsupported(headers["content-type"], isUnary));
  if (form.protocol === "grpc" && httpVersion === "1.1")
    return nowhere(
      plainJson,
      refuse("HTTP_INVALID", `gRPC requires HTTP/2; call ${rpc.method.name} over HTTP/2, or use gRPC-Web`),
    );
  return { kind: "rpc", form, rpc, query: undefined };
}

function nowhere(form: CallForm, error: ConnectError): Destination {
  return { kind: "nowhere", form, error };
}

/** Not the bare media type, because Connect clients would take the body for an error in Connect's form. */
const plainJson: CallForm = { ...restForm, contentType: "application/json; charset=utf-8" };

/** The form of the answer to a request that is refused before its destination counts. */
export function formOf(destination: Destination): CallForm {
  return destination.kind === "nowhere" && destination.form === plainJson ? connectJson : destination.form;
}

function rpcNotFound(path: string): ConnectError {
  return refuse("RPC_NOT_FOUND", `the RPC ${path} does not exist`, { path });
}

/** @param isUnary Connect has other media types for streams */
function mediaTypeUnsupported(contentType = "none", isUnary: boolean): ConnectError {
  const connect = isUnary
    ? "application/json, application/proto"
    : "application/connect+json, application/connect+proto";
  const known = `${connect}, application/grpc, application/grpc-web or application/grpc-web-text`;
  return refuse(
    "MEDIA_TYPE_UNSUPPORTED",
    `this call does not support content-type ${excerpt(contentType)}; send ${known}`,
    { contentType },
  );
}

/**
 * Reads the query of a Connect GET. URLSearchParams alone would replace bytes that are not UTF-8, and so call with
 * another message than was sent.
 *
 * @returns TARGET_INVALID if it is not valid percent-encoded UTF-8
 */
function readGetQuery(rawQuery: string): URLSearchParams | ConnectError {
  try {
    return new URLSearchParams(Array.from(splitQuery(rawQuery), ([name, text]) => [name, text]));
  } catch (error) {
    return toConnectError(error);
  }
}

/** Query parameters of a Connect GET. With duplicates, a proxy in front may read a different value. */
const getParameters = ["connect", "encoding", "compression", "base64", "message"];

function parameterRepeated(parameter: string): ConnectError {
  return refuse("PARAMETER_DUPLICATE", `query parameter "${parameter}" occurs more than once; send it once`, {
    parameter,
  });
}

/** Refuses a Connect GET whose query does not say how its message is encoded. */
function encodingParameterMissing(encoding: string | null): ConnectError {
  const fault = encoding === null ? "is missing" : `is "${excerpt(encoding)}"`;
  return refuse(
    "MEDIA_TYPE_UNSUPPORTED",
    `the query parameter encoding ${fault}; add encoding=json or encoding=proto to the query`,
    { encoding: encoding ?? "" },
  );
}

/**
 * Refuses a method that a path does not support. `allow` lists the supported ones; `why` ends the sentence.
 */
function methodNotAllowed(method: string, path: string, allow: string, why = ""): ConnectError {
  const error = refuse("METHOD_NOT_ALLOWED", `${path} supports ${allow}, not ${method}${why}`, { allow });
  error.metadata.set("allow", allow);
  return error;
}

/** Refuses a method that is not registered, or that this server does not implement for any path. */
export function methodUnknown(method: string): ConnectError {
  const name = method.slice(0, 40);
  return refuse("METHOD_UNKNOWN", `this server does not support the method ${name}`, { method: name });
}
