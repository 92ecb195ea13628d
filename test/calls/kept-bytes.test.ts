import { create, toBinary } from "@bufbuild/protobuf";
import { expect, it } from "vitest";
import { HealthCheckResponseSchema } from "#gen/grpc/health/v1/health_pb.ts";
import { encodeAnswer, keepBytes } from "../../src/calls/kept-bytes.ts";

it("encodes a kept answer once, and every other answer each time", () => {
  const kept = keepBytes(HealthCheckResponseSchema, create(HealthCheckResponseSchema, { status: 1 }));
  const other = create(HealthCheckResponseSchema, { status: 2 });
  expect(encodeAnswer(HealthCheckResponseSchema, kept)).toBe(encodeAnswer(HealthCheckResponseSchema, kept));
  for (const answer of [kept, other])
    expect(encodeAnswer(HealthCheckResponseSchema, answer)).toEqual(
      toBinary(HealthCheckResponseSchema, answer),
    );
});
