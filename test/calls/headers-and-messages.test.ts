/** Call headers, which behave like the platform's Headers wherever calls use them, and encoded messages. */
import { create, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { HealthCheckResponseSchema } from "#gen/grpc/health/v1/health_pb.ts";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { listAccepted } from "../../src/calls/accepted-values.ts";
import { CallHeaders } from "../../src/calls/call-headers.ts";
import { encodeAnswer, keepBytes } from "../../src/calls/kept-bytes.ts";

const received = { ":path": "/x", accept: "text/plain", "x-many": ["a", "b"], "set-cookie": ["c=1", "d=2"] };

/** The same headers as a platform Headers object. */
function platformHeaders(): Headers {
  const headers = new Headers({ accept: "text/plain", "x-many": "a, b" });
  headers.append("set-cookie", "c=1");
  headers.append("set-cookie", "d=2");
  return headers;
}

describe("call headers", () => {
  it("are case-insensitive", () => {
    const headers = new CallHeaders(received);
    const values = ["Accept", "x-many", "missing"].map((name) => headers.get(name));
    expect(values).toEqual(["text/plain", "a, b", null]);
    expect([headers.has("ACCEPT"), headers.has("missing")]).toEqual([true, false]);
  });

  it("do not mistake inherited object properties for headers", () => {
    const headers = new CallHeaders({});
    expect([headers.get("constructor"), headers.has("toString")]).toEqual([null, false]);
    headers.append("constructor", "a");
    expect(headers.get("constructor")).toBe("a");
  });

  it("hide HTTP/2 pseudo-headers", () => {
    const headers = new CallHeaders(received);
    expect([headers.get(":path"), [...headers.keys()].includes(":path")]).toEqual([null, false]);
  });

  it("are listed and changed as by the platform, but not in the object in which they were received", () => {
    const before = structuredClone(received);
    const [ours, platform] = [new CallHeaders(received), platformHeaders()];
    expect([...ours.keys()]).toEqual([...platform.keys()]);
    expect([...ours.values()]).toEqual([...platform.values()]);
    expect(ours.getSetCookie()).toEqual(platform.getSetCookie());
    for (const headers of [ours, platform]) {
      headers.set("X-New", "1");
      headers.append("x-new", "2");
      headers.append("X-Many", "c");
      headers.append("set-cookie", "e=3");
      headers.set("Accept", "changed");
      headers.delete("Accept");
    }
    expect([...ours]).toEqual([...platform]);
    expect(received).toEqual(before);
  });

  it("can be copied to platform Headers", () => {
    expect([...new Headers(new CallHeaders({ accept: "text/plain" }))]).toEqual([["accept", "text/plain"]]);
  });
});

const { createGrant, getAuditLog, listKeys } = KmsService.method;

it("listAccepted lists the texts that a field or an element accepts, and none if it accepts any", () => {
  expect(listAccepted(getAuditLog.input.field.outcome)).toEqual(["OK", "REFUSED"]);
  expect(listAccepted(createGrant.input.field.operations)).toContain("GET_KEY");
  expect(listAccepted(listKeys.input.field.name)).toEqual([]);
});

it("encodeAnswer encodes a kept answer once, and every other answer each time", () => {
  const kept = keepBytes(HealthCheckResponseSchema, create(HealthCheckResponseSchema, { status: 1 }));
  const other = create(HealthCheckResponseSchema, { status: 2 });
  expect(encodeAnswer(HealthCheckResponseSchema, kept)).toBe(encodeAnswer(HealthCheckResponseSchema, kept));
  for (const answer of [kept, other])
    expect(encodeAnswer(HealthCheckResponseSchema, answer)).toEqual(
      toBinary(HealthCheckResponseSchema, answer),
    );
});
