/**
 * Every call that takes an Idempotency-Key, as declared in the proto, with the requests from the access
 * table.
 */
import { type DescMethod, type DescMethodUnary, getOption, toJsonString } from "@bufbuild/protobuf";
import { beforeAll, describe, expect, it } from "vitest";
import { BlockchainService } from "#gen/blockchain/blockchain_service_pb.ts";
import { idempotency_key } from "#gen/qsp/idempotency_pb.ts";
import { endAfterAll } from "../support/at-end.ts";
import { loadFlags } from "../support/extension-tests.ts";
import { refusal } from "../support/refusal.ts";
import { reused } from "../support/refusals.ts";
import { type AccessServer, type Clients, startAccessServer, timeout } from "./access-server.ts";
import { loadRows, makeRecords, nameOf, type Records, type Row } from "./rpc-rows.ts";

const rows = (await loadRows()).filter(({ method }) => getOption(method, idempotency_key));
const named = rows.map((row): [string, Row] => [nameOf(row.method), row]);
const atEnd = endAfterAll();
let server: AccessServer;
let made: Records;
let admin: Clients;

beforeAll(async () => {
  server = await startAccessServer({ atEnd, args: await loadFlags(atEnd) });
  made = await makeRecords(server);
  admin = await server.makePerson("admin");
}, timeout);

/** Peers are for administrators; everything else is for the owner of the named records. */
const callerOf = ({ method }: Row): Clients => (isOfPeers(method) ? admin : made.owner);
const isOfPeers = (method: DescMethod) => method === BlockchainService.method.connectPeer;

/**
 * Makes a call.
 *
 * @returns its answer as JSON
 */
async function call({ transport }: Clients, { method }: Row, message: unknown, key: string): Promise<string> {
  const headers = { "idempotency-key": key };
  // The rows contain the messages that their methods take.
  const init = message as never;
  const answer = await transport.unary(method as DescMethodUnary, undefined, undefined, headers, init);
  return toJsonString(method.output, answer.message);
}

describe("an Idempotency-Key", { timeout }, () => {
  it.each(named)("returns the first answer again, and rejects a different request: %s", async (key, row) => {
    const [message] = await row.messages(made);
    const caller = callerOf(row);
    const first = await call(caller, row, message, key);
    expect(await call(caller, row, message, key)).toBe(first);
    const headers = { "idempotency-key": key };
    const other = caller.wallet.createWallet({ label: "a different request" }, { headers });
    expect(await refusal(other)).toEqual(reused);
  });

  const owned = named.filter(([, { method }]) => !isOfPeers(method));
  it.each(owned)("does not apply to another user or an administrator: %s", async (name, row) => {
    const key = `${name} of the owner`;
    const [message] = await row.messages(made);
    const first = await call(made.owner, row, message, key);
    for (const person of [await server.makePerson(), await server.makePerson("admin")])
      expect(await call(person, row, message, key).catch(() => "refused")).not.toBe(first);
    expect(await call(made.owner, row, message, key)).toBe(first);
  });
});
