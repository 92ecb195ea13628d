/** Detects the protocol of a request. */
import type { IncomingHttpHeaders } from "node:http";

/** The protocols that a request can use. */
export type ProtocolName = "grpc" | "grpc-web" | "connect" | "connect-stream" | "rest";

/** The protocol of a request and the encoding of its messages. */
export interface CallForm {
  readonly protocol: ProtocolName;
  readonly codec: "proto" | "json";
  /** The media type of the answer. */
  readonly contentType: string;
}

/** The form of REST, and of requests without a known protocol. */
export const restForm: CallForm = { protocol: "rest", codec: "json", contentType: "application/json" };

const rpcType =
  /^application\/(?:(grpc-web-text|grpc-web|grpc)(?:\+(json|proto))?|connect\+(json|proto)|(json|proto))\s*(?:;\s*charset="?utf-?8"?\s*)?$/i;

/** Cache of forms by media type. Clients choose the parameters, so the cache is bounded. */
const known = new Map<string, CallForm | undefined>();
const maxKnown = 100;

/** Returns the form of a request to an RPC path; undefined if the media type belongs to no protocol. */
export function readRpcForm(contentType: string | undefined): CallForm | undefined {
  const type = contentType ?? "";
  const found = known.get(type);
  if (found !== undefined || known.has(type)) return found;
  const form = parseRpcType(type);
  if (known.size < maxKnown) known.set(type, form);
  return form;
}

function parseRpcType(type: string): CallForm | undefined {
  const [whole, grpc, grpcCodec = "proto", stream, unary] = rpcType.exec(type.toLowerCase()) ?? [];
  if (whole === undefined) return undefined;
  if (grpc !== undefined) {
    const protocol = grpc === "grpc" ? "grpc" : "grpc-web";
    return { protocol, codec: toCodec(grpcCodec), contentType: `application/${grpc}+${grpcCodec}` };
  }
  if (stream !== undefined)
    return {
      protocol: "connect-stream",
      codec: toCodec(stream),
      contentType: `application/connect+${stream}`,
    };
  return { protocol: "connect", codec: toCodec(unary ?? ""), contentType: `application/${unary}` };
}

function toCodec(name: string): CallForm["codec"] {
  return name === "json" ? "json" : "proto";
}

/**
 * Returns the form in which a request to any other path is refused. Without a protocol of its own, that is
 * REST.
 */
export function readFormElsewhere(headers: IncomingHttpHeaders, rawQuery: string): CallForm {
  const form = readRpcForm(headers["content-type"]);
  const isConnect =
    headers["connect-protocol-version"] !== undefined || /(^|&)connect=v1(&|$)/.test(rawQuery);
  if (form === undefined) return isConnect ? connectJson : restForm;
  return form.protocol === "connect" && form.codec === "json" && !isConnect ? restForm : form;
}

/** The form of a Connect GET, whose query names the encoding. */
export function readGetForm(encoding: string | null): CallForm | undefined {
  return encoding === "json" || encoding === "proto" ? readRpcForm(`application/${encoding}`) : undefined;
}

/** The form of Connect failures. */
export const connectJson: CallForm = { protocol: "connect", codec: "json", contentType: "application/json" };
