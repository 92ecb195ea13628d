/** `qsp kms create` and `import`, `list` and `get`, and the verbs that change a key's state. */

import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { listAccepted } from "../../../calls/accepted-values.ts";
import { listVerb, unaryVerb } from "../../call-verbs.ts";
import { outputFile } from "../../command-line/options.ts";
import { readSeconds } from "../../command-line/time-options.ts";
import { usageError } from "../../exit-codes.ts";
import { readKeyFile } from "../../keys/importable-key.ts";
import { serverKeyAlgorithms } from "../../keys/read-keys.ts";
import { time } from "../../output/output.ts";
import type { Verb, VerbInput } from "../../verb.ts";
import { chosenAlias, describeAlgorithm, describeKey, describeVersions, markVersion } from "./describe.ts";
import { createImportVerb, createVerb, usages } from "./new-key.ts";

const { method } = KmsService;

const askKey = ({ operands: [keyId = ""] }: VerbInput) => ({ keyId });

export const kmsVerbs: readonly Verb[] = [
  createVerb,
  listVerb(method.listKeys, {
    line: "kms list",
    options: {
      status: {
        value: "STATUS",
        meaning: "Only keys with this status",
        offers: listAccepted(method.listKeys.input.field.status),
      },
      algorithm: { value: "NAME", meaning: "Only keys with this algorithm", offers: serverKeyAlgorithms },
      usage: { value: "USAGE", meaning: "Only keys with this usage: SIGN, KEM or ENCRYPT", offers: usages },
      name: { value: "NAME", meaning: "Only versions of this name" },
      label: { value: "K=V", meaning: "Only keys with this label" },
    },
    meaning: "Lists keys in creation order. A star marks the primary version of a name.",
    example: "qsp kms list --status ACTIVE",
    ask: ({ options }) =>
      Object.fromEntries(
        ["status", "algorithm", "usage", "name", "label"].map((field) => [field, options.text(field) ?? ""]),
      ),
    items: ({ keys }) => keys,
    none: "There are no keys.",
    columns: {
      KEY: "keyId",
      ALGORITHM: describeAlgorithm,
      STATUS: "status",
      CREATED: "createdAt",
      NAME: markVersion,
      ALIAS: chosenAlias,
    },
  }),
  unaryVerb(method.getKey, {
    line: "kms get KEY",
    options: { "public-key": outputFile("File for the public key (PEM)") },
    meaning:
      "Describes a key. KEY is an ID, name/NAME (with all versions of the name), name/NAME/VERSION, or user/USER/name/NAME.\n" +
      "Every verb with a KEY operand accepts these forms.",
    example: 'qsp kms get "$KEY" --public-key invoices.pub',
    ask: askKey,
    writes: { "public-key": ({ result }) => result?.publicKeyPem ?? "" },
    say: ({ result, versions }) =>
      [describeKey(result), ...(versions.length > 0 ? ["", describeVersions(versions)] : [])].join("\n"),
  }),
  unaryVerb(method.rotateKey, {
    line: "kms rotate KEY",
    meaning: "Replaces a key with a new one. From then on, the old key only verifies and decapsulates.",
    example: 'qsp kms rotate "$KEY"',
    ask: askKey,
    say: ({ newKey }) => describeKey(newKey),
  }),
  unaryVerb(method.disableKey, {
    line: "kms disable KEY",
    meaning: "Disables a key. It performs no operations until qsp kms enable.",
    example: 'qsp kms disable "$KEY"',
    ask: askKey,
    say: ({ result }) => describeKey(result),
  }),
  unaryVerb(method.enableKey, {
    line: "kms enable KEY",
    meaning: "Enables a disabled key. A key that was rotated becomes ROTATED again.",
    example: 'qsp kms enable "$DISABLED_KEY"',
    ask: askKey,
    say: ({ result }) => describeKey(result),
  }),
  unaryVerb(method.destroyKey, {
    line: "kms destroy KEY",
    options: {
      after: {
        value: "DURATION",
        meaning:
          "Time to wait, such as 30d; at most 120d; qsp kms restore cancels the destruction in the meantime",
      },
      yes: { meaning: "Required without --after: the secret key cannot be restored" },
    },
    meaning: "Erases the secret key permanently: at once with --yes, or after a waiting period.",
    example: 'qsp kms destroy "$KEY" --after 30d',
    ask({ operands: [keyId = ""], options }) {
      const afterSeconds = readSeconds(options, "after", { max: 120 }) ?? 0;
      if (afterSeconds > 0 || options.flag("yes")) return { keyId, afterSeconds };
      throw usageError(
        `--yes is missing: destroying ${keyId} is permanent; --after 30d leaves time to cancel`,
      );
    },
    say: ({ keyId, newStatus, destroyAt }) =>
      `${keyId} is ${newStatus}${destroyAt === undefined ? "" : ` and will be destroyed at ${time(destroyAt)}`}.`,
  }),
  unaryVerb(method.restoreKey, {
    line: "kms restore KEY",
    meaning:
      "Cancels a scheduled destruction. The key becomes DISABLED; qsp kms enable makes it usable again.",
    example: 'qsp kms restore "$SCHEDULED_KEY"',
    ask: askKey,
    say: ({ result }) => describeKey(result),
  }),
  createImportVerb(readKeyFile),
];
