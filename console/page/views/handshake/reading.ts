/** A recording as the page shows it: taken apart, checked, with its key figures. */

import { nameGroup } from "../../../../src/crypto/tls-names.ts";
import { type Check, checkRecording } from "./checks.ts";
import { nameCipherSuite } from "./code-points.ts";
import { type Dissection, dissect, type Opened, openRecords } from "./dissect.ts";
import { type Field, findPath } from "./field.ts";
import type { Recording } from "./recording.ts";
import { findField } from "./verify.ts";

export interface Reading extends Dissection {
  readonly recording: Recording;
  readonly opened: Opened;
  readonly checks: readonly Check[];
  /** "x25519"; undefined without a ServerHello. */
  readonly group?: string | undefined;
  readonly cipherSuite?: string | undefined;
}

export async function readHandshake(recording: Recording): Promise<Reading> {
  const opened = await openRecords(recording);
  const dissection = dissect(opened.records);
  const { facts } = dissection.messages.findLast(({ name }) => name === "ServerHello") ?? {};
  const [group] = facts?.shares.keys() ?? [];
  return {
    ...dissection,
    recording,
    opened,
    checks: await checkRecording(opened),
    group: group === undefined ? undefined : nameGroup(group),
    cipherSuite: facts && nameCipherSuite(facts.cipherSuites[0] ?? 0),
  };
}

/** A byte of a record, and a field around it. */
export interface Selection {
  readonly record: number;
  readonly at: number;
  /** The field's depth in the record's tree; the leaf if there is none so deep. */
  readonly depth: number;
}

/** The selected field and the fields around it, outermost first. */
export function findSelected({ records }: Reading, { record, at, depth }: Selection): readonly Field[] {
  const root = records[record]?.field;
  return root === undefined ? [] : findPath(root, at).slice(0, depth + 1);
}

/** Selects a field. */
export function selectField({ records }: Dissection, record: number, field: Field): Selection {
  const root = records[record]?.field;
  const depth = root === undefined ? 0 : findPath(root, field.start).indexOf(field);
  return { record, at: field.start, depth };
}

/** A field and its record. */
export interface Place {
  readonly record: number;
  readonly field: Field;
}

/** The key shares of the agreed group: the client's, then the server's. */
export function findShares({ records, group }: Reading): readonly Place[] {
  return records.flatMap(({ field: root }, record) =>
    [...listFields(root, "KeyShareEntry"), ...listFields(root, "server_share")]
      .filter(({ value }) => value === group)
      .flatMap((entry) => {
        const field = findField(entry, "key_exchange");
        return field === undefined ? [] : [{ record, field }];
      }),
  );
}

/** What a reader should see first: the client's share, or its post-quantum part. */
export function chooseFirst(reading: Reading): Selection {
  const [share] = findShares(reading);
  if (share === undefined) return { record: 0, at: 0, depth: 0 };
  const { record, field } = share;
  return selectField(reading, record, field.parts.find(({ name }) => name.startsWith("ML-KEM")) ?? field);
}

function listFields(field: Field, name: string): Field[] {
  return field.name === name ? [field] : field.parts.flatMap((part) => listFields(part, name));
}
