/**
 * How lists show records that were changed directly in the database. Whatever value was put into whichever
 * column, either the record is marked and shows only its ID, or it looks unchanged; the other records are
 * listed as usual. A record whose owner was changed may disappear from the list.
 */
import { isDeepStrictEqual } from "node:util";
import type { DescService } from "@bufbuild/protobuf";
import type { Client } from "@connectrpc/connect";
import { type Kysely, sql } from "kysely";
import { describe, expect, it } from "vitest";
import { BlockchainService } from "#gen/blockchain/blockchain_service_pb.ts";
import { DappService } from "#gen/dapp/dapp_service_pb.ts";
import { DefiService } from "#gen/defi/defi_service_pb.ts";
import { IotService } from "#gen/iot/iot_service_pb.ts";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { NftService } from "#gen/nft/nft_service_pb.ts";
import { VpnService } from "#gen/vpn/vpn_service_pb.ts";
import { WalletService } from "#gen/wallet/wallet_service_pb.ts";
import type { Schema } from "../../src/database/schema.ts";
import { servicePackages } from "../../src/services/registry.ts";
import { bytesOf } from "../support/bytes.ts";
import { present } from "./answers.ts";
import { describeService } from "./service-server.ts";

type Value = string | number | Uint8Array | null;
type Row = Readonly<Record<string, Value>>;

/** A listed record, as a message; `damaged` or a status may mark it. */
interface Listed {
  readonly damaged?: boolean | undefined;
  readonly registrationStatus?: string;
}

/** A list, and how to create a record in it. */
interface List<Service extends DescService> {
  readonly service: Service;
  readonly table: keyof Schema;
  /** Name of the ID field. */
  readonly id: string;
  make(client: Client<Service>): Promise<unknown>;
  read(client: Client<Service>): Promise<readonly Listed[]>;
  /** Columns whose change goes unnoticed, because no tag covers them. */
  readonly unnoticed?: readonly string[];
}

/** The lists covered here. */
const listed: string[] = [];

/** The other lists, and why they are not covered here. */
const otherLists: Readonly<Record<string, string>> = {
  "blockchain.BlockchainService.GetChain": "hashes and signatures protect blocks; VerifyChain checks them",
  "kms.KmsService.ExportPublicKeys": "omits damaged keys; see test/services/kms",
  "kms.KmsService.GetAuditLog":
    "shows an entry only to its true owner; see test/access/audit-readers.test.ts",
  "pqc.IdentityLogService.GetIdentityLog": "readers of the log verify the chain, as VerifyIdentityLog does",
  "blockchain.BlockchainService.ListPeers":
    "peers have neither an owner nor a tag: each call asks the peer again",
  "nft.NftService.GetHistory": "fails with RECORD_DAMAGED; see nft-transfer.test.ts",
};

/**
 * Values to put in place of a value: of its type, beyond what a message can carry, and of a different type.
 */
function changesOf(value: string | number | Uint8Array): Readonly<Record<string, Value>> {
  if (typeof value === "string")
    return { longer: `${value}0`, empty: "", bytes: Uint8Array.of(0xff, 0, 0xfe) };
  if (typeof value === "number")
    return {
      more: value + 1,
      "far below 0": -8_999_999_999_999_999,
      "far beyond": 8_999_999_999_999_999,
      text: "x",
    };
  return { others: new Uint8Array(3), empty: new Uint8Array(), text: "text" };
}

async function readFirst(db: Kysely<Schema>, table: keyof Schema): Promise<Row> {
  const { rows } = await sql<Row>`select * from ${sql.table(table)} order by position limit 1`.execute(db);
  return present(rows[0]);
}

async function setFirst(
  db: Kysely<Schema>,
  table: keyof Schema,
  column: string,
  value: Value,
): Promise<void> {
  const first = sql`(select min(position) from ${sql.table(table)})`;
  await sql`update ${sql.table(table)} set ${sql.ref(column)} = ${value} where position = ${first}`.execute(
    db,
  );
}

function describeList<Service extends DescService>(
  name: string,
  { service, table, id, make, read, unnoticed = [] }: List<Service>,
): void {
  listed.push(name);
  describeService(name, service, (start) => {
    it("shows only a mark and the ID for a record with any changed column, and other records unchanged", async () => {
      const { client, tamper } = await start();
      await make(client);
      await make(client);
      const [before, other] = await read(client);
      const found: Record<string, string> = {};
      await tamper(async (db) => {
        const row = await readFirst(db, table);
        for (const [column, value] of Object.entries(row)) {
          if (column === "position" || value === null) continue;
          for (const [what, changed] of Object.entries(changesOf(value))) {
            if (!(await takes(setFirst(db, table, column, changed)))) continue;
            const [first, ...others] = await read(client);
            expect(others).toEqual([other]);
            found[`${column}: ${what}`] = describeFirst(first, before, id);
          }
          await setFirst(db, table, column, value);
        }
      });
      const isAllowed = (change: string) =>
        ["marked", "as it was"].includes(found[change] ?? "") ||
        unnoticed.includes(change.split(":")[0] ?? "");
      const wrong = Object.entries(found).filter(([change]) => !isAllowed(change));
      expect(wrong).toEqual([]);
      expect(Object.values(found)).toContain("marked");
      expect(await read(client)).toEqual([before, other]);
    });
  });
}

/** Returns whether the database accepts a change: PostgreSQL checks types, and both check unique values. */
function takes(change: Promise<void>): Promise<boolean> {
  return change.then(
    () => true,
    () => false,
  );
}

function describeFirst(changed: Listed | undefined, before: Listed | undefined, id: string): string {
  if (changed?.damaged || changed?.registrationStatus === "DAMAGED") {
    const shown = listContents(changed).filter(
      (field) => !["damaged", "registrationStatus", id].includes(field),
    );
    return shown.length === 0 ? "marked" : `marked, with its ${shown.join(", ")}`;
  }
  return isDeepStrictEqual(changed, before) ? "as it was" : "not noticed";
}

/** Lists the fields of a message that have a value. */
function listContents(message: object): string[] {
  const hasContent = (value: unknown): boolean =>
    typeof value === "object" && value !== null ? Object.keys(value).length > 0 : Boolean(value);
  const fields = Object.entries(message).filter(([name]) => name !== "$typeName");
  return fields.filter(([, value]) => hasContent(value)).map(([name]) => name);
}

describe("a list with a tampered record", () => {
  describeList("KmsService.ListKeys", {
    service: KmsService,
    table: "kms_keys",
    id: "keyId",
    make: (client) => client.createKey({ alias: "one" }),
    read: async (client) => (await client.listKeys({})).keys,
  });
  describeList("KmsService.ListGrants", {
    service: KmsService,
    table: "kms_grants",
    id: "grantId",
    make: async (client) => {
      const { result } = await client.createKey({});
      const keyId = present(result).keyId;
      await client.createGrant({ keyId, grantee: "ada", operations: ["SIGN"] });
    },
    read: async (client) => (await client.listGrants({})).grants,
  });
  describeList("WalletService.ListWallets", {
    service: WalletService,
    table: "wallets",
    id: "walletId",
    make: (client) => client.createWallet({ label: "one" }),
    read: async (client) => (await client.listWallets({})).wallets,
  });
  describeList("VpnService.ListTunnels", {
    service: VpnService,
    table: "vpn_tunnels",
    id: "tunnelId",
    make: (client) => client.registerPeer({ peerName: "one" }),
    read: async (client) => (await client.listTunnels({})).tunnels,
  });
  describeList("NftService.ListTokens", {
    service: NftService,
    table: "nft_tokens",
    id: "tokenId",
    make: (client) => client.mint({ name: "one", description: "a", artworkUri: "b" }),
    read: async (client) => (await client.listTokens({})).tokens,
  });
  describeList("DefiService.ListWallets", {
    service: DefiService,
    table: "defi_wallets",
    id: "walletId",
    make: (client) => client.createMultisig({ threshold: 2, signerCount: 3 }),
    read: async (client) => (await client.listWallets({})).wallets,
  });
  describeList("DefiService.ListProposals", {
    service: DefiService,
    table: "defi_proposals",
    id: "proposalId",
    make: async (client) => {
      const { walletId } = await client.createMultisig({ threshold: 1, signerCount: 1 });
      await client.createProposal({ walletId, data: bytesOf("pay bob"), title: "one" });
    },
    read: async (client) => (await client.listProposals({})).proposals,
  });
  describeList("DappService.ListContracts", {
    service: DappService,
    table: "dapp_contracts",
    id: "contractId",
    make: (client) => client.deployContract({ code: "one" }),
    read: async (client) => (await client.listContracts({})).contracts,
  });
  describeList("BlockchainService.ListValidators", {
    service: BlockchainService,
    table: "blockchain_validators",
    id: "validatorAddress",
    make: (client) => client.registerNode({}),
    read: async (client) => (await client.listValidators({})).validators,
  });
  describeList("IotService.ListDevices", {
    service: IotService,
    table: "iot_devices",
    id: "deviceId",
    make: (client) => client.registerDevice({ simulated: true }),
    read: async (client) => (await client.listDevices({})).devices,
    unnoticed: ["last_seen_at_ms"],
  });

  it("covers every core list of records", () => {
    const services = servicePackages.flatMap(({ files }) => files.flatMap((file) => file.services));
    const lists = services.flatMap(({ typeName, methods }) =>
      methods
        .filter(({ input }) => input.fields.some(({ name }) => name === "page_token"))
        .map(({ name }) => `${typeName}.${name}`),
    );
    const isTried = (list: string) => listed.some((name) => list.endsWith(`.${name}`));
    expect(lists.filter((list) => !isTried(list) && !Object.hasOwn(otherLists, list))).toEqual([]);
    expect(Object.keys(otherLists).filter((list) => !lists.includes(list))).toEqual([]);
  });
});
