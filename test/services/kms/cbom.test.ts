/** KmsService.GetCbom: a cryptography bill of materials in CycloneDX 1.7, checked with its official schema. */
import { createHash, X509Certificate } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Ajv from "ajv";
import addFormats from "ajv-formats";
import { describe, expect, it } from "vitest";
import { type Algorithm, algorithms, compositeHalves } from "../../../src/crypto/algorithms.ts";
import { createAuthority, issueServerCertificate, openAuthority } from "../../../src/crypto/x509.ts";
import { packageFolder } from "../../../src/program-files.ts";
import { systemPrincipal } from "../../../src/records/ownership.ts";
import { type CbomDeps, writeCbom } from "../../../src/services/kms/cbom.ts";
import type { StoredKey } from "../../../src/services/kms/store.ts";
import { makeTemporaryDirectory } from "../../support/temporary-directory.ts";
import { present } from "../answers.ts";
import { createKey, describeKms, type KmsClient, withKey } from "./kms-server.ts";

type Properties = Readonly<Record<string, unknown>>;

interface Component {
  readonly "bom-ref": string;
  readonly name: string;
  readonly cryptoProperties: {
    readonly assetType: string;
    readonly oid?: string;
    readonly algorithmProperties?: Properties;
    readonly relatedCryptoMaterialProperties?: Properties;
  };
  readonly properties?: readonly { readonly name: string; readonly value: string }[];
}

interface Cbom {
  readonly serialNumber: string;
  readonly metadata: { readonly timestamp: string; readonly component: Component };
  readonly components: readonly Component[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
}

const schemas = join(packageFolder, "node_modules/@cyclonedx/cyclonedx-library/res/schema");

/** Compiles the official schema, which the package of the CycloneDX project contains. */
function compileSchema() {
  const ajv = new Ajv.default({ strict: false, formats: { "iri-reference": true, "idn-email": true } });
  addFormats.default(ajv);
  const read = (name: string) =>
    JSON.parse(readFileSync(join(schemas, `${name}.SNAPSHOT.schema.json`), "utf8"));
  for (const name of ["spdx", "jsf-0.82", "cryptography-defs"])
    ajv.addSchema(read(name), `http://cyclonedx.org/schema/${name}.SNAPSHOT.schema.json`);
  return ajv.compile(read("bom-1.7"));
}

const validate = compileSchema();

/** Checks a document with the schema, and that each reference names one component. */
function readCbom(text: string): Cbom {
  const cbom = JSON.parse(text);
  validate(cbom);
  expect(validate.errors ?? []).toEqual([]);
  const { components, dependencies, metadata }: Cbom = cbom;
  const refs = [metadata.component, ...components].map((component) => component["bom-ref"]);
  expect(refs).toHaveLength(new Set(refs).size);
  const named = [...JSON.stringify(cbom).matchAll(/"(?:ref|algorithmRef)":"([^"]+)"/g)].map(([, ref]) => ref);
  expect(refs).toEqual(
    expect.arrayContaining([...named, ...dependencies.flatMap(({ dependsOn }) => dependsOn)]),
  );
  return cbom;
}

async function getCbom(kms: KmsClient): Promise<Cbom> {
  const parts: Uint8Array[] = [];
  for await (const { cbom } of kms.getCbom({})) parts.push(present(cbom).data);
  return readCbom(Buffer.concat(parts).toString());
}

function findComponent({ components }: Cbom, ref: string): Component {
  return present(components.find((component) => component["bom-ref"] === ref));
}

describeKms("KmsService.GetCbom", ({ start }) => {
  it("describes a key, its state and creation, what protects it, and its algorithm", async () => {
    const { kms, keyId } = await withKey(start({ now: () => new Date("2030-01-02T03:04:05Z") }), {
      name: "team/release",
    });
    const cbom = await getCbom(kms);
    expect(findComponent(cbom, "algorithm/ML-DSA-44")).toMatchObject({
      name: "ML-DSA-44",
      cryptoProperties: {
        assetType: "algorithm",
        algorithmProperties: {
          ...{ primitive: "signature", algorithmFamily: "ML-DSA", parameterSetIdentifier: "44" },
          cryptoFunctions: ["keygen", "sign", "verify"],
          nistQuantumSecurityLevel: 2,
        },
        oid: "2.16.840.1.101.3.4.3.17",
      },
      properties: [{ name: "qsp:standard", value: "FIPS 204" }],
    });
    expect(findComponent(cbom, keyId)).toMatchObject({
      name: "team/release/1",
      cryptoProperties: {
        assetType: "related-crypto-material",
        relatedCryptoMaterialProperties: {
          ...{ type: "private-key", id: keyId, state: "active", creationDate: "2030-01-02T03:04:05.000Z" },
          size: 2560 * 8,
          securedBy: { mechanism: "Software", algorithmRef: "algorithm/AES-256-GCM" },
          relatedCryptographicAssets: [{ type: "algorithm", ref: "algorithm/ML-DSA-44" }],
        },
      },
      properties: [
        { name: "qsp:usage", value: "SIGN" },
        { name: "qsp:status", value: "ACTIVE" },
        { name: "qsp:origin", value: "GENERATED" },
      ],
    });
  });

  it.each<[string, string, (kms: KmsClient, keyId: string) => Promise<unknown>]>([
    ["ROTATED", "deactivated", (kms, keyId) => kms.rotateKey({ keyId })],
    ["DISABLED", "suspended", (kms, keyId) => kms.disableKey({ keyId })],
    ["DESTROY_SCHEDULED", "suspended", (kms, keyId) => kms.destroyKey({ keyId, afterSeconds: 60 })],
    ["DESTROYED", "destroyed", (kms, keyId) => kms.destroyKey({ keyId })],
  ])("shows a %s key as %s", async (status, state, change) => {
    const { kms, keyId } = await withKey(start());
    await change(kms, keyId);
    const { cryptoProperties, properties } = findComponent(await getCbom(kms), keyId);
    const material = present(cryptoProperties.relatedCryptoMaterialProperties);
    expect(material).toMatchObject({ state });
    expect(properties).toContainEqual({ name: "qsp:status", value: status });
    expect("securedBy" in material).toBe(state !== "destroyed");
  });

  it("is the same over REST, as one document, except for its serial number and timestamp", async () => {
    const { kms, url } = await start();
    await createKey(kms);
    const first = await getCbom(kms);
    const response = await fetch(`${url}/api/kms/cbom`);
    expect(response.headers.get("content-type")).toBe("application/vnd.cyclonedx+json; version=1.7");
    const second = readCbom(await response.text());
    const { serialNumber, metadata } = second;
    expect(serialNumber).not.toBe(first.serialNumber);
    const { timestamp } = metadata;
    expect(second).toEqual({ ...first, serialNumber, metadata: { ...first.metadata, timestamp } });
  });

  it("shows only the ID of a damaged key", async () => {
    const { kms, tamper, keyId } = await withKey(start());
    await tamper((db) => db.updateTable("kms_keys").set({ alias: "mine" }).execute());
    const cbom = await getCbom(kms);
    expect(findComponent(cbom, keyId)).toMatchObject({
      name: keyId,
      cryptoProperties: { relatedCryptoMaterialProperties: { type: "private-key", id: keyId } },
      properties: [{ name: "qsp:damaged", value: "true" }],
    });
    expect(cbom.dependencies).toContainEqual({ ref: keyId, dependsOn: [] });
  });
});

/** Writes a document of keys that a list returns, without a server. */
async function writeWith(deps: Partial<CbomDeps>): Promise<{ text: string; parts: number[] }> {
  const parts: Uint8Array[] = [];
  const keys = { list: async () => ({ rows: [], nextPageToken: "" }) };
  const all = { keys, certificateFiles: [], now: () => new Date(0), ...deps };
  for await (const { data } of writeCbom(all, systemPrincipal)) parts.push(data);
  return { text: Buffer.concat(parts).toString(), parts: parts.map(({ length }) => length) };
}

function makeKey(position: number, algorithm: Algorithm): StoredKey {
  return {
    record: {
      ...{ keyId: `key-${position}`, alias: "a".repeat(255), algorithm, usage: "SIGN", state: "ACTIVE" },
      ...{ createdAt: new Date(0), publicKey: new Uint8Array(), owner: "ada", labels: {}, isPrimary: false },
      ...{ name: undefined, version: undefined, destroyAt: undefined, isImported: false },
      ...{ replacedBy: undefined, draft: undefined },
    },
    ...{ isIntact: true, tag: "", loggedState: "ACTIVE", row: { position } },
  };
}

/** A list of keys that gets longer each time it is read from its start. */
function createGrowingList(size: number): CbomDeps["keys"] {
  let length = size;
  return {
    async list({ after, limit }) {
      if (after === 0) length += 1;
      const last = Math.min(length, after + limit);
      const rows = Array.from({ length: last - after }, (_, i) => makeKey(after + i + 1, "ML-DSA-44"));
      return { rows, nextPageToken: after + rows.length < length ? "more" : "" };
    },
  };
}

describe("writeCbom", () => {
  it("writes a long list of keys in parts of limited size, and no dependency of a key without a component", async () => {
    const { text, parts } = await writeWith({ keys: createGrowingList(449) });
    expect(readCbom(text).dependencies.filter(({ ref }) => ref.startsWith("key-"))).toHaveLength(450);
    expect(Math.max(...parts)).toBeLessThan(256 * 1024);
  });

  it("describes every algorithm of keys with its NIST level, 0 for classical ones, and the halves of hybrids", async () => {
    const rows = Object.values(algorithms).map(({ name }, i) => makeKey(i + 1, name));
    const { text } = await writeWith({ keys: { list: async () => ({ rows, nextPageToken: "" }) } });
    const { components, dependencies } = readCbom(text);
    const levels: Record<string, unknown> = {};
    for (const { name, cryptoProperties } of components) {
      const { algorithmProperties, oid } = cryptoProperties;
      if (algorithmProperties) levels[name] = [algorithmProperties.nistQuantumSecurityLevel, oid];
    }
    expect(levels).toEqual({
      "AES-256-GCM": [5, "2.16.840.1.101.3.4.1.46"],
      ...Object.fromEntries(
        Object.values(algorithms).map(({ name, nistLevel = 0, oid }) => [name, [nistLevel, oid]]),
      ),
      Ed25519: [0, "1.3.101.112"],
      "ECDSA-P384": [0, "1.2.840.10045.2.1"],
      X25519: [0, "1.3.101.110"],
    });
    const expected = [
      ...rows.map(({ record }) => [record.keyId, record.algorithm]),
      ...Object.entries(compositeHalves).map(([name, half]) => [
        `algorithm/${name}`,
        half.mlDsa,
        half.classical,
      ]),
      ["algorithm/X-Wing", "ML-KEM-768", "X25519"],
    ];
    for (const [ref, ...names] of expected)
      expect(dependencies).toContainEqual({ ref, dependsOn: names.map((name) => `algorithm/${name}`) });
  });

  it("describes each server certificate once, with its algorithms and their NIST levels", async () => {
    const now = new Date("2030-01-02T03:04:05Z");
    const chains = (["ECDSA-P256", "ML-DSA-65"] as const).map((algorithm) => {
      const authority = openAuthority(createAuthority(algorithm, now));
      const { certificatePem } = issueServerCertificate(authority, { names: ["localhost"], days: 2, now });
      return certificatePem + authority.certificate;
    });
    const directory = makeTemporaryDirectory();
    const certificateFiles = [...chains, chains[0] ?? ""].map((chain, i) => {
      const path = join(directory, `${i}.crt`);
      writeFileSync(path, chain);
      return path;
    });
    const cbom = readCbom((await writeWith({ certificateFiles })).text);
    const isCertificate = ({ cryptoProperties }: Component) => cryptoProperties.assetType === "certificate";
    expect(cbom.components.filter(isCertificate)).toHaveLength(4);
    const { raw, serialNumber } = new X509Certificate(chains[1] ?? "");
    const fingerprint = createHash("sha256").update(raw).digest("hex");
    const subjectName = "CN=localhost";
    const certificateProperties = {
      ...{ serialNumber, subjectName, certificateFormat: "X.509" },
      fingerprint: { alg: "SHA-256", content: fingerprint },
    };
    expect(findComponent(cbom, `certificate/${fingerprint}`)).toMatchObject({
      ...{ name: subjectName, cryptoProperties: { certificateProperties } },
    });
    const level = (name: string) =>
      findComponent(cbom, `algorithm/${name}`).cryptoProperties.algorithmProperties?.nistQuantumSecurityLevel;
    expect(["ECDSA-P256", "ecdsa-with-SHA256", "ML-DSA-65"].map(level)).toEqual([0, 0, 3]);
  });
});
