/** `qsp kms public-keys` and `cbom`: what verifiers and auditors need to know about keys. */

import { create, toJson } from "@bufbuild/protobuf";
import type { KeyRecord } from "#gen/kms/key_pb.ts";
import {
  type ExportPublicKeysResponse,
  ExportPublicKeysResponseSchema,
  KmsService,
} from "#gen/kms/kms_service_pb.ts";
import { JwkSchema } from "#gen/pqc/jwk_pb.ts";
import { isSignatureAlgorithm } from "../../../crypto/algorithms.ts";
import { answerVerb } from "../../call-verbs.ts";
import { outputFile } from "../../command-line/options.ts";
import { type ApiClient, askPages, oneOf } from "../../connection/api-client.ts";
import { CliError, exitCodes, usageError } from "../../exit-codes.ts";
import { serverKeyAlgorithms } from "../../keys/read-keys.ts";
import { bytes, counted, table } from "../../output/output.ts";
import { declareVerb, type Verb, type VerbInput } from "../../verb.ts";
import { describeAlgorithm, nameVersion } from "./describe.ts";

const { method } = KmsService;

const filters = ["name", "label", "algorithm"] as const;

/** Bounds what any server may send as a CBOM: more than a million keys have. */
const maxBytes = 1024 ** 3;

export const kmsExportVerbs: readonly Verb[] = [
  answerVerb(method.exportPublicKeys.output, exportKeys, {
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
    writes: {
      pem: ({ pem }) => pem,
      jwks: ({ keys }) =>
        `${JSON.stringify({ keys: keys.map((key) => toJson(JwkSchema, key)) }, undefined, 2)}\n`,
    },
    say({ exported, keys }, _, { pem, jwks }) {
      const written = [
        ...(pem === undefined ? [] : [`${pem}: ${counted(exported.length, "key")}`]),
        ...(jwks === undefined ? [] : [`${jwks}: ${counted(keys.length, "key")}`]),
      ];
      if (written.length > 0) return written.join("\n");
      if (exported.length === 0) return "There are no keys.";
      const rows = exported.map((key) => [key.keyId, describeAlgorithm(key), key.status, nameVersion(key)]);
      return table(["KEY", "ALGORITHM", "STATUS", "NAME"], rows);
    },
  }),
  declareVerb({
    line: "kms cbom",
    options: {
      out: { ...outputFile("File for the document; default: standard output"), defaultPath: () => "-" },
    },
    meaning:
      "Describes your keys, their algorithms and the server's certificates as a cryptography bill of materials (CBOM):\n" +
      "CycloneDX 1.7, always in JSON.",
    example: "qsp kms cbom --out keys.cdx.json",
    async run({ files, output, server }) {
      const read = { bytes: 0 };
      const parts = server.stream(method.getCbom, oneOf({}));
      const file = await files.writeChunks("out", dataOf(parts, read));
      if (!files.areOnStandardOutput)
        output.report({ file, bytes: read.bytes }, `${file}: ${bytes(read.bytes)}`);
    },
  }),
];

async function exportKeys({ operands: [reference], options, server }: VerbInput) {
  const filter = Object.fromEntries(filters.map((field) => [field, options.text(field) ?? ""]));
  const used = filters.find((field) => options.flag(field));
  if (reference !== undefined && used !== undefined)
    throw usageError(`use either KEY or --${used}: KEY already selects a key, or all versions of a name`);
  if (reference !== undefined) return askKey(server, reference);
  const pages = await askPages((pageToken) => server.ask(method.exportPublicKeys, { ...filter, pageToken }));
  const exported = pages.flatMap((page) => page.exported);
  // With an empty key set, a misspelled name would make every signature invalid. An unknown name has no key.
  if (exported.length === 0 && filter.name) await server.ask(method.getKey, { keyId: `name/${filter.name}` });
  return Object.assign(pages[0], {
    exported,
    keys: pages.flatMap(({ keys }) => keys),
    pem: pages.map(({ pem }) => pem).join(""),
    nextPageToken: "",
  });
}

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

/** @param read counts the bytes */
async function* dataOf(
  parts: AsyncIterable<{ readonly cbom?: { readonly data: Uint8Array } | undefined }>,
  read: { bytes: number },
) {
  for await (const { cbom } of parts) {
    read.bytes += cbom?.data.length ?? 0;
    if (read.bytes > maxBytes)
      throw new CliError(exitCodes.unreachable, `the server sent more than ${maxBytes} bytes`);
    if (cbom !== undefined) yield cbom.data;
  }
}
