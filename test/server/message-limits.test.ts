/**
 * The message limit of every call that anyone may make, in every protocol. The bodies are unparsable. At the
 * limit, the error says so; one byte above it, the error says that they are too large, because nothing has
 * parsed them.
 */
import http2 from "node:http2";
import { gzipSync } from "node:zlib";
import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { createServiceImplSpec } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
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
  /** The content type, and the additional headers of a compressed message. */
  readonly headers: Readonly<Record<string, string>>;
  readonly compressed: Readonly<Record<string, string>>;
  /** A byte that no message begins with. */
  readonly invalid: string;
  readonly pathOf: (method: DescMethod) => string | undefined;
  readonly isFramed: boolean;
}

const rpcPath = ({ parent, name }: DescMethod): string => `/${parent.typeName}/${name}`;
const restPath = (method: DescMethod): string | undefined =>
  routes.find(({ spec, body }) => spec.method === method && body.kind === "all")?.template.text;
const framed = (type: string, invalid: string): Form => ({
  name: type,
  headers: { "content-type": type },
  compressed: { "grpc-encoding": "gzip" },
  invalid,
  pathOf: rpcPath,
  isFramed: true,
});
const plain = (name: string, type: string, invalid: string, pathOf: Form["pathOf"]): Form => ({
  name,
  headers: { "content-type": type },
  compressed: { "content-encoding": "gzip" },
  invalid,
  pathOf,
  isFramed: false,
});

const forms: readonly Form[] = [
  framed("application/grpc", "\u00ff"),
  framed("application/grpc+json", "x"),
  framed("application/grpc-web", "\u00ff"),
  framed("application/grpc-web+json", "x"),
  plain("Connect", "application/proto", "\u00ff", rpcPath),
  plain("Connect with JSON", "application/json", "x", rpcPath),
  plain("REST", "application/json", "x", restPath),
  plain("a form", "application/x-www-form-urlencoded", "%", (method) =>
    profiles[method.parent.typeName]?.restStyle === "oauth" ? restPath(method) : undefined,
  ),
];

const publicRows = methods
  .filter((method) => findAccess(method, profiles) === Access.PUBLIC && method.methodKind === "unary")
  .flatMap((method) =>
    forms.flatMap((form) => {
      const path = form.pathOf(method);
      return path === undefined ? [] : [{ path, form, method, name: form.name }];
    }),
  );

const invalidReasons = ["MESSAGE_MALFORMED", "JSON_INVALID", "TARGET_INVALID"];

describe("a public call parses messages up to its limit, compressed or not, and names the limit when it refuses more", () => {
  it.each(publicRows)("$path as $name", async ({ path, form, method }) => {
    const limit = findMessageLimit(method, maxMessageBytes, profiles);
    const send = async (bytes: number, isCompressed: boolean): Promise<RawAnswer> => {
      const message = Buffer.alloc(bytes, form.invalid, "latin1");
      const sent = isCompressed ? gzipSync(message) : message;
      const headers = { ":path": path, ...form.headers, ...(isCompressed && form.compressed) };
      return request(session, headers, form.isFramed ? envelope(sent, isCompressed ? 1 : 0) : sent);
    };
    for (const isCompressed of [false, true]) {
      expect(invalidReasons).toContain(reasonOf(await send(limit, isCompressed)));
      const refused = await send(limit + 1, isCompressed);
      expect(reasonOf(refused)).toBe("BODY_TOO_LARGE");
      const text = `${refused.body.toString()} ${String(refused.headers["grpc-message"] ?? "")}`;
      expect(text.replaceAll("%20", " ")).toContain(`the limit of ${limit} bytes for this call`);
    }
  });
});

describe("the messages of a stream", () => {
  const method = VpnService.method.tunnel;
  const limit = findMessageLimit(method, maxMessageBytes, profiles);
  const types = [
    "application/grpc",
    "application/grpc-web",
    "application/connect+proto",
    "application/connect+json",
  ];

  it.each(types)("are each subject to the limit of their call, over %s", async (type) => {
    const invalid = type.endsWith("json") ? "x" : "\u00ff";
    const send = async (bytes: number, isCompressed: boolean): Promise<string | undefined> => {
      const message = Buffer.alloc(bytes, invalid, "latin1");
      const sent = isCompressed ? envelope(gzipSync(message), 1) : envelope(message);
      const headers = {
        ":path": rpcPath(method),
        "content-type": type,
        ...(isCompressed && { "grpc-encoding": "gzip", "connect-content-encoding": "gzip" }),
      };
      const answer = await request(session, headers, sent);
      return (type.includes("connect") ? endRefusalOf(answer) : grpcStatusOf(answer)).reason;
    };
    expect(limit).toBeLessThan(maxMessageBytes);
    for (const isCompressed of [false, true]) {
      expect(invalidReasons).toContain(await send(limit, isCompressed));
      expect(await send(limit + 1, isCompressed)).toBe("BODY_TOO_LARGE");
    }
  });
});

/** The reason of a refusal, in every protocol. OAuth has no reasons, only the status and the sentence. */
function reasonOf(answer: RawAnswer): string | undefined {
  if (String(answer.headers["content-type"]).startsWith("application/grpc"))
    return grpcStatusOf(answer).reason;
  const { error, error_description: description } = JSON.parse(answer.body.toString());
  if (error === undefined) return jsonRefusalOf(answer.body).reason;
  if (/form is not valid/.test(description)) return "TARGET_INVALID";
  return answer.status === 413 ? "BODY_TOO_LARGE" : "JSON_INVALID";
}
