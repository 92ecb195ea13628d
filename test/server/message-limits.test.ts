/**
 * The message limit of every call that anyone may make, in every protocol. The bodies are unparsable. At the
 * limit, the error says so; one byte above it, the error says that they are too large, because nothing has
 * parsed them.
 */
import http2 from "node:http2";
import { gzipSync } from "node:zlib";
import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { createServiceImplSpec } from "@connectrpc/connect";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Access } from "#gen/qsp/access_pb.ts";
import { VpnService } from "#gen/vpn/vpn_service_pb.ts";
import { findAccess } from "../../src/calls/service-profile.ts";
import { findMessageLimit } from "../../src/message-limits/message-limit.ts";
import { collectProfiles } from "../../src/services/registry.ts";
import { compileRoutes } from "../../src/transcoding/routes.ts";
import { endAfterAll } from "../support/at-end.ts";
import { loadPackages } from "../support/whole-program.ts";
import { endRefusalOf, envelope, grpcStatusOf, jsonRefusalOf, type RawAnswer, request } from "./raw.ts";
import { type LocalServer, serve } from "./serve.ts";

/** The general limit: larger than any other limit in this file. */
const maxMessageBytes = 512 * 1024;
const packages = await loadPackages();
const profiles = collectProfiles(packages);
// The handlers do nothing, because no request reaches them. A stream has to read its messages.
const tunnel = async function* (packets: AsyncIterable<unknown>) {
  for await (const _packet of packets) yield {};
};
const specs = packages
  .flatMap(({ files }) => files.flatMap(({ services }): DescService[] => services))
  .map((service) =>
    service === VpnService
      ? createServiceImplSpec<typeof VpnService>(VpnService, { tunnel })
      : createServiceImplSpec(service, {}),
  );
const methods = specs.flatMap(({ service }) => service.methods);
const routes = compileRoutes(specs, profiles);

const atEnd = endAfterAll();
let local: LocalServer;
let session: http2.ClientHttp2Session;
beforeAll(async () => {
  local = await serve({ services: specs, profiles, limits: { maxMessageBytes } }, atEnd);
  session = http2.connect(local.url);
});
afterAll(() => session.destroy());

/** How one protocol carries a message. */
interface Form {
  readonly name: string;
  readonly path: (method: DescMethod) => string | undefined;
  readonly type: string;
  /** A byte that no message begins with. */
  readonly invalid: string;
  readonly isFramed: boolean;
}

const rpcPath = ({ parent, name }: DescMethod): string => `/${parent.typeName}/${name}`;
const restPath = (method: DescMethod): string | undefined =>
  routes.find(({ spec, body }) => spec.method === method && body.kind === "all")?.template.text;
const oauthPath = (method: DescMethod): string | undefined =>
  profiles[method.parent.typeName]?.restStyle === "oauth" ? restPath(method) : undefined;
const framed = (type: string): Form => {
  return { name: type, path: rpcPath, type, invalid: type.endsWith("json") ? "x" : "\u00ff", isFramed: true };
};
const form = "application/x-www-form-urlencoded";

const forms: readonly Form[] = [
  ...["grpc", "grpc+json", "grpc-web", "grpc-web+json"].map((type) => framed(`application/${type}`)),
  { name: "Connect", path: rpcPath, type: "application/proto", invalid: "\u00ff", isFramed: false },
  { name: "Connect with JSON", path: rpcPath, type: "application/json", invalid: "x", isFramed: false },
  { name: "REST", path: restPath, type: "application/json", invalid: "x", isFramed: false },
  { name: "a form", path: oauthPath, type: form, invalid: "%", isFramed: false },
];
const streamed = [framed("application/connect+proto"), framed("application/connect+json")];

const limitOf = (method: DescMethod): number => findMessageLimit(method, maxMessageBytes, profiles);
const rows = methods
  .filter((method) => findAccess(method, profiles) === Access.PUBLIC && method.methodKind === "unary")
  .flatMap((method) => forms.map((form) => ({ method, form })))
  .concat([...forms.slice(0, 4), ...streamed].map((form) => ({ method: VpnService.method.tunnel, form })))
  .map(({ method, form }) => ({
    path: form.path(method) ?? "",
    name: form.name,
    form,
    limit: limitOf(method),
  }))
  .filter(({ path }) => path !== "");

it.each(rows)("$path as $name parses messages up to its limit", async ({ path, form, limit }) => {
  const encodings = form.isFramed ? ["grpc-encoding", "connect-content-encoding"] : ["content-encoding"];
  const compressed = Object.fromEntries(encodings.map((name) => [name, "gzip"]));
  const send = async (bytes: number, isCompressed: boolean): Promise<RawAnswer> => {
    const message = Buffer.alloc(bytes, form.invalid, "latin1");
    const sent = isCompressed ? gzipSync(message) : message;
    const headers = { ":path": path, "content-type": form.type, ...(isCompressed && compressed) };
    return request(session, headers, form.isFramed ? envelope(sent, isCompressed ? 1 : 0) : sent);
  };
  for (const isCompressed of [false, true]) {
    const reason = reasonOf(await send(limit, isCompressed));
    expect(["MESSAGE_MALFORMED", "JSON_INVALID", "TARGET_INVALID"]).toContain(reason);
    const refused = await send(limit + 1, isCompressed);
    expect(reasonOf(refused)).toBe("BODY_TOO_LARGE");
    const { "grpc-message": inHeaders } = { ...refused.headers, ...refused.trailers };
    const text = `${refused.body.toString()} ${String(inHeaders)}`;
    expect(text.replaceAll("%20", " ")).toContain(`the limit of ${limit} bytes for this call`);
  }
});

/** The reason of a refusal, in every protocol. OAuth has no reasons, only the status and the sentence. */
function reasonOf(answer: RawAnswer): string | undefined {
  const type = String(answer.headers["content-type"]);
  if (type.startsWith("application/grpc")) return grpcStatusOf(answer).reason;
  if (type.startsWith("application/connect")) return endRefusalOf(answer).reason;
  const { error, error_description: description } = JSON.parse(answer.body.toString());
  if (error === undefined) return jsonRefusalOf(answer.body).reason;
  if (/form is not valid/.test(description)) return "TARGET_INVALID";
  return answer.status === 413 ? "BODY_TOO_LARGE" : "JSON_INVALID";
}
