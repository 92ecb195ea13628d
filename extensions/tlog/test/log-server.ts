/** A complete server, and helpers for its logs' readers. */
import { type Client, createClient } from "@connectrpc/connect";
import { onTestFinished } from "vitest";
import { BlockchainService } from "#gen/blockchain/blockchain_service_pb.ts";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { LogService } from "#gen/tlog/log_service_pb.ts";
import { readConfig } from "../../../src/config.ts";
import { present } from "../../../test/services/answers.ts";
import { startUnderTest } from "../../../test/services/app-under-test.ts";
import type { AtEnd } from "../../../test/support/at-end.ts";
import { makeStoreDirectory } from "../../../test/support/empty-store.ts";
import { parseCheckpoint } from "../checkpoint.ts";
import { parseNote } from "../note.ts";
import { settings } from "../settings.ts";

/** A server with gRPC clients. */
export type LogServer = Awaited<ReturnType<typeof startLogServer>>;

/** Starts a server on a directory, by default a new one. */
export async function startLogServer(
  flags: readonly string[] = [],
  given?: string,
  atEnd: AtEnd = onTestFinished,
) {
  const dataDir = given ?? (await makeStoreDirectory(atEnd));
  const config = readConfig(["--port", "0", "--data-dir", dataDir, ...flags], {}, [settings]);
  const server = await startUnderTest(config, atEnd);
  return {
    ...server,
    dataDir,
    logs: createClient(LogService, server.grpc),
    kms: createClient(KmsService, server.grpc),
    chain: createClient(BlockchainService, server.grpc),
  };
}

/** Writes this many audit entries. The first creates a key. */
export async function writeUses(
  { kms }: { readonly kms: Client<typeof KmsService> },
  count: number,
): Promise<void> {
  const { keyId } = present((await kms.createKey({})).result);
  for (let i = 1; i < count; i++) await kms.sign({ keyId, data: Buffer.from(`use ${i}`) });
}

/** Fetches the newest checkpoint's note over REST. */
export async function fetchNote(url: string, log = "audit"): Promise<Uint8Array> {
  const response = await fetch(`${url}/api/logs/${log}/checkpoint`);
  if (!response.ok) throw new Error(await response.text());
  return response.bytes();
}

/** Waits until a log has published this size, and returns its note and checkpoint. */
export async function awaitSize(url: string, size: number, log = "audit") {
  for (;;) {
    const bytes = await fetchNote(url, log);
    const checkpoint = parseCheckpoint(parseNote(bytes).text);
    if (checkpoint.size >= size) return { bytes, ...checkpoint };
    // The server signs once per second; each request polls.
  }
}
