import { createRegistry } from "@bufbuild/protobuf";
import { expect, it, onTestFinished, vi } from "vitest";
import { IssueTokenRequestSchema } from "#gen/oauth/authorization_service_pb.ts";
import { parseForm } from "../../src/transcoding/form.ts";
import { defaultBodyLimits } from "../server/default-limits.ts";
import { refusal } from "../support/refusal.ts";

const read = (text: string) =>
  parseForm(IssueTokenRequestSchema, Buffer.from(text), { ...defaultBodyLimits, registry: createRegistry() });
const refusalOf = (text: string) => refusal(Promise.resolve().then(() => read(text)));

it("ignores up to 1,000 unknown parameters", () => {
  expect(read(`${"%61=%62&".repeat(999)}scope=a+b`).message).toMatchObject({ scope: "a b" });
});

it("refuses more parameters, without decoding the rest", async () => {
  const decode = vi.spyOn(globalThis, "decodeURIComponent");
  onTestFinished(() => decode.mockRestore());
  expect(await refusalOf("%61=%62&".repeat(8000))).toMatchObject({ reason: "MESSAGE_TOO_COMPLEX" });
  expect(decode.mock.calls.length).toBeLessThanOrEqual(2 * 1001);
});

it("decodes only encoded text", () => {
  const decode = vi.spyOn(globalThis, "decodeURIComponent");
  onTestFinished(() => decode.mockRestore());
  expect(read(`scope=${"+".repeat(1000)}&client_id=a%2Bb`).message).toMatchObject({
    scope: " ".repeat(1000),
    clientId: "a+b",
  });
  expect(decode).toHaveBeenCalledTimes(1);
});
