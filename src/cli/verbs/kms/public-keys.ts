/** `qsp kms public-keys`: exports public keys for verifiers. */

import { create, toJson } from "@bufbuild/protobuf";
import type { KeyRecord } from "#gen/kms/key_pb.ts";
import {
  type ExportPublicKeysResponse,
  ExportPublicKeysResponseSchema,
  KmsService,
} from "#gen/kms/kms_service_pb.ts";
import { JwkSchema } from "#gen/pqc/jwk_pb.ts";
import { isSignatureAlgorithm } from "../../../crypto/algorithms.ts";
import { outputFile } from "../../command-line/options.ts";
import { type ApiClient, askPages } from "../../connection/api-client.ts";
import { exitCodes, usageError } from "../../exit-codes.ts";
import { serverKeyAlgorithms } from "../../keys/read-keys.ts";
import { counted, table } from "../../output/output.ts";
import { declareVerb, type Verb } from "../../verb.ts";
import { describeAlgorithm, nameVersion } from "./describe.ts";

const { method } = KmsService;

const filters = ["name", "label", "algorithm"] as const;

export const kmsPublicKeyVerbs: readonly Verb[] = [
  declareVerb({
    line: "kms public-keys [KEY]",
    options: {
      name: { value: "NAME", meaning: "Only versions of this name" },
      label: { value: "K=V", meaning: "Only keys with this label" },
      algorithm: {
        value: "NAME",
        meaning: "Only keys with this algorithm",
        offers: serverKeyAlgorithms.filter(isSignatureAlgorithm),
      },
      pem: outputFile("File for all keys in PEM, one after another"),
      jwks: outputFile("File for the JSON Web Key Set (RFC 7517) with the ML-DSA keys"),
    },
    meaning:
      "Lists the public keys that can verify signatures, for all keys or for one key or name, and writes them to files.",
    example: "qsp kms public-keys --pem keys.pem --jwks keys.json",
    async run({ operands: [reference], files, options, output, server }) {
      const filter = Object.fromEntries(filters.map((field) => [field, options.text(field) ?? ""]));
      const used = filters.find((field) => options.flag(field));
      if (reference !== undefined && used !== undefined)
        throw usageError(`use either KEY or --${used}: KEY already selects a key, or all versions of a name`);
      const ask = (pageToken: string) => server.ask(method.exportPublicKeys, { ...filter, pageToken });
      const answer = reference === undefined ? await askAll(ask) : await askKey(server, reference);
      if (answer.exported.length === 0) await requireName(server, filter.name ?? "");
      const [pem, jwks] = [files.write("pem", answer.pem), files.write("jwks", renderKeySet(answer))];
      output.answer(method.exportPublicKeys.output, answer, () =>
        pem === undefined && jwks === undefined ? describe(answer) : describeFiles(answer, pem, jwks),
      );
      return exitCodes.done;
    },
  }),
];

/**
 * Fetches the public key of one key, or of all versions of a name that can verify, in the form of ExportPublicKeys,
 * which covers only the caller's own keys.
 *
 * @throws CliError for a key that cannot verify
 */
async function askKey(server: ApiClient, reference: string): Promise<ExportPublicKeysResponse> {
  const { result, versions } = await server.ask(method.getKey, { keyId: reference });
  const found: KeyRecord[] = [];
  for (const { keyId } of versions.filter(canVerify)) {
    const version = await server.ask(method.getKey, { keyId });
    if (version.result !== undefined) found.push(version.result);
  }
  if (versions.length === 0 && result !== undefined && canVerify(result)) found.push(result);
  if (found.length === 0)
    throw usageError(
      `${reference} has no public key that verifies signatures: its status is ${result?.status} and its usage ${result?.usage}`,
    );
  return create(ExportPublicKeysResponseSchema, {
    status: "success",
    keys: found.flatMap(({ publicJwk }) => publicJwk ?? []),
    pem: found.map(({ publicKeyPem = "" }) => publicKeyPem).join(""),
    exported: found.map(
      ({ keyId, name = "", version = 0, algorithm, status, publicKeyPem = "", publicJwk, draft }) => ({
        $typeName: "kms.ExportedKey" as const,
        ...{ keyId, name, version, algorithm, status, publicKeyPem },
        kid: publicJwk?.kid ?? "",
        ...(draft !== undefined && { draft }),
      }),
    ),
    totalSize: found.length,
  });
}

function canVerify({ status, usage }: KeyRecord): boolean {
  return usage === "SIGN" && ["ACTIVE", "ROTATED"].includes(status);
}

/**
 * Requires that a name has a key. With an empty key set, a misspelled name would make every signature invalid.
 *
 * @throws ConnectError NOT_FOUND, KEY_NOT_FOUND for an unknown name
 */
async function requireName(server: ApiClient, name: string): Promise<void> {
  if (name !== "") await server.ask(method.getKey, { keyId: `name/${name}` });
}

/** Fetches all pages. An answer has three lists, in the same order. */
async function askAll(
  ask: (pageToken: string) => Promise<ExportPublicKeysResponse>,
): Promise<ExportPublicKeysResponse> {
  const pages = await askPages(ask);
  return Object.assign(pages[0], {
    exported: pages.flatMap(({ exported }) => exported),
    keys: pages.flatMap(({ keys }) => keys),
    pem: pages.map(({ pem }) => pem).join(""),
    nextPageToken: "",
  });
}

function renderKeySet({ keys }: ExportPublicKeysResponse): string {
  return `${JSON.stringify({ keys: keys.map((key) => toJson(JwkSchema, key)) }, undefined, 2)}\n`;
}

function describe({ exported }: ExportPublicKeysResponse): string {
  if (exported.length === 0) return "There are no keys.";
  const rows = exported.map((key) => [key.keyId, describeAlgorithm(key), key.status, nameVersion(key)]);
  return table(["KEY", "ALGORITHM", "STATUS", "NAME"], rows);
}

function describeFiles(
  { exported, keys }: ExportPublicKeysResponse,
  pem: string | undefined,
  jwks: string | undefined,
): string {
  return [
    ...(pem === undefined ? [] : [`${pem}: ${counted(exported.length, "key")}`]),
    ...(jwks === undefined ? [] : [`${jwks}: ${counted(keys.length, "key")}`]),
  ].join("\n");
}
