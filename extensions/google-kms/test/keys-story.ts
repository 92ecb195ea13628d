/** A key's life cycle with each Google client over gRPC and REST; node:crypto verifies the signatures. */
import { createHash, createPublicKey, encapsulate, generateKeyPairSync, verify } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { withProvider } from "../../../src/cli/keys/read-keys.ts";
import { base64, bytesOf, unbase64 } from "../../../test/support/bytes.ts";
import { type RunningServer, startServer } from "../../../test/support/start-server.ts";
import { makeTemporaryDirectory } from "../../../test/support/temporary-directory.ts";
import { wrapKeyFile } from "../../../test/support/wrap-key.ts";
import { computeCrc32c } from "../crc32c.ts";
import type { GoogleClient, GoogleOutcome, GoogleProgram } from "./programs.ts";

const location = "projects/my-project/locations/global";
const data = bytesOf("release 1.2.3");

type Answer = Readonly<Record<string, unknown>>;

/** Defines a client's tests. */
export function testGoogleKeys(program: GoogleProgram): void {
  const { name, isMissing, start } = program;
  describe.skipIf(isMissing)(`a key's life cycle with ${name}`, { timeout: 180_000 }, () => {
    let server: RunningServer;
    let client: GoogleClient;
    beforeAll(async () => {
      server = await startServer({ dataDir: makeTemporaryDirectory(afterAll) });
      client = start(server.authority);
    }, 300_000);
    afterAll(async () => {
      await client.end();
      await server.stop();
    });

    describe.each(["grpc", "rest"] as const)("over %s", (transport) => {
      const ring = `${location}/keyRings/ring-${transport}`;
      const call = (method: string, request: object): Promise<GoogleOutcome> =>
        client.call({ transport, method, request });
      const ask = async (method: string, request: object): Promise<Answer> => {
        const { answer, error } = await call(method, request);
        if (error !== undefined) throw new Error(`${method}: ${JSON.stringify(error)}`);
        return answer as Answer;
      };
      const createKey = (id: string, algorithm: string, fields: object = {}): Promise<Answer> =>
        ask("create_crypto_key", {
          parent: ring,
          crypto_key_id: id,
          crypto_key: {
            purpose: /SIGN/.test(algorithm) ? "ASYMMETRIC_SIGN" : "KEY_ENCAPSULATION",
            version_template: { algorithm },
            ...fields,
          },
        });
      const publicPem = async (name: string): Promise<string> =>
        String((await ask("get_public_key", { name, public_key_format: "PEM" })).pem);

      beforeAll(async () => {
        await ask("create_key_ring", { parent: location, key_ring_id: `ring-${transport}` });
      });

      it("creates key rings once, and lists them page by page", async () => {
        const { error } = await call("create_key_ring", {
          parent: location,
          key_ring_id: `ring-${transport}`,
        });
        expect(error).toMatchObject({ reason: "KEY_RING_TAKEN" });
        expect(await ask("get_key_ring", { name: ring })).toMatchObject({ name: ring });
        await ask("create_key_ring", { parent: location, key_ring_id: `other-${transport}` });
        const rings = (await call("list_key_rings", { parent: location, page_size: 1 })).answer as Answer[];
        expect(rings.map(({ name }) => name)).toContain(`${location}/keyRings/other-${transport}`);
        const { error: missing } = await call("get_key_ring", { name: `${location}/keyRings/none` });
        expect(missing).toMatchObject({ reason: "KEY_RING_NOT_FOUND" });
      });

      it.each(["PQ_SIGN_ML_DSA_65", "PQ_SIGN_SLH_DSA_SHA2_128S"])(
        "signs with %s, with checksums in both directions",
        async (algorithm) => {
          const id = `sign-${algorithm.toLowerCase()}`;
          const key = await createKey(id, algorithm, { labels: { team: "a" } });
          expect(key).toMatchObject({
            name: `${ring}/cryptoKeys/${id}`,
            purpose: "ASYMMETRIC_SIGN",
            labels: { team: "a" },
          });
          const name = `${key.name}/cryptoKeyVersions/1`;
          const signed = await ask("asymmetric_sign", {
            name,
            data: base64(data),
            data_crc32c: computeCrc32c(data),
          });
          const signature = unbase64(signed.signature);
          expect(signed).toMatchObject({ name, verifiedDataCrc32c: true, protectionLevel: "SOFTWARE" });
          expect(signed.signatureCrc32c).toBe(String(computeCrc32c(signature)));
          expect(verify(null, data, createPublicKey(await publicPem(name)), signature)).toBe(true);
          const raw = await ask("get_public_key", { name, public_key_format: "NIST_PQC" });
          const { data: bytes, crc32cChecksum } = raw.publicKey as { data: string; crc32cChecksum: string };
          expect(crc32cChecksum).toBe(String(computeCrc32c(unbase64(bytes))));
          const der = await ask("get_public_key", { name, public_key_format: "DER" });
          const derBytes = unbase64((der.publicKey as { data: string }).data);
          const outside = createPublicKey({ key: derBytes, format: "der", type: "spki" });
          expect(outside.export({ format: "raw-public" } as never)).toEqual(unbase64(bytes));
        },
      );

      it("is refused if the data's checksum differs", async () => {
        const { name } = await createKey("crc", "PQ_SIGN_ML_DSA_44");
        const { error } = await call("asymmetric_sign", {
          name: `${name}/cryptoKeyVersions/1`,
          data: base64(data),
          data_crc32c: 1,
        });
        expect(error).toMatchObject({ reason: "CHECKSUM_MISMATCH" });
      });

      it("signs an external mu but no data with an external-mu key", async () => {
        const { name } = await createKey("mu", "PQ_SIGN_ML_DSA_65_EXTERNAL_MU");
        const version = `${name}/cryptoKeyVersions/1`;
        const publicKey = createPublicKey(await publicPem(version));
        const raw = new Uint8Array(publicKey.export({ format: "raw-public" } as never));
        // FIPS 204, algorithm 7, line 6, with an empty context.
        const shake = (...parts: Uint8Array[]) =>
          createHash("shake256", { outputLength: 64 }).update(Buffer.concat(parts)).digest();
        const digest = { external_mu: base64(shake(shake(raw), Uint8Array.of(0, 0), data)) };
        const { signature } = await ask("asymmetric_sign", { name: version, digest });
        expect(verify(null, data, publicKey, unbase64(signature))).toBe(true);
        const { error } = await call("asymmetric_sign", { name: version, data: base64(data) });
        expect(error).toMatchObject({ reason: "FIELD_INVALID" });
      });

      it("signs a digest and data with EC_SIGN_P256_SHA256", async () => {
        const { name } = await createKey("ec", "EC_SIGN_P256_SHA256");
        const version = `${name}/cryptoKeyVersions/1`;
        const publicKey = createPublicKey(await publicPem(version));
        const digest = { sha256: base64(createHash("sha256").update(data).digest()) };
        const ofDigest = await ask("asymmetric_sign", { name: version, digest });
        const ofData = await ask("asymmetric_sign", { name: version, data: base64(data) });
        for (const { signature } of [ofDigest, ofData])
          expect(verify("sha256", data, publicKey, unbase64(signature))).toBe(true);
      });

      it.each(["ML_KEM_768", "ML_KEM_1024"])("decapsulates with %s", async (algorithm) => {
        const { name } = await createKey(`kem-${algorithm.toLowerCase()}`, algorithm);
        const version = `${name}/cryptoKeyVersions/1`;
        const { ciphertext, sharedKey } = encapsulate(await publicPem(version));
        const request = { name: version, ciphertext: base64(ciphertext) };
        const opened = await ask("decapsulate", {
          ...request,
          ciphertext_crc32c: computeCrc32c(ciphertext),
        });
        expect(unbase64(opened.sharedSecret)).toEqual(Buffer.from(sharedKey));
        expect(opened).toMatchObject({ verifiedCiphertextCrc32c: true });
      });

      it("decapsulates with KEM_XWING, whose public key has its own format", async () => {
        const { name } = await createKey("xwing", "KEM_XWING");
        const version = `${name}/cryptoKeyVersions/1`;
        const raw = await ask("get_public_key", { name: version, public_key_format: "XWING_RAW_BYTES" });
        const publicKey = unbase64((raw.publicKey as { data: string }).data);
        expect(publicKey).toHaveLength(1216);
        const { ciphertext, sharedSecret } = await withProvider((provider) =>
          provider.encapsulate(provider.importPublicKey("X-Wing", { raw: publicKey })),
        );
        const opened = await ask("decapsulate", { name: version, ciphertext: base64(ciphertext) });
        expect(opened.sharedSecret).toBe(base64(sharedSecret));
      });

      it("adds versions, all of which sign, and lists and filters them", async () => {
        const { name } = await createKey("versions", "PQ_SIGN_ML_DSA_44");
        const second = await ask("create_crypto_key_version", { parent: name, crypto_key_version: {} });
        expect(second).toMatchObject({ name: `${name}/cryptoKeyVersions/2`, state: "ENABLED" });
        for (const version of [1, 2])
          await ask("asymmetric_sign", {
            name: `${name}/cryptoKeyVersions/${version}`,
            data: base64(data),
          });
        const listed = await ask("list_crypto_key_versions", { parent: name, page_size: 1 });
        expect((listed as unknown as Answer[]).map(({ state }) => state)).toEqual(["ENABLED", "ENABLED"]);
        const filter = `state=ENABLED AND name:"cryptoKeyVersions/2"`;
        const filtered = await ask("list_crypto_key_versions", { parent: name, filter });
        expect(filtered).toMatchObject([{ name: `${name}/cryptoKeyVersions/2` }]);
        const keys = (await call("list_crypto_keys", { parent: ring })).answer as Answer[];
        expect(keys.map((key) => key.name)).toContain(name);
      });

      it("disables, enables, destroys and restores a version", async () => {
        const { name } = await createKey("life", "PQ_SIGN_ML_DSA_44");
        const version = `${name}/cryptoKeyVersions/1`;
        const setState = (state: string) =>
          ask("update_crypto_key_version", {
            crypto_key_version: { name: version, state },
            update_mask: "state",
          });
        expect(await setState("DISABLED")).toMatchObject({ state: "DISABLED" });
        const { error } = await call("asymmetric_sign", { name: version, data: base64(data) });
        expect(error).toMatchObject({ reason: "KEY_STATE_INVALID" });
        expect(await setState("ENABLED")).toMatchObject({ state: "ENABLED" });
        const destroyed = await ask("destroy_crypto_key_version", { name: version });
        expect(destroyed).toMatchObject({ state: "DESTROY_SCHEDULED", destroyTime: expect.any(String) });
        expect(await ask("restore_crypto_key_version", { name: version })).toMatchObject({
          state: "DISABLED",
        });
        const { error: twice } = await call("restore_crypto_key_version", { name: version });
        expect(twice).toMatchObject({ reason: "KEY_STATE_INVALID" });
        expect(await ask("get_crypto_key_version", { name: version })).toMatchObject({ state: "DISABLED" });
      });

      it("updates labels, and rejects a mask with other fields", async () => {
        const { name } = await createKey("labels", "PQ_SIGN_ML_DSA_44");
        const update = { crypto_key: { name, labels: { env: "prod" } }, update_mask: "labels" };
        expect(await ask("update_crypto_key", update)).toMatchObject({ labels: { env: "prod" } });
        expect(await ask("get_crypto_key", { name })).toMatchObject({ labels: { env: "prod" } });
        const other = { crypto_key: { name, labels: {} }, update_mask: "labels,versionTemplate" };
        expect((await call("update_crypto_key", other)).error).toMatchObject({
          reason: "FIELD_INVALID",
          metadata: { field: "updateMask" },
        });
        expect(await ask("get_crypto_key", { name })).toMatchObject({ labels: { env: "prod" } });
      });

      it.each(["XWING", "ML_KEM_768", "ML_KEM_1024"])(
        "imports a key wrapped with an import job's public key: %s",
        async (kem) => {
          const id = kem.toLowerCase();
          const created = await ask("create_import_job", {
            parent: ring,
            import_job_id: `job-${id}`,
            import_job: {
              import_method: `HPKE_KEM_${kem}_HKDF_SHA256_AES_256_GCM`,
              protection_level: "SOFTWARE",
            },
          });
          expect(created).toMatchObject({ state: "ACTIVE" });
          const job = await ask("get_import_job", { name: created.name });
          expect(job.publicKey).toEqual(created.publicKey);
          const { name } = await createKey(`imported-${id}`, "PQ_SIGN_ML_DSA_65");
          const { privateKey, publicKey } = generateKeyPairSync("ml-dsa-65");
          const parameters = {
            publicKey: unbase64((job.publicKey as { data: string }).data),
            importToken: "",
            algorithm: `HPKE_${kem}_HKDF_SHA256_AES_256_GCM`,
          };
          const file = privateKey.export({ format: "der", type: "pkcs8" });
          const { wrappedKey } = await wrapKeyFile(parameters, file);
          const version = await ask("import_crypto_key_version", {
            parent: name,
            algorithm: "PQ_SIGN_ML_DSA_65",
            import_job: job.name,
            wrapped_key: base64(wrappedKey),
          });
          expect(version).toMatchObject({ name: `${name}/cryptoKeyVersions/2`, state: "ENABLED" });
          const { signature } = await ask("asymmetric_sign", { name: version.name, data: base64(data) });
          expect(verify(null, data, publicKey, unbase64(signature))).toBe(true);
          const jobs = (await call("list_import_jobs", { parent: ring })).answer as Answer[];
          expect(jobs.map((one) => one.name)).toContain(job.name);
        },
      );

      it("uses the same keys as the key service", async () => {
        const { name } = await createKey("shared", "PQ_SIGN_ML_DSA_65");
        const response = await fetch(`${server.url}/api/kms/sign`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ keyId: `name/${name}`, data: base64(data) }),
        });
        const { result } = (await response.json()) as { result: { signature: string } };
        const publicKey = createPublicKey(await publicPem(`${name}/cryptoKeyVersions/1`));
        expect(verify(null, data, publicKey, unbase64(result.signature))).toBe(true);
      });

      // Over REST, no path matches this name. Two of the libraries notice it themselves.
      it("is refused a malformed name", async () => {
        const { error } = await call("get_crypto_key", { name: "nonsense" });
        expect(error).toBeDefined();
        expect(["FIELD_INVALID", "ROUTE_NOT_FOUND", undefined]).toContain(error?.reason);
      });
    });
  });
}
