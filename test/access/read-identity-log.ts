/** Reads the identity log through the API. */
import { type Client, createClient } from "@connectrpc/connect";
import { type IdentityLogEntry, IdentityLogService } from "#gen/pqc/identity_log_service_pb.ts";
import { present } from "../services/answers.ts";
import type { Clients } from "./access-server.ts";

export function logOf({ transport }: Clients): Client<typeof IdentityLogService> {
  return createClient(IdentityLogService, transport);
}

/** Reads until the entry of a failure appears, because it is written after the answer. */
export async function readUntilRefused(log: Client<typeof IdentityLogService>, subject: string) {
  await readUntil(log, { subject, outcome: "REFUSED" }, 1);
  return (await log.getIdentityLog({ subject })).entries;
}

/** Reads entries until there are enough. */
export async function readUntil(
  log: Client<typeof IdentityLogService>,
  query: { readonly subject: string; readonly outcome: string },
  count: number,
): Promise<IdentityLogEntry[]> {
  const entries: IdentityLogEntry[] = [];
  for await (const { entry } of log.watchIdentityLog({ ...query, afterSequence: 0 }))
    if (entries.push(present(entry)) === count) break;
  return entries;
}
