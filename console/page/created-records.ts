/**
 * Records that the reader has created on the server since the page was loaded, for the inventory. Kept in
 * memory only, and cleared at log-in and log-out.
 */
import type { Message } from "@bufbuild/protobuf";
import { type FoundRecord, findRecord, toObject } from "./record-kinds.ts";
import { watchSession } from "./session.ts";
import { shareValue } from "./shared-value.ts";
import type { SnippetCall } from "./snippets/call.ts";

/** The part of the page that created a record. */
export interface CreatedAt {
  /** "#/keys/steps/create-key". */
  readonly href: string;
  /** For a step: "Create a key". */
  readonly title?: string;
}

export interface CreatedRecord extends FoundRecord {
  readonly at: CreatedAt;
}

/** Maximum records; a page that stays open for long drops the oldest. */
const maxRecords = 1000;

const records = shareValue((): readonly CreatedRecord[] => []);

/** The records, oldest first, for a component. */
export const useCreatedRecords = records.use;

watchSession(() => records.set([]));

/** Stores what an answer says about a record: a new one, or a new state of one that was created here. */
export function noteAnswer({ method, request }: SnippetCall, answer: Message, at: CreatedAt): void {
  const name = `${method.parent.typeName}/${method.name}`;
  const found = findRecord(name, () => ({
    request: toObject(method.input, request),
    answer: toObject(method.output, answer),
  }));
  if (found === undefined) return;
  const { isNew, ...record } = found;
  const created = { ...record, createdAt: new Date().toISOString(), at };
  if (isNew) records.set([...records.get(), created].slice(-maxRecords));
  else noteStates([record]);
}

/** Stores states that the server has listed. */
export function noteStates(listed: readonly Pick<CreatedRecord, "kind" | "id" | "state">[]): void {
  const stateOf = new Map(listed.map(({ kind, id, state }) => [`${kind} ${id}`, state]));
  const before = records.get();
  const next = before.map((record) => {
    const state = stateOf.get(`${record.kind} ${record.id}`);
    return state === undefined || state === record.state ? record : { ...record, state };
  });
  if (next.some((record, at) => record !== before[at])) records.set(next);
}
