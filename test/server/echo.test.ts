/** How much errors quote of their request: at most 100 characters of each text. */
import { beforeAll, describe, expect, it } from "vitest";
import { excerpt } from "../../src/errors/shorten.ts";
import { refuse } from "../../src/errors.ts";
import { startKmsServer } from "../faults/kms-server.ts";
import { endAfterAll } from "../support/at-end.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { connectHttp2, envelope, request } from "./raw.ts";

/** Longer than any text of our own, and never part of one. */
const long = "z".repeat(8000);
const huge = "z".repeat(1_000_000);
const json = { "content-type": "application/json" };
const grpc = { "content-type": "application/grpc", te: "trailers" };
const [sign, restSign] = ["/kms.KmsService/Sign", "/api/kms/sign"];

type Headers = Record<string, string>;
type Request = [what: string, headers: Headers, body?: string | Uint8Array];
const atPath = (what: string, path: string): Request => [what, { ":path": path }];
const toRest = (what: string, headers: Headers): Request => [
  what,
  { ...json, ":path": restSign, ...headers },
  "{}",
];
const toConnect = (what: string, headers: Headers): Request => [
  what,
  { ...json, ":path": sign, ...headers },
  "{}",
];
const toGrpc = (what: string, headers: Headers): Request => [
  what,
  { ...grpc, ":path": sign, ...headers },
  envelope(""),
];

const requests: Request[] = [
  atPath("a path", `/${long}`),
  toGrpc("a path under an RPC's service", { ":path": `/kms.KmsService/${long}` }),
  toGrpc("an RPC of no service", { ":path": `/${long}/${long}` }),
  atPath("a path variable", `/api/kms/key/${long}`),
  atPath("a path variable with half a character", `/api/kms/key/${long}%ff`),
  atPath("a query parameter's name", `/api/kms/keys?${long}=1`),
  atPath("a query parameter's value", `/api/kms/keys?pageSize=${long}`),
  atPath("a query that is not UTF-8", `/api/kms/keys?a=${long}%ff`),
  ["a method", { ":method": long.toUpperCase(), ":path": "/api/kms/keys" }],
  toRest("a media type", { "content-type": `application/${long}` }),
  toRest("a charset", { "content-type": `application/json;charset=${long}` }),
  toConnect("a Connect media type", { "content-type": `application/${long}` }),
  toConnect("an invalid media type", { "content-type": long }),
  toRest("an encoding", { "content-encoding": long }),
  toConnect("a Connect encoding", { "content-encoding": long }),
  toGrpc("a gRPC encoding", { "grpc-encoding": long }),
  toGrpc("a timeout", { "grpc-timeout": long }),
  toConnect("a Connect timeout", { "connect-timeout-ms": long }),
  toConnect("a protocol version", { "connect-protocol-version": long }),
  ["accept", { ":path": "/api/kms/keys", accept: `text/${long}` }],
  toRest("an idempotency key", { ":path": "/api/kms/create-key", "idempotency-key": long }),
  atPath("a page token", `/api/kms/keys?pageToken=${long}`),
  ...["/api/kms/batch-sign", "/kms.KmsService/BatchSign"].map((path): Request => {
    return [`a text where a list belongs at ${path}`, { ...json, ":path": path }, `{"data":"${huge}"}`];
  }),
  ...[restSign, sign].flatMap((path) =>
    Object.entries({
      "a member name": `{"${huge}":1}`,
      "a duplicate member name": `{"${huge}":1,"${huge}":2}`,
      "a text where bytes belong": `{"data":"${huge}!"}`,
      "a text where an enum belongs": `{"encoding":"${huge}"}`,
      "a number": `{"keyId":${"1".repeat(100_000)}}`,
      "a keyId": `{"keyId":"${huge}","data":"AA=="}`,
      "no JSON": huge,
    }).map(([what, body]): Request => [`${what} at ${path}`, { ...json, ":path": path }, body]),
  ),
];

describe("an error quotes at most 100 characters of", () => {
  const atEnd = endAfterAll();
  let url: string;
  beforeAll(async () => {
    const dataDir = makeTemporaryDirectory(atEnd);
    ({ url } = await startKmsServer({ dataDir, args: ["--max-metadata-bytes", "65536"] }, atEnd));
  }, 120_000);

  it.each(requests)("%s", async (_what, headers, body) => {
    const answer = await request(connectHttp2(url), { ":path": "/", ...headers }, body);
    const { headers: fields, trailers } = answer;
    const details = String(fields["grpc-status-details-bin"] ?? trailers["grpc-status-details-bin"]);
    const decoded = Buffer.from(details, "base64").toString("latin1");
    const all = [answer.body.toString(), JSON.stringify([fields, trailers]), decoded].join("\n");
    const echoes = all.match(/z{20,}/gi) ?? [];
    expect(Math.max(0, ...echoes.map((echo) => echo.length))).toBeLessThanOrEqual(100);
    expect(all.length).toBeLessThan(8 * 1024);
  });
});

describe("excerpt", () => {
  it("leaves 100 characters unchanged and shortens more to 100", () => {
    expect(excerpt("a".repeat(100))).toBe("a".repeat(100));
    expect(excerpt("a".repeat(101))).toBe(`${"a".repeat(99)}…`);
  });

  it("splits no surrogate pair", () => {
    for (let offset = 0; offset < 4; offset += 1) {
      const short = excerpt("a".repeat(offset) + "🔑".repeat(100));
      expect([short.isWellFormed(), short.endsWith("…"), short.length > 97]).toEqual([true, true, true]);
    }
  });
});

describe("refuse", () => {
  it("shortens metadata wherever the message quotes it", () => {
    const { rawMessage } = refuse("ROUTE_NOT_FOUND", `nothing at ${long}, nothing at all`, { path: long });
    expect(rawMessage).toBe(`nothing at ${excerpt(long)}, nothing at all`);
  });

  it("shortens quoted text", () => {
    const text = "z".repeat(4000);
    const { rawMessage } = refuse("FIELD_INVALID", `got "${text}" and "${text}"`);
    expect(rawMessage).toBe(`got "${excerpt(text)}" and "${excerpt(text)}"`);
  });
});
