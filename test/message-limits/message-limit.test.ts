import http2 from "node:http2";
import { gzipSync } from "node:zlib";
import {
  create,
  type DescField,
  type DescMessage,
  type DescMethod,
  type DescService,
  getOption,
  hasOption,
  ScalarType,
  toBinary,
  toJsonString,
} from "@bufbuild/protobuf";
import { isReflectList, isReflectMap, type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import {
  type FieldRules,
  field as fieldRules,
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { createServiceImplSpec } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Access } from "#gen/qsp/access_pb.ts";
import { VpnService } from "#gen/vpn/vpn_service_pb.ts";
import { findAccess } from "../../src/calls/service-profile.ts";
import { findMessageLimit } from "../../src/message-limits/message-limit.ts";
import { collectProfiles } from "../../src/services/registry.ts";
import { compileRoutes } from "../../src/transcoding/routes.ts";
import { EverythingSchema } from "../gen/testing/kinds_pb.ts";
import {
  endRefusalOf,
  envelope,
  grpcStatusOf,
  jsonRefusalOf,
  type RawAnswer,
  request,
} from "../server/raw.ts";
import { type LocalServer, serve } from "../server/serve.ts";
import { endAfterAll } from "../support/at-end.ts";
import { loadPackages } from "../support/whole-program.ts";

const generalBytes = 4 * 1024 * 1024;
const stepBytes = 64 * 1024;
const packages = await loadPackages();
const profiles = collectProfiles(packages);
const services = packages.flatMap(({ files }) => files.flatMap(({ services }): DescService[] => services));
const methods = services.flatMap((service) => service.methods);
const limitOf = (method: DescMethod): number => findMessageLimit(method, generalBytes, profiles);
const named = (list: readonly DescMethod[]): [name: string, method: DescMethod][] =>
  list.map((method) => [`${method.parent.typeName}/${method.name}`, method]);

/** Public calls that need more: signed data. */
const larger: Record<string, number> = { "pqc.TokenService/VerifyToken": generalBytes };
const publicMethods = methods.filter((method) => findAccess(method, profiles) === Access.PUBLIC);

it.each(named(publicMethods))("the public call %s takes 64 KiB, unless a row has more", (name, method) => {
  const profile = profiles[method.parent.typeName]?.rpcs?.[method.name];
  expect(limitOf(method)).toBe(larger[name] ?? profile?.maxBytes ?? stepBytes);
});

describe("the message limit of a call", () => {
  const rpcs = ["SignData", "Sign", "Verify", "BatchSign", "SignStream", "UpdateFirmware", "DeployContract"];
  it.each(rpcs)("is the general limit for %s, whose data has any size", (rpc) => {
    const found = methods.filter(({ name, parent }) => name === rpc && parent.typeName !== "nft.NftService");
    expect(new Set(found.map(limitOf))).toEqual(new Set([generalBytes]));
  });

  it("follows the rule of the largest field: a packet of 64 KiB fits as base64", () => {
    const found = methods.find(({ name }) => name === "ReceivePacket");
    expect(found && limitOf(found)).toBe(2 * stepBytes);
  });

  it("is the general limit for a recursive message", () => {
    const [method] = methods;
    if (method === undefined) throw new Error("no method");
    expect(findMessageLimit({ ...method, input: EverythingSchema }, generalBytes)).toBe(generalBytes);
  });

  it("never exceeds the general limit", () => {
    const limits = methods.map((method) => findMessageLimit(method, 1000, profiles));
    expect(new Set(limits)).toEqual(new Set([1000]));
  });
});

describe("the largest message that the rules allow fits the limit of", () => {
  const bounded = methods.filter((method) => {
    return limitOf(method) < generalBytes && !method.input.typeName.startsWith("envoy.");
  });

  it.each(named(bounded))("%s, in both encodings, with any texts", (_name, method) => {
    for (const character of ["x", "€"]) {
      const { message } = fill(method.input, character);
      expect(toBinary(method.input, message).length).toBeLessThanOrEqual(limitOf(method));
      // As a client that escapes non-ASCII texts writes it.
      const json = toJsonString(method.input, message).replaceAll("€", "\\u20ac");
      expect(json.length).toBeLessThanOrEqual(limitOf(method));
    }
  });
});

/** Fills every field as far as its rules allow. The last member of a oneof stays. */
function fill(desc: DescMessage, character: string): ReflectMessage {
  const message = reflect(desc, create(desc));
  for (const field of desc.fields) {
    const rules = hasOption(field, fieldRules) ? getOption(field, fieldRules) : undefined;
    const { type } = rules ?? {};
    if (field.fieldKind === "list") {
      const { maxItems = 0n, items = undefined } = type?.case === "repeated" ? type.value : {};
      const list = message.get(field);
      for (let i = 0; i < maxItems && isReflectList(list); i += 1) list.add(largest(field, items, character));
    } else if (field.fieldKind === "map") {
      const { maxPairs = 0n, values = undefined } = type?.case === "map" ? type.value : {};
      const map = message.get(field);
      for (let i = 0; i < maxPairs && isReflectMap(map); i += 1)
        map.set(`${"k".repeat(60)}${i}`, largest(field, values, character));
    } else message.set(field, largest(field, rules, character));
  }
  return message;
}

function largest(field: DescField, rules: FieldRules | undefined, character: string): unknown {
  const { type } = rules ?? {};
  if (field.message !== undefined) return fill(field.message, character);
  if (field.enum !== undefined) return field.enum.values.at(-1)?.number ?? 0;
  switch (field.scalar) {
    case ScalarType.STRING: {
      if (type?.case !== "string") return "";
      const { len, maxLen, maxBytes } = type.value;
      // Where the rules count bytes, the text is a token or a URL.
      if (maxBytes > 0n) return "x".repeat(Number(maxBytes));
      return character.repeat(Number(len || maxLen));
    }
    case ScalarType.BYTES:
      return new Uint8Array(type?.case === "bytes" ? Number(type.value.len || type.value.maxLen) : 0);
    case ScalarType.BOOL:
      return true;
    case ScalarType.DOUBLE:
      return 1.5;
    case ScalarType.INT64:
    case ScalarType.UINT64:
      // The last second of the year 9999, which is a valid time.
      return 253_402_300_799n;
    default:
      return 999_999_999;
  }
}

/** The general limit: larger than any other limit in this file. */
const maxMessageBytes = 512 * 1024;
// The handlers do nothing, because no request reaches them. A stream has to read its messages.
const tunnel = async function* (packets: AsyncIterable<unknown>) {
  for await (const _packet of packets) yield {};
};
const specs = services.map((service) =>
  service === VpnService
    ? createServiceImplSpec<typeof VpnService>(VpnService, { tunnel })
    : createServiceImplSpec(service, {}),
);
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
const rows = methods
  .filter((method) => findAccess(method, profiles) === Access.PUBLIC && method.methodKind === "unary")
  .flatMap((method) => forms.map((form) => ({ method, form })))
  .concat([...forms.slice(0, 4), ...streamed].map((form) => ({ method: VpnService.method.tunnel, form })))
  .map(({ method, form }) => ({
    path: form.path(method) ?? "",
    name: form.name,
    form,
    limit: findMessageLimit(method, maxMessageBytes, profiles),
  }))
  .filter(({ path }) => path !== "");

// The bodies are unparsable. At the limit, the error says so; one byte above it, the error says that they are too large,
// because nothing has parsed them.
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
