/** Google's own client for Python, google-cloud-kms, over gRPC and over REST. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { computeCrc32c } from "../../src/services/google-kms/crc32c.ts";
import { type AccessServer, startAccessServer } from "../access/access-server.ts";
import { type RunningServer, startServer } from "../support/start-server.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { type GoogleClient, startGoogleClient } from "./google-client.ts";
import { findPython } from "./python.ts";

const location = "projects/my-project/locations/global";
const python = findPython("google.cloud.kms");
const title = python === undefined ? "needs google-cloud-kms for Python, which is not installed" : "works";

describe.skipIf(python === undefined)(`google-cloud-kms ${title}`, () => {
  let server: RunningServer;
  let client: GoogleClient;
  beforeAll(async () => {
    server = await startServer({
      dataDir: makeTemporaryDirectory(afterAll),
      args: ["--services", "google.kms"],
    });
    client = startGoogleClient(python ?? "", server.authority);
  });
  afterAll(async () => {
    await client.end();
    await server.stop();
  });

  describe.each(["grpc", "rest"] as const)("over %s", (transport) => {
    it("generates random bytes, whose CRC32C is right", async () => {
      const request = { location, length_bytes: 32, protection_level: "HSM" };
      const { answer } = await client.call({ transport, method: "generate_random_bytes", request });
      const { data, dataCrc32c } = answer as { data: string; dataCrc32c: string };
      const bytes = Buffer.from(data, "base64");
      expect(bytes).toHaveLength(32);
      expect(dataCrc32c).toBe(String(computeCrc32c(bytes)));
    });

    it("lists locations, and gets one", async () => {
      const listed = await client.call({
        transport,
        method: "list_locations",
        request: { name: "projects/my-project" },
      });
      const one = { name: location, locationId: "global", displayName: "global" };
      expect(listed).toMatchObject({ answer: { locations: [one] } });
      const got = await client.call({ transport, method: "get_location", request: { name: location } });
      expect(got).toMatchObject({ answer: one });
    });

    it("gets MethodNotImplemented for a call that is not supported, with the calls that are", async () => {
      const { error } = await client.call({
        transport,
        method: "encrypt",
        request: { name: `${location}/keyRings/r/cryptoKeys/k`, plaintext: "" },
      });
      expect(error).toMatchObject({
        class: "MethodNotImplemented",
        code: "UNIMPLEMENTED",
        httpStatus: 501,
        reason: "CALL_UNSUPPORTED",
        domain: "quantum-safe-playground",
        metadata: { method: "google.cloud.kms.v1.KeyManagementService/Encrypt" },
      });
      expect(error?.message).toMatch(
        /Encrypt is not supported; the supported calls are .*GenerateRandomBytes/,
      );
    });

    it("gets the exception for an invalid field", async () => {
      const { error } = await client.call({
        transport,
        method: "generate_random_bytes",
        request: { location, length_bytes: 4 },
      });
      // REST has only the status 400, of which Google's client makes BadRequest.
      expect(error?.class).toBe(transport === "grpc" ? "InvalidArgument" : "BadRequest");
      expect(error).toMatchObject({
        httpStatus: 400,
        reason: "FIELD_INVALID",
        metadata: { field: "lengthBytes" },
      });
      expect(error?.message).toMatch(/lengthBytes: is 4; it must be 8 to 1024$/);
    });
  });
});

describe.skipIf(python === undefined)(`google-cloud-kms with --auth token ${title}`, () => {
  const ends: (() => void | Promise<void>)[] = [];
  let server: AccessServer;
  let client: GoogleClient;
  beforeAll(async () => {
    server = await startAccessServer({ atEnd: (end) => void ends.push(end) });
    client = startGoogleClient(python ?? "", new URL(server.url).host);
  }, 60_000);
  afterAll(async () => {
    await client.end();
    for (const end of ends.reverse()) await end();
  });

  describe.each(["grpc", "rest"] as const)("over %s", (transport) => {
    const random = { transport, method: "generate_random_bytes", request: { location, length_bytes: 8 } };

    it("sends its bearer token", async () => {
      const { token } = await server.makePerson();
      expect(await client.call({ ...random, token })).toMatchObject({ answer: { data: expect.any(String) } });
    });

    // google-auth answers 401 over REST itself: it asks the credentials for another token, and they have none.
    const [withoutToken, withWrongToken] =
      transport === "grpc"
        ? [
            { class: "Unauthenticated", reason: "TOKEN_MISSING" },
            { class: "Unauthenticated", reason: "TOKEN_MALFORMED" },
          ]
        : [{ class: "InvalidOperation" }, { class: "RefreshError" }];

    it(`gets ${withoutToken.class} without a token, and ${withWrongToken.class} for a wrong one`, async () => {
      expect(await client.call(random)).toMatchObject({ error: withoutToken });
      expect(await client.call({ ...random, token: "wrong" })).toMatchObject({ error: withWrongToken });
    });
  });
});
