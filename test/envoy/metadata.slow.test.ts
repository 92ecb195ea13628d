import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import type { OutgoingHttpHeaders } from "node:http2";
import https from "node:https";
import { beforeAll, describe, expect, it } from "vitest";
import { serveProbe } from "../server/probe.ts";
import { envelope, grpcStatusOf, jsonRefusalOf, type RawAnswer, request } from "../server/raw.ts";
import { endAfterAll } from "../support/at-end.ts";
import { connectHttp2, describeEdge, startTestEdge, type TestEdge } from "./edge-tools.ts";

const limit = 16_384;
const tooLarge = "METADATA_TOO_LARGE";

interface Form {
  readonly name: string;
  readonly path: string;
  readonly type: string;
  readonly body: string;
  /** The expected error. */
  readonly refusal: Record<string, unknown>;
}

const byStatus = { status: 431, code: "RESOURCE_EXHAUSTED", reason: tooLarge };
const byConnect = { status: 431, code: "resource_exhausted", reason: tooLarge };
const byTrailers = { status: 200, grpcStatus: 8, reason: tooLarge };
/** The headers of a gRPC response that has trailers. */
const notRefused = expect.not.objectContaining({ "grpc-status": expect.anything() });
const rpc = "/probing.Probe/Ask";
const empty = envelope("").toString("latin1");
const forms: readonly Form[] = [
  { name: "REST", path: "/probe/ask", type: "application/json", body: "{}", refusal: byStatus },
  { name: "Connect", path: rpc, type: "application/proto", body: "", refusal: byConnect },
  { name: "Connect with JSON", path: rpc, type: "application/json", body: "{}", refusal: byConnect },
  { name: "gRPC-Web", path: rpc, type: "application/grpc-web+proto", body: empty, refusal: byTrailers },
];
const grpc: Form = { name: "gRPC", path: rpc, type: "application/grpc", body: empty, refusal: byTrailers };

describeEdge("metadata through Envoy", () => {
  const atEnd = endAfterAll();
  let edge: TestEdge;
  beforeAll(async () => {
    const probe = await serveProbe({}, { maxMetadataBytes: 17_408 }, { atEnd });
    edge = await startTestEdge({ backends: [`127.0.0.1:${probe.port}`] }, atEnd);
  }, 180_000);

  /** Sends a request with this many bytes of metadata over HTTP/2, including pseudo-headers. */
  const send = (form: Form, bytes: number, others: OutgoingHttpHeaders = {}) => {
    const headers: OutgoingHttpHeaders = {
      ":method": "POST",
      ":scheme": "https",
      ":authority": new URL(edge.url).host,
      ":path": form.path,
      "content-type": form.type,
      ...others,
    };
    return request(connectHttp2(edge), fill(headers, bytes), Buffer.from(form.body, "latin1"));
  };

  /** Node adds `connection`, which is meant for Envoy and not counted. */
  const sendHttp1 = async (form: Form, bytes: number): Promise<RawAnswer> => {
    const { path } = form;
    const own = { host: "localhost", "content-type": form.type, "content-length": form.body.length };
    const headers = fill(own, bytes - path.length);
    const req = https.request(edge.url, { method: "POST", path, headers, ca: edge.ca, agent: false });
    req.end(Buffer.from(form.body, "latin1"));
    const [res]: IncomingMessage[] = await once(req, "response");
    const body = Buffer.concat(await Array.fromAsync(res ?? []));
    return { status: res?.statusCode ?? 0, headers: res?.headers ?? {}, trailers: {}, body };
  };

  describe.each([
    ...[...forms, grpc].map((form) => ({ ...form, version: 2, sendForm: send })),
    ...forms.map((form) => ({ ...form, version: 1.1, sendForm: sendHttp1 })),
  ])("of $name over HTTP/$version", ({ sendForm, ...form }) => {
    it("passes with exactly 16,384 bytes", async () => {
      expect(await sendForm(form, limit)).toMatchObject({ status: 200, headers: notRefused });
    });

    it.each([limit + 1, 20_000, 60_000])("is rejected with %i bytes, not truncated", async (bytes) => {
      expect(refusalOf(await sendForm(form, bytes))).toEqual(form.refusal);
    });
  });

  const [rest] = forms as [Form];

  it("includes forwarded addresses in its size", async () => {
    const forwarded = { "x-forwarded-for": "192.0.2.1, 192.0.2.2" };
    expect((await send(rest, limit, forwarded)).status).toBe(200);
    expect((await send(rest, limit + 1, forwarded)).status).toBe(431);
  });

  it.each([
    ["of many small fields", 900, "0123456789"],
    ["of 100,000 bytes", 10, "x".repeat(10_000)],
  ])("%s is rejected, not truncated", async (_what, length, value) => {
    const fields = Array.from({ length }, (_, index) => [`x-field-${index}`, value]);
    expect(refusalOf(await send(rest, 0, Object.fromEntries(fields)))).toEqual(byStatus);
  });

  it("over the limit does not affect other calls on the connection", async () => {
    const session = connectHttp2(edge);
    const headers = { ":path": "/probe/look", "x-large": "x".repeat(20_000) };
    const [refused, answered] = await Promise.all([
      request(session, headers),
      request(session, { ":path": "/probe/look" }),
    ]);
    expect([refused.status, answered.status]).toEqual([431, 200]);
    expect((await request(session, { ":path": "/probe/look" })).status).toBe(200);
  });
});

/** Pads the fields to a total size; adds nothing if they have it already. */
function fill(headers: OutgoingHttpHeaders, bytes: number): OutgoingHttpHeaders {
  const count = Object.entries(headers).reduce(
    (sum, [name, value]) => sum + name.length + String(value).length,
    0,
  );
  const missing = bytes - count - "x-filler".length;
  return missing > 0 ? { ...headers, "x-filler": "x".repeat(missing) } : headers;
}

function refusalOf(answer: RawAnswer): Record<string, unknown> {
  const { status, body } = answer;
  if (status !== 200) return { status, ...jsonRefusalOf(body) };
  const { status: grpcStatus, reason } = grpcStatusOf(answer);
  return { status, grpcStatus, reason };
}
