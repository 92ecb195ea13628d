/** What Google's unmodified clients do over gRPC and REST; node:crypto verifies the signatures. */
import {
  createHash,
  createPublicKey,
  encapsulate,
  generateKeyPairSync,
  type KeyObject,
  verify,
} from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { withProvider } from "../../../src/cli/keys/read-keys.ts";
import { type AccessServer, startAccessServer } from "../../../test/access/access-server.ts";
import { endAfterAll } from "../../../test/support/at-end.ts";
import { base64, bytesOf, unbase64 } from "../../../test/support/bytes.ts";
import { useRunningServer } from "../../../test/support/running-server.ts";
import { wrapKeyFile } from "../../../test/support/wrap-key.ts";
import { computeCrc32c } from "../crc32c.ts";
import type { GoogleClient, GoogleOutcome, GoogleProgram } from "./programs.ts";

const location = "projects/my-project/locations/global";
const data = bytesOf("release 1.2.3");
const transports = ["grpc", "rest"] as const;

type Answer = Readonly<Record<string, unknown>>;

/** Defines a client's tests, with and without tokens. */
export function testGoogleClient(program: GoogleProgram): void {
  describe.skipIf(program.isMissing)(program.name, { timeout: 180_000 }, () => {
    testOpenServer(program);
    testTokens(program);
  });
}

function testOpenServer({ start }: GoogleProgram): void {
  const server = useRunningServer(["--services", "google.kms"]);
  let client: GoogleClient;
  beforeAll(() => {
    client = start(server().authority);
  }, 300_000);
  afterAll(() => client.end());

  describe.each(transports)("over %s", (transport) => {
    const ring = `${location}/keyRings/ring-${transport}`;
    const call = (method: string, request: object): Promise<GoogleOutcome> =>
      client.call({ transport, method, request });
    const ask = async (method: string, request: object): Promise<Answer> => {
      const { answer, error } = await call(method, request);
      if (error !== undefined) throw new Error(`${method}: ${JSON.stringify(error)}`);
      return answer as Answer;
    };
    const list = async (method: string, request: object) =>
      (await ask(method, request)) as unknown as readonly Answer[];
    /** Creates a key, and returns the names of the key and of its version. */
    const createKey = async (id: string, algorithm: string, fields: object = {}) => {
      const purpose = /SIGN/.test(algorithm) ? "ASYMMETRIC_SIGN" : "KEY_ENCAPSULATION";
      const key = { purpose, version_template: { algorithm }, ...fields };
      const created = await ask("create_crypto_key", { parent: ring, crypto_key_id: id, crypto_key: key });
      expect(created).toMatchObject({ name: `${ring}/cryptoKeys/${id}`, purpose, ...fields });
      return { name: String(created.name), version: `${created.name}/cryptoKeyVersions/1` };
    };
    const sign = (name: string, input: object = { data: base64(data) }) =>
      ask("asymmetric_sign", { name, ...input });
    const readKey = async (name: string) =>
      createPublicKey(String((await ask("get_public_key", { name, public_key_format: "PEM" })).pem));
    const isSigned = (key: KeyObject, { signature }: Answer, digest: string | null = null) =>
      verify(digest, data, key, unbase64(signature));

    beforeAll(async () => {
      await ask("create_key_ring", { parent: location, key_ring_id: `ring-${transport}` });
    });

    it("lists and gets locations", async () => {
      const one = { name: location, locationId: "global", displayName: "global" };
      expect(await list("list_locations", { name: "projects/my-project" })).toMatchObject([one]);
      expect(await ask("get_location", { name: location })).toMatchObject(one);
    });

    it("is notified of an unsupported call, and where to find the supported ones", async () => {
      const request = { name: `${ring}/cryptoKeys/k`, plaintext: "" };
      const { error } = await call("encrypt", request);
      expect(error).toMatchObject({
        reason: "CALL_UNSUPPORTED",
        domain: "quantum-safe-playground",
        metadata: { method: "google.cloud.kms.v1.KeyManagementService/Encrypt" },
        message: expect.stringContaining("see /reference on this server for the supported calls"),
      });
    });

    it("creates key rings once, and lists them page by page", async () => {
      const taken = await call("create_key_ring", { parent: location, key_ring_id: `ring-${transport}` });
      expect(taken.error).toMatchObject({ reason: "KEY_RING_TAKEN" });
      expect(await ask("get_key_ring", { name: ring })).toMatchObject({ name: ring });
      await ask("create_key_ring", { parent: location, key_ring_id: `other-${transport}` });
      const rings = await list("list_key_rings", { parent: location, page_size: 1 });
      expect(rings.map(({ name }) => name)).toContain(`${location}/keyRings/other-${transport}`);
      const missing = await call("get_key_ring", { name: `${location}/keyRings/none` });
      expect(missing.error).toMatchObject({ reason: "KEY_RING_NOT_FOUND" });
    });

    const signing = ["PQ_SIGN_ML_DSA_65", "PQ_SIGN_SLH_DSA_SHA2_128S"];
    it.each(signing)("signs with %s, with checksums in both directions", async (algorithm) => {
      const { version: name } = await createKey(`sign-${algorithm.toLowerCase()}`, algorithm);
      const signed = await sign(name, { data: base64(data), data_crc32c: computeCrc32c(data) });
      expect(signed).toMatchObject({
        ...{ name, verifiedDataCrc32c: true, protectionLevel: "SOFTWARE" },
        signatureCrc32c: String(computeCrc32c(unbase64(signed.signature))),
      });
      const publicKey = await readKey(name);
      expect(isSigned(publicKey, signed)).toBe(true);
      for (const [form, bytes] of [
        ["NIST_PQC", publicKey.export({ format: "raw-public" } as never) as unknown as Buffer],
        ["DER", publicKey.export({ format: "der", type: "spki" })],
      ] as const)
        expect(await ask("get_public_key", { name, public_key_format: form })).toMatchObject({
          publicKey: { data: base64(bytes), crc32cChecksum: String(computeCrc32c(bytes)) },
        });
    });

    it("signs an external mu but no data with an external-mu key", async () => {
      const { version } = await createKey("mu", "PQ_SIGN_ML_DSA_65_EXTERNAL_MU");
      const publicKey = await readKey(version);
      const raw = new Uint8Array(publicKey.export({ format: "raw-public" } as never));
      // FIPS 204, algorithm 7, line 6, with an empty context.
      const shake = (...parts: Uint8Array[]) =>
        createHash("shake256", { outputLength: 64 }).update(Buffer.concat(parts)).digest();
      const digest = { external_mu: base64(shake(shake(raw), Uint8Array.of(0, 0), data)) };
      expect(isSigned(publicKey, await sign(version, { digest }))).toBe(true);
      const { error } = await call("asymmetric_sign", { name: version, data: base64(data) });
      expect(error).toMatchObject({ reason: "FIELD_INVALID" });
    });

    it("signs a digest and data with EC_SIGN_P256_SHA256", async () => {
      const { version } = await createKey("ec", "EC_SIGN_P256_SHA256");
      const publicKey = await readKey(version);
      const digest = { sha256: base64(createHash("sha256").update(data).digest()) };
      for (const signed of [await sign(version, { digest }), await sign(version)])
        expect(isSigned(publicKey, signed, "sha256")).toBe(true);
    });

    it.each(["ML_KEM_768", "ML_KEM_1024"])("decapsulates with %s", async (algorithm) => {
      const { version: name } = await createKey(`kem-${algorithm.toLowerCase()}`, algorithm);
      const { ciphertext, sharedKey } = encapsulate(await readKey(name));
      const checksum = { ciphertext_crc32c: computeCrc32c(ciphertext) };
      const opened = await ask("decapsulate", { name, ciphertext: base64(ciphertext), ...checksum });
      expect(opened).toMatchObject({ sharedSecret: base64(sharedKey), verifiedCiphertextCrc32c: true });
    });

    it("decapsulates with KEM_XWING, whose public key has its own format", async () => {
      const { version: name } = await createKey("xwing", "KEM_XWING");
      const found = await ask("get_public_key", { name, public_key_format: "XWING_RAW_BYTES" });
      const raw = unbase64((found.publicKey as { data: string }).data);
      const { ciphertext, sharedSecret } = await withProvider((provider) =>
        provider.encapsulate(provider.importPublicKey("X-Wing", { raw })),
      );
      const opened = await ask("decapsulate", { name, ciphertext: base64(ciphertext) });
      expect(opened.sharedSecret).toBe(base64(sharedSecret));
    });

    it("adds versions, all of which sign, and lists and filters them", async () => {
      const { name: parent } = await createKey("versions", "PQ_SIGN_ML_DSA_44");
      const second = await ask("create_crypto_key_version", { parent, crypto_key_version: {} });
      expect(second).toMatchObject({ name: `${parent}/cryptoKeyVersions/2`, state: "ENABLED" });
      for (const version of [1, 2]) await sign(`${parent}/cryptoKeyVersions/${version}`);
      const listed = await list("list_crypto_key_versions", { parent, page_size: 1 });
      expect(listed.map(({ state }) => state)).toEqual(["ENABLED", "ENABLED"]);
      const filter = `state=ENABLED AND name:"cryptoKeyVersions/2"`;
      const filtered = await list("list_crypto_key_versions", { parent, filter });
      expect(filtered.map(({ name }) => name)).toEqual([second.name]);
      const keys = await list("list_crypto_keys", { parent: ring });
      expect(keys.map(({ name }) => name)).toContain(parent);
    });

    it("disables, enables, destroys and restores a version", async () => {
      const { version: name } = await createKey("life", "PQ_SIGN_ML_DSA_44");
      const refused = async (method: string, request: object = {}) =>
        expect((await call(method, { name, ...request })).error).toMatchObject({
          reason: "KEY_STATE_INVALID",
        });
      const setState = (state: string) =>
        ask("update_crypto_key_version", { crypto_key_version: { name, state }, update_mask: "state" });
      expect(await setState("DISABLED")).toMatchObject({ state: "DISABLED" });
      await refused("asymmetric_sign", { data: base64(data) });
      expect(await setState("ENABLED")).toMatchObject({ state: "ENABLED" });
      const destroyed = await ask("destroy_crypto_key_version", { name });
      expect(destroyed).toMatchObject({ state: "DESTROY_SCHEDULED", destroyTime: expect.any(String) });
      await ask("restore_crypto_key_version", { name });
      await refused("restore_crypto_key_version");
      expect(await ask("get_crypto_key_version", { name })).toMatchObject({ state: "DISABLED" });
    });

    it("updates labels, and rejects a mask with other fields", async () => {
      const { name } = await createKey("labels", "PQ_SIGN_ML_DSA_44", { labels: { team: "a" } });
      const update = { crypto_key: { name, labels: { env: "prod" } }, update_mask: "labels" };
      await ask("update_crypto_key", update);
      const other = { crypto_key: { name, labels: {} }, update_mask: "labels,versionTemplate" };
      const { error } = await call("update_crypto_key", other);
      expect(error).toMatchObject({ reason: "FIELD_INVALID", metadata: { field: "updateMask" } });
      expect(await ask("get_crypto_key", { name })).toMatchObject({ labels: { env: "prod" } });
    });

    const wrapping = ["XWING", "ML_KEM_768", "ML_KEM_1024"];
    it.each(wrapping)("imports a key wrapped with an import job's public key: %s", async (kem) => {
      const id = kem.toLowerCase();
      const method = `HPKE_KEM_${kem}_HKDF_SHA256_AES_256_GCM`;
      const wish = { import_method: method, protection_level: "SOFTWARE" };
      const request = { parent: ring, import_job_id: `job-${id}`, import_job: wish };
      const created = await ask("create_import_job", request);
      const job = await ask("get_import_job", { name: created.name });
      expect(job).toMatchObject({ state: "ACTIVE", publicKey: created.publicKey });
      const { name: parent } = await createKey(`imported-${id}`, "PQ_SIGN_ML_DSA_65");
      const { privateKey, publicKey } = generateKeyPairSync("ml-dsa-65");
      const wrapping = unbase64((job.publicKey as { data: string }).data);
      const { wrappedKey } = await wrapKeyFile(
        { publicKey: wrapping, importToken: "", algorithm: method.replace("KEM_", "") },
        privateKey.export({ format: "der", type: "pkcs8" }),
      );
      const version = await ask("import_crypto_key_version", {
        ...{ parent, algorithm: "PQ_SIGN_ML_DSA_65", import_job: job.name },
        wrapped_key: base64(wrappedKey),
      });
      expect(version).toMatchObject({ name: `${parent}/cryptoKeyVersions/2`, state: "ENABLED" });
      expect(isSigned(publicKey, await sign(String(version.name)))).toBe(true);
      const jobs = await list("list_import_jobs", { parent: ring });
      expect(jobs.map(({ name }) => name)).toContain(job.name);
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
  afterAll(() => client.end());

  it.each(transports)("sends its token over %s, and reports a missing or wrong one", async (transport) => {
    const random = { transport, method: "generate_random_bytes", request: { location, length_bytes: 8 } };
    const { token } = await server.makePerson();
    expect(await client.call({ ...random, token })).toMatchObject({ answer: { data: expect.any(String) } });
    const { withoutToken, withWrongToken } = errors[transport];
    expect(await client.call(random)).toMatchObject({ error: withoutToken });
    expect(await client.call({ ...random, token: "wrong" })).toMatchObject({ error: withWrongToken });
  });
}
