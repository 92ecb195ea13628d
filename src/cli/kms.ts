/** `qsp kms create`, `list` and `get`. */
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { exitCodes } from "./exit-codes.ts";
import { chosenAlias, describeKey, describeVersions, markVersion } from "./kms-describe.ts";
import { newKeyOptions, readNewKey } from "./kms-new-key.ts";
import { time } from "./output.ts";
import { keyAlgorithms } from "./pem-keys.ts";
import { printList } from "./print-list.ts";
import type { Verb } from "./verb.ts";

const { method } = KmsService;

const usages = ["SIGN", "KEM"] as const;

export const kmsVerbs: readonly Verb[] = [
  {
    name: "kms create",
    operands: ["[ALIAS]"],
    options: {
      algorithm: {
        value: "NAME",
        meaning: "A parameter set of ML-DSA, ML-KEM or SLH-DSA, or X-Wing; default: ML-DSA-65",
        offers: keyAlgorithms,
      },
      usage: { value: "USAGE", meaning: "SIGN or KEM; default: that of the algorithm", offers: usages },
      ...newKeyOptions,
    },
    meaning: "Creates a key. The server stores it.",
    example: "qsp kms create invoices --algorithm ML-DSA-87",
    async run({ operands: [alias = ""], options, output, server }) {
      const answer = await server.ask(method.createKey, {
        alias,
        algorithm: options.text("algorithm") ?? "",
        usage: options.text("usage") ?? "",
        ...readNewKey(options),
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
        offers: ["ACTIVE", "ROTATED", "DISABLED", "DESTROY_SCHEDULED", "DESTROYED"],
      },
      algorithm: { value: "NAME", meaning: "Only keys of this algorithm", offers: keyAlgorithms },
      usage: { value: "USAGE", meaning: "Only keys of this usage: SIGN or KEM", offers: usages },
      name: { value: "NAME", meaning: "Only versions of this name" },
      label: { value: "K=V", meaning: "Only keys with this label" },
    },
    meaning: "Lists keys in the order of their creation. A star marks the primary version of a name.",
    example: "qsp kms list --status ACTIVE",
    async run({ options, output, server }) {
      const filter = Object.fromEntries(
        ["status", "algorithm", "usage", "name", "label"].map((field) => [field, options.text(field) ?? ""]),
      );
      return printList(output, method.listKeys.output, {
        ask: (pageToken) => server.ask(method.listKeys, { ...filter, pageToken }),
        itemsOf: ({ keys }) => keys,
        none: "There are no keys.",
        headers: ["KEY", "ALGORITHM", "STATUS", "CREATED", "NAME", "ALIAS"],
        toCells: (key) => [
          ...[key.keyId, key.algorithm, key.status, time(key.createdAt)],
          ...[markVersion(key), chosenAlias(key)],
        ],
      });
    },
  },
  {
    name: "kms get",
    operands: ["KEY"],
    options: {
      "public-key": { value: "FILE", meaning: "File for the public key (PEM)", file: "writes" },
    },
    meaning:
      "Describes a key: its ID, name/NAME with all versions of the name, name/NAME/VERSION, or user/USER/name/NAME.\n" +
      "Every verb that takes a KEY takes these forms.",
    example: 'qsp kms get "$KEY" --public-key invoices.pub',
    async run({ operands: [keyId = ""], files, output, server }) {
      const answer = await server.ask(method.getKey, { keyId });
      files.write("public-key", answer.result?.publicKeyPem ?? "");
      const { result, versions } = answer;
      output.answer(method.getKey.output, answer, () =>
        [describeKey(result), ...(versions.length > 0 ? ["", describeVersions(versions)] : [])].join("\n"),
      );
      return exitCodes.done;
    },
  },
];
