/** The interface to drivers: calls in JSON, and their outcomes. */
import { type DescMethod, type DescService, hasOption } from "@bufbuild/protobuf";
import { http } from "#gen/google/api/annotations_pb.ts";
import type { OpenApiDocument } from "../../src/openapi/document.ts";
import { findOperation, type HttpCall, type Members, toHttpCall } from "../openapi/call-examples.ts";
import { loadPackages } from "../support/whole-program.ts";

/** One call. */
export interface Call {
  /** Such as "pqc.PqcService". */
  readonly service: string;
  readonly method: string;
  /** The REST operation; undefined for streams that REST does not have. */
  readonly http?: HttpCall;
  /** One message; a list for a call that sends a stream. */
  readonly request: Members | readonly Members[];
  readonly headers: Readonly<Record<string, string>>;
}

/** Result of a call: an answer as JSON, or a refusal. */
export type Outcome =
  | { readonly answer: unknown }
  | { readonly refusal: { readonly code: string; readonly reason: string | undefined } };

/** A server and its OpenAPI description. */
export interface ForeignServer {
  readonly url: string;
  readonly document: OpenApiDocument;
}

const packages = await loadPackages();
const services: readonly DescService[] = packages.flatMap(({ files }) =>
  files.flatMap((file) => file.services),
);

/** Finds an RPC by its full name: "kms.KmsService.Sign". */
export function findMethod(rpc: string): DescMethod {
  const dot = rpc.lastIndexOf(".");
  const methods = services.find(({ typeName }) => typeName === rpc.slice(0, dot))?.methods ?? [];
  const desc = methods.find(({ name }) => name === rpc.slice(dot + 1));
  if (desc === undefined) throw new Error(`no service has ${rpc}`);
  return desc;
}

/** Returns whether one server must answer all calls of a service, because it holds state in memory. */
export function hasState({ file }: DescService): boolean {
  return packages.some((one) => one.hasState === true && one.files.includes(file));
}

/** Prepares a call to a server. */
export function toCall(
  { document }: ForeignServer,
  desc: DescMethod,
  request: Call["request"],
  headers: Call["headers"] = {},
): Call {
  const { parent, name } = desc;
  return {
    ...{ service: parent.typeName, method: name, request, headers },
    ...(hasOption(desc, http) && {
      http: toHttpCall(findOperation(document, `${parent.typeName}.${name}`), request as Members),
    }),
  };
}

/**
 * Returns the messages that a call sends, in order, in the form that command lines expect.
 *
 * @param replace changes values, as for JSON.stringify
 */
export function toJsonTexts({ request }: Call, replace?: (name: string, value: unknown) => unknown): string {
  const messages = Array.isArray(request) ? request : [request];
  return messages.map((message) => JSON.stringify(message, replace)).join("\n");
}
