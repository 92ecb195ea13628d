/**
 * Describes a server's REST calls as an OpenAPI 3.1 document, from descriptors only: their google.api.http
 * options, comments, protovalidate rules and qsp.access. It depends on no service.
 */
import type { DescService } from "@bufbuild/protobuf";
import { qualifiedName } from "@bufbuild/protobuf/reflect";
import type { Example, Json } from "../calls/example.ts";
import {
  isAlwaysRefused,
  listComments,
  type RestStyle,
  type ServiceProfiles,
} from "../calls/service-profile.ts";
import type { Route } from "../transcoding/routes.ts";
import type { OpenApiDocument, Operation } from "./document.ts";
import { errorSchemas, sharedFailures } from "./failures.ts";
import {
  type AuthMode,
  describeOperation,
  findStyle,
  securitySchemes,
  sharedParameters,
} from "./operations.ts";
import { createPathWriter } from "./paths.ts";
import { createSchemas } from "./schemas.ts";
import { type Comments, createDescribe, type Describe, firstSentence } from "./texts.ts";

export interface ApiDeps {
  readonly title: string;
  readonly version: string;
  readonly services: readonly DescService[];
  readonly routes: readonly Route[];
  readonly comments: Comments;
  readonly examples: readonly Example[];
  /** Answers to the examples, by example name. */
  readonly answers: Readonly<Record<string, Json>>;
  readonly auth: AuthMode;
  /** Facts that the protos do not state. */
  readonly profiles: ServiceProfiles;
}

/** HTTP methods that an OpenAPI path can have. Calls with other methods are described in words. */
const httpMethods = new Set(["GET", "PUT", "POST", "DELETE", "OPTIONS", "HEAD", "PATCH", "TRACE"]);

/**
 * QUERY also has an operation in an extension, which readers of version 3.1 ignore. Version 3.2 has `query`
 * there.
 */
const queryExtension = "x-query";

export function describeApi(deps: ApiDeps): OpenApiDocument {
  const { profiles } = deps;
  const describe = createDescribe({ ...deps.comments, ...listComments(profiles) });
  const routes = deps.routes.filter(({ spec }) => !isAlwaysRefused(spec.method, profiles));
  const styles = listStyles(routes, profiles);
  const schemas = createSchemas(
    describe,
    routes.map(({ spec }) => spec.method.output),
  );
  const { examples, answers, auth } = deps;
  const operations = { describe, schemas, examples, answers, auth, profiles };
  const writePath = createPathWriter();
  const paths: Record<string, Record<string, Operation>> = {};
  const unlisted: Route[] = [];
  routes.forEach((route, index) => {
    const { httpMethod } = route;
    const isListed = httpMethods.has(httpMethod);
    if (!isListed) unlisted.push(route);
    if (!isListed && httpMethod !== "QUERY") return;
    const path = writePath(route);
    const binding = routes.slice(0, index).filter(({ spec }) => spec.method === route.spec.method).length;
    const operation = describeOperation(route, path, binding, operations);
    const name = isListed ? httpMethod.toLowerCase() : queryExtension;
    paths[path.text] = { ...paths[path.text], [name]: operation };
  });
  return {
    openapi: "3.1.1",
    info: {
      title: deps.title,
      version: deps.version,
      description: introduction,
      license: { name: "Apache License 2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/", description: "The server that serves this document." }],
    tags: deps.services.map((service) => ({
      name: service.typeName,
      description: describeService(service, deps.routes, unlisted, describe),
    })),
    paths,
    components: {
      schemas: { ...errorSchemas(styles), ...Object.fromEntries(schemas.components) },
      responses: sharedFailures(styles),
      parameters: {
        ...sharedParameters.own,
        ...(styles.includes("oauth") && sharedParameters.oauth),
        ...(styles.includes("google") && sharedParameters.google),
      },
      securitySchemes: {
        bearer: securitySchemes.bearer,
        ...(styles.includes("oauth") && { basic: securitySchemes.basic }),
      },
    },
  };
}

/** Our own conventions, which the console pages use too, and those that the calls use. */
function listStyles(routes: readonly Route[], profiles: ServiceProfiles): RestStyle[] {
  return [...new Set<RestStyle>(["own", ...routes.map(({ spec }) => findStyle(spec.method, profiles))])];
}

/** Describes a service by its comment, with its RPCs that are not among the paths. */
function describeService(
  service: DescService,
  routes: readonly Route[],
  unlisted: readonly Route[],
  describe: Describe,
): string {
  const grpcOnly = service.methods
    .filter((method) => routes.every(({ spec }) => spec.method !== method))
    .map(
      (method) => `- \`${qualifiedName(method)}\`: ${firstSentence(describe(method)) ?? method.methodKind}`,
    );
  const others = unlisted
    .filter(({ spec }) => spec.method.parent === service)
    .map(
      ({ httpMethod, template, spec }) =>
        `- \`${httpMethod} ${template.text}\`: \`${qualifiedName(spec.method)}\``,
    );
  return [
    describe(service) ?? service.typeName,
    ...(grpcOnly.length > 0
      ? ["Not available over REST (gRPC, gRPC-Web and Connect only):", grpcOnly.join("\n")]
      : []),
    ...(others.length > 0 ? ["With HTTP methods that OpenAPI does not support:", others.join("\n")] : []),
  ].join("\n\n");
}

const introduction = `The server's REST calls. Every call is also an RPC over gRPC, gRPC-Web and Connect, with the same messages. \
This document is generated from the protos. For gRPC clients, \`GET /protos.tar.gz\` returns all protos with their \
imports, and \`GET /protos.binpb\` returns them as one descriptor set.

Bodies are JSON, and \`bytes\` fields are base64-encoded. Responses use the standard alphabet with padding. Requests may \
also use the URL-safe alphabet, with or without padding. An optional request field may also be null. The server refuses \
unknown fields and unknown query parameters. A response omits an optional field without a value.

An operation lists the HTTP statuses of failed calls, and docs/errors.md explains their reasons. The body has the same \
form for all calls of a service, and the first detail contains a reason for programs. A caller sets a deadline with \
\`grpc-timeout\` or \`connect-timeout-ms\`, and an ID for the response and the server's logs with \`x-request-id\`. \
Responses to GET have an entity tag, except streams of messages and the CBOM. A request with that tag in \
\`If-None-Match\` returns 304.

Which calls require a token, and therefore list 401 and 403, depends on the server's \`--auth\`. Generate clients from a \
server with the same \`--auth\`.`;
