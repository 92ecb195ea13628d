/** `qsp log leaf`: computes an audit entry's leaf from its JSON, without a server. */
import { fromJson, type JsonObject, type JsonValue } from "@bufbuild/protobuf";
import { type AuditEntry, AuditEntrySchema } from "#gen/kms/audit_pb.ts";
import { usageError } from "../../src/cli/exit-codes.ts";
import { readWhole } from "../../src/cli/files/read.ts";
import type { Verb, VerbInput } from "../../src/cli/verb.ts";
import { auditStart, hashAuditEntry } from "../../src/client/verify-audit.ts";
import { isJsonObject } from "../../src/crypto/strict-json.ts";

/** An entry and the hash of the previous entry. */
interface ChainedEntry {
  readonly entry: AuditEntry;
  readonly previousHash: string;
}

export const leafVerbs: readonly Verb[] = [
  {
    name: "log leaf",
    operands: ["FILE"],
    operandFiles: { FILE: "reads" },
    isLocal: true,
    options: {
      previous: {
        value: "HEX",
        meaning: "The previous entry's entryHash, 64 digits, if the file does not contain it",
      },
      sequence: { value: "NUMBER", meaning: "The entry to use, if the file contains several" },
    },
    meaning:
      "Computes an audit entry's leaf from its JSON: an entry, its canonical JSON, or a GetAuditLog answer; - reads\n" +
      "standard input. If the entry states a different hash, it was changed, and the exit code is 1.",
    example: "qsp kms audit --json | qsp log leaf - --sequence 1",
    async run(input) {
      const { entry, previousHash } = await readEntry(input);
      const leaf = await hashAuditEntry(entry, previousHash);
      if (leaf === undefined)
        throw usageError(
          `${nameOf(input)}: timestamp is missing or finer than a millisecond; expected RFC 3339, such as 2030-01-31T12:00:00.000Z`,
        );
      const index = entry.sequence - 1;
      const valid = entry.entryHash === "" || entry.entryHash === leaf;
      if (valid) return input.output.report({ leaf, index, valid }, leaf);
      return input.output.report(
        { leaf, index, valid, stated: entry.entryHash },
        `NOT valid: entry ${entry.sequence} states the hash ${entry.entryHash}, but its content hashes to ${leaf}: it or the previous entry differs from the log.`,
        valid,
      );
    },
  },
];

function nameOf({ operands: [file = ""] }: VerbInput): string {
  return file === "-" ? "standard input" : file;
}

async function readEntry(input: VerbInput): Promise<ChainedEntry> {
  const { operands, options } = input;
  const found = parse(input, Buffer.from(await readWhole(operands[0] ?? "")).toString());
  const entries =
    isJsonObject(found) && Array.isArray(found.auditLog) ? found.auditLog.filter(isJsonObject) : [found];
  const wanted = options.whole("sequence", 1, Number.MAX_SAFE_INTEGER);
  const chosen =
    wanted === undefined && entries.length === 1
      ? entries[0]
      : entries.find((one) => isJsonObject(one) && one.sequence === wanted);
  if (chosen === undefined || !isJsonObject(chosen))
    throw usageError(
      wanted === undefined
        ? `${nameOf(input)} has ${entries.length} entries; select one with --sequence NUMBER`
        : `${nameOf(input)} has no entry ${wanted}`,
    );
  const entry = toEntry(input, chosen);
  return { entry, previousHash: findPrevious(input, chosen, entry, entries) };
}

function parse(input: VerbInput, text: string): JsonValue {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw usageError(`${nameOf(input)} is not JSON: ${error instanceof Error ? error.message : error}`);
  }
}

function toEntry(input: VerbInput, value: JsonObject): AuditEntry {
  // Canonical JSON has previousHash in addition; a newer server may add more.
  const entry = readMessage(input, value);
  if (Number.isSafeInteger(entry.sequence) && entry.sequence >= 1) return entry;
  throw usageError(`${nameOf(input)} is not an audit entry: sequence is not a whole number from 1`);
}

function readMessage(input: VerbInput, value: JsonObject): AuditEntry {
  try {
    return fromJson(AuditEntrySchema, value, { ignoreUnknownFields: true });
  } catch (error) {
    throw usageError(
      `${nameOf(input)} is not an audit entry: ${error instanceof Error ? error.message : error}`,
    );
  }
}

/**
 * Finds the previous entry's hash: on the command line, in the entry, in the previous entry, or the start
 * value.
 */
function findPrevious(
  input: VerbInput,
  chosen: JsonObject,
  { sequence }: AuditEntry,
  entries: readonly JsonValue[],
): string {
  if (sequence === 1) return auditStart.entryHash;
  const before = entries.find((one) => isJsonObject(one) && one.sequence === sequence - 1);
  const previous =
    input.options.text("previous") ??
    chosen.previousHash ??
    (isJsonObject(before) ? before.entryHash : undefined);
  if (previous === undefined)
    throw usageError(`--previous is missing: the entryHash of entry ${sequence - 1}, 64 hexadecimal digits`);
  if (typeof previous === "string" && /^[0-9a-f]{64}$/i.test(previous)) return previous.toLowerCase();
  throw usageError(`--previous: "${previous}" is not a hash; expected 64 hexadecimal digits`);
}
