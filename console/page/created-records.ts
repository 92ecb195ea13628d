/**
 * The records that the reader has created on the server since the page was loaded, for the inventory. In memory only; a
 * log-in and a log-out empty it.
 */
import type { Message } from "@bufbuild/protobuf";
import { useEffect, useState } from "preact/hooks";
import { type FoundRecord, findRecord, toObject } from "./record-kinds.ts";
import { watchSession } from "./session.ts";
import type { SnippetCall } from "./snippets/call.ts";

/** The part of the page that created a record. */
export interface CreatedAt {
  /** "#/keys/steps/create-key". */
  readonly href: string;
  /** Of a step: "Create a key". */
  readonly title?: string;
}

export interface CreatedRecord extends FoundRecord {
  readonly at: CreatedAt;
}

/** A page that stays open for long forgets its oldest records. */
const maxRecords = 1000;

let records: readonly CreatedRecord[] = [];
const listeners = new Set<() => void>();

watchSession(() => keep([]));

function keep(next: readonly CreatedRecord[]): void {
  records = next.slice(-maxRecords);
  for (const listener of listeners) listener();
}

/** Notes what an answer says of a record: a new one, or the new state of one that was created here. */
export function noteAnswer({ method, request }: SnippetCall, answer: Message, at: CreatedAt): void {
  const name = `${method.parent.typeName}/${method.name}`;
  const found = findRecord(name, () => ({
    request: toObject(method.input, request),
    answer: toObject(method.output, answer),
  }));
  if (found === undefined) return;
  const { isNew, ...record } = found;
  if (isNew) keep([...records, { ...record, createdAt: new Date().toISOString(), at }]);
  else noteStates([record]);
}

/** Notes states that the server has listed. */
export function noteStates(listed: readonly Pick<CreatedRecord, "kind" | "id" | "state">[]): void {
  const stateOf = new Map(listed.map(({ kind, id, state }) => [`${kind} ${id}`, state]));
  const next = records.map((record) => {
    const state = stateOf.get(`${record.kind} ${record.id}`);
    return state === undefined || state === record.state ? record : { ...record, state };
  });
  if (next.some((record, at) => record !== records[at])) keep(next);
}

/** The records, oldest first, for a component. */
export function useCreatedRecords(): readonly CreatedRecord[] {
  const [shown, setShown] = useState(records);
  useEffect(() => {
    const show = (): void => setShown(records);
    listeners.add(show);
    show();
    return () => void listeners.delete(show);
  }, []);
  return shown;
}
