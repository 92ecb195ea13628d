/** `qsp kms`: manages keys. */
import type { KeyRecord } from "#gen/kms/key_pb.ts";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { askPages } from "./client.ts";
import { exitCodes, usageError } from "./exit-codes.ts";
import { writeFile } from "./files.ts";
import { facts, listing, time, unlessDamaged } from "./output.ts";
import { keyAlgorithms } from "./pem-keys.ts";
import type { Verb } from "./verb.ts";

const { method } = KmsService;

export const kmsVerbs: readonly Verb[] = [
  {
    name: "kms create",
    operands: ["[ALIAS]"],
    options: {
      algorithm: {
        value: "NAME",
        meaning: "A parameter set of ML-DSA, ML-KEM or SLH-DSA; default: ML-DSA-65",
        offers: keyAlgorithms,
      },
    },
    meaning: "Creates a key. The server stores it.",
    example: "qsp kms create invoices --algorithm ML-DSA-87",
    async run({ operands: [alias = ""], options, output, server }) {
      const answer = await server.ask(method.createKey, {
        alias,
        algorithm: options.text("algorithm") ?? "",
      });
      output.answer(method.createKey.output, answer, () => describeKey(answer.result));
      return exitCodes.done;
    },
  },
  {
    name: "kms list",
    operands: [],
    options: {
      status: {
        value: "STATUS",
        meaning: "Only keys of this status",
        offers: ["ACTIVE", "ROTATED", "DESTROYED"],
      },
      algorithm: { value: "NAME", meaning: "Only keys of this algorithm", offers: keyAlgorithms },
    },
    meaning: "Lists keys in the order of their creation.",
    example: "qsp kms list --status ACTIVE",
    async run({ options, output, server }) {
      const filter = { status: options.text("status") ?? "", algorithm: options.text("algorithm") ?? "" };
      const answer = await askPages(
        (pageToken) => server.ask(method.listKeys, { ...filter, pageToken }),
        ({ keys }) => keys,
      );
      output.answer(method.listKeys.output, answer, () =>
        listing(
          "There are no keys.",
          ["KEY", "ALGORITHM", "STATUS", "CREATED", "ALIAS"],
          answer.keys,
          (key) => [key.keyId, key.algorithm, key.status, time(key.createdAt), unlessDamaged(key, key.alias)],
        ),
      );
      return exitCodes.done;
    },
  },
  {
    name: "kms get",
    operands: ["KEY-ID"],
    options: {
      "public-key": { value: "FILE", meaning: "File for the public key (PEM)", offers: "files" },
    },
    meaning: "Describes a key.",
    example: 'qsp kms get "$KEY" --public-key invoices.pub',
    async run({ operands: [keyId = ""], options, output, server }) {
      const answer = await server.ask(method.getKey, { keyId });
      const file = options.text("public-key");
      if (file !== undefined) writeFile(file, answer.result?.publicKeyPem ?? "", 0o644);
      output.answer(method.getKey.output, answer, () => describeKey(answer.result));
      return exitCodes.done;
    },
  },
  {
    name: "kms rotate",
    operands: ["KEY-ID"],
    options: {},
    meaning: "Replaces a key with a new one. The old key then only verifies and decapsulates.",
    example: 'qsp kms rotate "$KEY"',
    async run({ operands: [keyId = ""], output, server }) {
      const answer = await server.ask(method.rotateKey, { keyId });
      output.answer(method.rotateKey.output, answer, () => describeKey(answer.newKey));
      return exitCodes.done;
    },
  },
  {
    name: "kms destroy",
    operands: ["KEY-ID"],
    options: { yes: { meaning: "Required: nothing restores the secret key" } },
    meaning: "Erases the secret key permanently.",
    example: 'qsp kms destroy "$KEY" --yes',
    async run({ operands: [keyId = ""], options, output, server }) {
      if (!options.flag("yes"))
        throw usageError(`--yes is missing: nothing restores the secret key of ${keyId}`);
      const answer = await server.ask(method.destroyKey, { keyId });
      output.answer(method.destroyKey.output, answer, () => `${answer.keyId} is ${answer.newStatus}.`);
      return exitCodes.done;
    },
  },
];

function describeKey(key: KeyRecord | undefined): string {
  return facts({
    key: key?.keyId,
    alias: key?.alias === key?.keyId ? undefined : key?.alias,
    algorithm: key?.algorithm,
    usage: key?.usage,
    status: key?.status,
    "replaced by": key?.replacedBy,
    created: time(key?.createdAt),
  });
}
