/** What one client of the key service lives through, from its first key to the end of the audit log. */
import { randomUUID } from "node:crypto";
import type { Client } from "@connectrpc/connect";
import { afterAll, beforeAll } from "vitest";
import type { AuditEntry } from "#gen/kms/audit_pb.ts";
import type { KeyRecord } from "#gen/kms/key_pb.ts";
import type { KmsService } from "#gen/kms/kms_service_pb.ts";
import { tellOfAudit, tellOfHealth } from "./kms-story-audit.ts";
import {
  tellOfDestroying,
  tellOfLists,
  tellOfMaking,
  tellOfRetries,
  tellOfRotating,
} from "./kms-story-keys.ts";
import { tellOfRefusals } from "./kms-story-refusals.ts";
import { tellOfKems, tellOfSigning, tellOfVerifying } from "./kms-story-uses.ts";

/** A client of the key service. */
export type KmsClient = Client<typeof KmsService>;

/** What a service holds when a story begins: other stories may have been told to it. */
export interface Past {
  readonly keys: readonly KeyRecord[];
  /** Entries of the audit log. */
  readonly entries: number;
}

/** What the chapters of a story share. */
export interface Stage {
  readonly kms: KmsClient;
  /** Whether the client can make calls that send a stream. */
  readonly sendsStreams: boolean;
  past(): Past;
  /** No service has this key; its name needs care in a path, in a query and in JSON. */
  readonly unknownKeyId: string;
  /** Keeps a key of an answer under a name, for the tests that come after. */
  keep(name: string, key: KeyRecord | undefined): KeyRecord;
  /** The key that was kept under a name. */
  key(name: string): KeyRecord;
  /** Entries of the audit log as they come; ends with the story. */
  watch(request: { keyId?: string; afterSequence?: number }): AsyncGenerator<AuditEntry>;
  /** Watches from the beginning of the story on. */
  readonly watched: AsyncGenerator<AuditEntry>;
}

/** Tells the story as consecutive tests. No other test uses the service at the same time. */
export function tellStory(kms: KmsClient, sendsStreams: boolean): void {
  const ending = new AbortController();
  afterAll(() => ending.abort());
  const stage = createStage(kms, sendsStreams, ending.signal);
  tellOfMaking(stage);
  tellOfSigning(stage);
  tellOfVerifying(stage);
  tellOfLists(stage);
  tellOfRotating(stage);
  tellOfKems(stage);
  tellOfRetries(stage);
  tellOfDestroying(stage);
  tellOfRefusals(stage);
  tellOfAudit(stage);
  tellOfHealth(stage);
}

function createStage(kms: KmsClient, sendsStreams: boolean, signal: AbortSignal): Stage {
  let past: Past = { keys: [], entries: 0 };
  beforeAll(async () => {
    const { keys } = await kms.listKeys({});
    const { totalSize } = await kms.getAuditLog({ pageSize: 1 });
    past = { keys, entries: totalSize };
  });
  const kept = new Map<string, KeyRecord>();
  const key = (name: string): KeyRecord => {
    const found = kept.get(name);
    if (found === undefined) throw new Error(`no test before this one kept a key ${name}`);
    return found;
  };
  const keep = (name: string, record: KeyRecord | undefined): KeyRecord => {
    if (record !== undefined) kept.set(name, record);
    return key(name);
  };
  async function* watch(request: { keyId?: string; afterSequence?: number }): AsyncGenerator<AuditEntry> {
    for await (const { entry } of kms.watchAuditLog(request, { signal })) {
      if (entry === undefined) throw new Error("a watcher was told of nothing");
      yield entry;
    }
  }
  async function* watchStory(): AsyncGenerator<AuditEntry> {
    yield* watch({ afterSequence: past.entries });
  }
  const unknownKeyId = `no such/key? "é" & 100%+😀 ${randomUUID()}`;
  return { kms, sendsStreams, past: () => past, keep, key, unknownKeyId, watch, watched: watchStory() };
}
