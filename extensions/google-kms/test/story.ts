/** What each Google client does without a key, over gRPC and REST. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type AccessServer, startAccessServer } from "../../../test/access/access-server.ts";
import { endAfterAll } from "../../../test/support/at-end.ts";
import { type RunningServer, startServer } from "../../../test/support/start-server.ts";
import { makeTemporaryDirectory } from "../../../test/support/temporary-directory.ts";
import { computeCrc32c } from "../crc32c.ts";
import type { GoogleClient, GoogleProgram } from "./programs.ts";

const location = "projects/my-project/locations/global";

/** Defines a client's tests, with and without tokens. */
export function testGoogleCalls(program: GoogleProgram): void {
  describe.skipIf(program.isMissing)(program.name, { timeout: 180_000 }, () => {
    testOpenServer(program);
    testTokens(program);
  });
}

function testOpenServer({ start, errors }: GoogleProgram): void {
  let server: RunningServer;
  let client: GoogleClient;
  beforeAll(async () => {
    const args = ["--services", "google.kms"];
    server = await startServer({ dataDir: makeTemporaryDirectory(afterAll), args });
    client = start(server.authority);
  }, 300_000);
  afterAll(async () => {
    await client.end();
    await server.stop();
  });

  describe.each(["grpc", "rest"] as const)("over %s", (transport) => {
    it("generates random bytes with a correct CRC32C", async () => {
      const request = { location, length_bytes: 32, protection_level: "HSM" };
      const { answer } = await client.call({ transport, method: "generate_random_bytes", request });
      const { data, dataCrc32c } = answer as { data: string; dataCrc32c: string };
      const bytes = Buffer.from(data, "base64");
      expect(bytes).toHaveLength(32);
      expect(dataCrc32c).toBe(String(computeCrc32c(bytes)));
    });

    it("lists and gets locations", async () => {
      const request = { name: "projects/my-project" };
      const one = { name: location, locationId: "global", displayName: "global" };
      expect(await client.call({ transport, method: "list_locations", request })).toMatchObject({
        answer: [one],
      });
      const got = await client.call({ transport, method: "get_location", request: { name: location } });
      expect(got).toMatchObject({ answer: one });
    });

    it("is notified of an unsupported call, and where to find the supported ones", async () => {
      const { error } = await client.call({
        transport,
        method: "encrypt",
        request: { name: `${location}/keyRings/r/cryptoKeys/k`, plaintext: "" },
      });
      expect(error).toMatchObject({
        ...errors[transport].unsupported,
        reason: "CALL_UNSUPPORTED",
        domain: "quantum-safe-playground",
        metadata: { method: "google.cloud.kms.v1.KeyManagementService/Encrypt" },
      });
      expect(error?.message).toMatch(
        /Encrypt is not supported; see \/reference on this server for the supported calls/,
      );
    });

    it("is notified of an invalid field", async () => {
      const { error } = await client.call({
        transport,
        method: "generate_random_bytes",
        request: { location, length_bytes: 4 },
      });
      expect(error).toMatchObject({
        ...errors[transport].invalid,
        reason: "FIELD_INVALID",
        metadata: { field: "lengthBytes" },
      });
      expect(error?.message).toContain("lengthBytes: is 4; it must be 8 to 1024");
    });
  });
}

function testTokens({ start, errors }: GoogleProgram): void {
  const atEnd = endAfterAll();
  let server: AccessServer;
  let client: GoogleClient;
  beforeAll(async () => {
    server = await startAccessServer({ atEnd });
    client = start(new URL(server.url).host);
  }, 300_000);
  afterAll(async () => {
    await client.end();
  });

  describe.each(["grpc", "rest"] as const)("over %s with --auth token", (transport) => {
    const random = { transport, method: "generate_random_bytes", request: { location, length_bytes: 8 } };

    it("sends its bearer token", async () => {
      const { token } = await server.makePerson();
      expect(await client.call({ ...random, token })).toMatchObject({ answer: { data: expect.any(String) } });
    });

    it("is notified that a token is missing or wrong", async () => {
      const { withoutToken, withWrongToken } = errors[transport];
      expect(await client.call(random)).toMatchObject({ error: withoutToken });
      expect(await client.call({ ...random, token: "wrong" })).toMatchObject({ error: withWrongToken });
    });
  });
}
