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
const sign = "/kms.KmsService/Sign";

const requests: [what: string, headers: Record<string, string>, body?: string | Uint8Array][] = [
  ["a path", { ":path": `/${long}` }],
  ["a path under an RPC's service", { ...grpc, ":path": `/kms.KmsService/${long}` }, envelope("")],
  ["an RPC of no service", { ...grpc, ":path": `/${long}/${long}` }, envelope("")],
  ["a path variable", { ":path": `/api/kms/key/${long}` }],
  ["a path variable with half a character", { ":path": `/api/kms/key/${long}%ff` }],
  ["a query parameter's name", { ":path": `/api/kms/keys?${long}=1` }],
  ["a query parameter's value", { ":path": `/api/kms/keys?pageSize=${long}` }],
  ["a query that is not UTF-8", { ":path": `/api/kms/keys?a=${long}%ff` }],
  ["a method", { ":method": long.toUpperCase(), ":path": "/api/kms/keys" }],
  ["a media type", { ":path": "/api/kms/sign", "content-type": `application/${long}` }, "{}"],
  ["a charset", { ":path": "/api/kms/sign", "content-type": `application/json;charset=${long}` }, "{}"],
  ["a Connect media type", { ":path": sign, "content-type": `application/${long}` }, "{}"],
  ["an invalid media type", { ":path": sign, "content-type": long }, "{}"],
  ["an encoding", { ...json, ":path": "/api/kms/sign", "content-encoding": long }, "{}"],
  ["a Connect encoding", { ...json, ":path": sign, "content-encoding": long }, "{}"],
  ["a gRPC encoding", { ...grpc, ":path": sign, "grpc-encoding": long }, envelope("")],
  ["a timeout", { ...grpc, ":path": sign, "grpc-timeout": long }, envelope("")],
  ["a Connect timeout", { ...json, ":path": sign, "connect-timeout-ms": long }, "{}"],
  ["a protocol version", { ...json, ":path": sign, "connect-protocol-version": long }, "{}"],
  ["accept", { ":path": "/api/kms/keys", accept: `text/${long}` }],
  ["an idempotency key", { ...json, ":path": "/api/kms/create-key", "idempotency-key": long }, "{}"],
  ["a page token", { ":path": `/api/kms/keys?pageToken=${long}` }],
  ...["/api/kms/sign", sign].flatMap((path): [string, Record<string, string>, string][] => [
    [`a member name at ${path}`, { ...json, ":path": path }, `{"${huge}":1}`],
    [`a duplicate member name at ${path}`, { ...json, ":path": path }, `{"${huge}":1,"${huge}":2}`],
    [`a text where bytes belong at ${path}`, { ...json, ":path": path }, `{"data":"${huge}!"}`],
    [`a text where an enum belongs at ${path}`, { ...json, ":path": path }, `{"encoding":"${huge}"}`],
    [
      `a text where a list belongs at ${path}`,
      { ...json, ":path": path.replace(/sign$/i, (name) => (name === "sign" ? "batch-sign" : "BatchSign")) },
      `{"data":"${huge}"}`,
    ],
    [`a number at ${path}`, { ...json, ":path": path }, `{"keyId":${"1".repeat(100_000)}}`],
    [`a keyId at ${path}`, { ...json, ":path": path }, `{"keyId":"${huge}","data":"AA=="}`],
    [`no JSON at ${path}`, { ...json, ":path": path }, huge],
  ]),
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
    const details = String(
      answer.headers["grpc-status-details-bin"] ?? answer.trailers["grpc-status-details-bin"],
    );
    const all = [
      answer.body.toString(),
      JSON.stringify([answer.headers, answer.trailers]),
      Buffer.from(details, "base64").toString("latin1"),
    ].join("\n");
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
