/**
 * Pins the fields of the core's tags: a tag is stored as long as its record, so its bytes must never change.
 *
 * This file is long because both the pinned tags and the tests of added columns need every kind of record.
 */

import { sql } from "kysely";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import type { PublicKey } from "../../src/crypto/provider.ts";
import { sqliteIn } from "../../src/database/database.ts";
import { type AnyRow, anyTable, listTables } from "../../src/database/schema.ts";
import { createClientStore } from "../../src/identity/clients.ts";
import { createIssuerStore } from "../../src/identity/issuer-store.ts";
import { clientTable, issuerKeyTable, userTable } from "../../src/identity/tables.ts";
import { createUserStore } from "../../src/identity/users.ts";
import { openStore } from "../../src/open-store.ts";
import { type Columns, column } from "../../src/records/columns.ts";
import { openTable } from "../../src/records/record-table.ts";
import { intact, type TableDeclaration } from "../../src/records/table-declaration.ts";
import { equalTags, tagRecord } from "../../src/records/tag.ts";
import { verifyRecords } from "../../src/records/verify-records.ts";
import { masterKeyIn } from "../../src/secrets/master-key.ts";
import { genesis } from "../../src/services/blockchain/block.ts";
import { createChainStore } from "../../src/services/blockchain/store.ts";
import { headTable, validatorTable } from "../../src/services/blockchain/tables.ts";
import { contractTable } from "../../src/services/dapp/tables.ts";
import { createDefiStore, type Proposal } from "../../src/services/defi/store.ts";
import {
  proposalTable,
  signerTable,
  walletTable as signerWalletTable,
} from "../../src/services/defi/tables.ts";
import { newDeviceState } from "../../src/services/iot/device-state.ts";
import { createIotStore, type Device } from "../../src/services/iot/store.ts";
import { challengeTable, deviceTable, stateTable } from "../../src/services/iot/tables.ts";
import { createKmsStore } from "../../src/services/kms/store.ts";
import type { KeyName, KeyRecord } from "../../src/services/kms/tables.ts";
import {
  describeGrantEnd,
  grantEnds,
  grantTable,
  importTable,
  keyTable,
  nameTable,
} from "../../src/services/kms/tables.ts";
import { createNftStore, type Token } from "../../src/services/nft/store.ts";
import { tokenTable, transferTable } from "../../src/services/nft/tables.ts";
import { createVpnStore } from "../../src/services/vpn/store.ts";
import { tunnelTable } from "../../src/services/vpn/tables.ts";
import { walletTable } from "../../src/services/wallet/tables.ts";
import type { Store } from "../../src/store/store.ts";
import type { WriteTransaction } from "../../src/store/write-transaction.ts";
import { coreTables } from "../support/open-store.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";

const key = new Uint8Array(32).fill(7);
const at = new Date("2026-01-02T03:04:05.678Z");
const later = new Date("2027-01-02T03:04:05.678Z");
const publicKey = new Uint8Array([1, 2, 3, 250]);
const secret = new Uint8Array(32);
const owner = "user:ada";
const zeroes = "0".repeat(64);

/** Random IDs are replaced with zeros in these tests' tags. */
function tagWithoutIds(fields: readonly (string | number | Uint8Array)[]): string {
  const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/;
  return tagRecord(
    key,
    fields.map((field) => (typeof field === "string" ? field.replace(uuid, "0") : field)),
  );
}

const dataDir = makeTemporaryDirectory(afterAll);
let store: Store;
beforeAll(async () => {
  const provider = await createCryptoProvider("openssl");
  const opened = await openStore({
    location: sqliteIn(dataDir),
    masterKey: masterKeyIn(dataDir),
    provider,
    tables: coreTables,
  });
  store = {
    ...opened,
    tagRecord: tagWithoutIds,
    isTagged: (fields, tag) => equalTags(tag, tagWithoutIds(fields)),
  };
  return async () => {
    await opened.close();
    await provider.close();
  };
});

const device: Device = {
  deviceId: "device-1",
  deviceName: "Boiler",
  deviceType: "sensor",
  publicKey,
  isSimulated: true,
  vendorPublicKey: new Uint8Array([9]),
  hasSigningContexts: false,
  owner,
  registeredAt: at,
};
const keyRecord: KeyRecord = {
  keyId: "key-1",
  alias: "payroll",
  algorithm: "ML-DSA-65",
  usage: "SIGN",
  state: "ACTIVE",
  publicKey,
  owner,
  createdAt: at,
  name: undefined,
  version: undefined,
  isPrimary: false,
  labels: {},
  destroyAt: undefined,
  isImported: false,
  replacedBy: undefined,
  draft: undefined,
};
const keyName: KeyName = {
  owner,
  name: "payroll",
  algorithm: "ML-DSA-65",
  labels: {},
  rotationPeriodSeconds: undefined,
  nextRotationAt: undefined,
  destroyAfterSeconds: undefined,
  isImportOnly: false,
  signsMu: false,
  versions: 0,
  primaryKeyId: undefined,
  createdAt: at,
};
const token: Token = {
  tokenId: "token-1",
  name: "Night",
  description: "At sea",
  artworkUri: "https://example.com/1.png",
  metadataHash: zeroes,
  creatorAddress: "0x01",
  creatorPublicKey: publicKey,
  creatorSignature: new Uint8Array([4, 5]),
  currentOwner: "0x02",
  transferCount: 0,
  minter: owner,
  mintedAt: at,
};
const proposal: Proposal = {
  proposalId: "proposal-1",
  walletId: "wallet-1",
  data: new Uint8Array([6]),
  title: "Raise",
  threshold: 2,
  status: "PENDING",
  signedBy: [],
  owner,
  createdAt: at,
  expiresAt: undefined,
  executedAt: undefined,
};

const tunnel = {
  tunnelId: "tunnel-1",
  peerName: "laptop",
  addressNumber: 2,
  publicKey,
  isServerHeld: true,
  owner,
  createdAt: at,
};

/** Reads the tag of a table row. */
async function readTag({ table, column = "record_tag", row = -1 }: Case): Promise<string> {
  // The tables have little in common except their tags.
  const rows = await store.reader
    .selectFrom(table as "wallets")
    .selectAll()
    .execute();
  return String((rows.at(row) as Readonly<Record<string, unknown>> | undefined)?.[column]);
}

/** One kind of record. */
interface Case {
  readonly title: string;
  readonly table: string;
  readonly column?: "record_tag" | "state_tag";
  /** Index from the end of the table; default -1. */
  readonly row?: number;
  /** Writes a record within a transaction. */
  readonly write?: (transaction: WriteTransaction) => Promise<unknown>;
  /** Writes a record in its own transaction. */
  readonly writeAlone?: () => Promise<unknown>;
  readonly tag: string;
}

const issuerKey = {
  keyId: "issuer-1",
  publicKey: { algorithm: "ML-DSA-65", exportRaw: () => publicKey } as PublicKey,
  seed: secret,
};

const records: readonly Case[] = [
  {
    title: "user",
    table: "users",
    writeAlone: () =>
      createUserStore(store).add({ name: "ada", role: "auditor", passwordHash: "scrypt$1" }, at),
    tag: "bc147eebba67ebb8227dc58e293aa084f89d692c021bf84d17d7fed5c38a1252",
  },
  {
    title: "client",
    table: "oauth_clients",
    writeAlone: () =>
      createClientStore(store).add(
        {
          ...{ name: "orders", role: "user", secretHash: "sha256$1", mayExchange: true },
          ...{ scopes: ["kms.read", "kms.sign"], audiences: ["https://a.example.com"], resources: [] },
        },
        at,
      ),
    tag: "fd5680c5d9edef99843cc8cd96e437b6d439a23a9bda749f5af3aec06b4656cf",
  },
  {
    title: "issuer key",
    table: "issuer_keys",
    writeAlone: () => createIssuerStore(store).addFirstKey(issuerKey, at),
    tag: "c7a39f67e02bb6b5ea5c79f97e45378a40c6492f475cd3fee22242625980ca9d",
  },
  {
    title: "retired issuer key",
    table: "issuer_keys",
    row: -2,
    writeAlone: () => createIssuerStore(store).replaceKey({ ...issuerKey, keyId: "issuer-2" }, later, later),
    tag: "6b82309a35d49615e5d91c794b3565545fcd38e6b7501be7a24c957ffe66c503",
  },
  {
    title: "wallet",
    table: "wallets",
    write: (transaction) =>
      openTable(store, walletTable).insert(
        transaction,
        { walletId: "wallet-1", label: "savings", address: "0x03", publicKey, owner, createdAt: at },
        secret,
      ),
    tag: "c2fdb53d938051a7fc1baf356a80d9eaaaab08d759ace1c3b90c081ff089ef27",
  },
  {
    title: "contract",
    table: "dapp_contracts",
    write: (transaction) =>
      openTable(store, contractTable).insert(transaction, {
        contractId: "contract-1",
        name: "Escrow",
        codeHash: zeroes,
        signature: new Uint8Array([4, 5]),
        publicKey,
        owner,
        deployedAt: at,
      }),
    tag: "94de4ac1ebd6e205064449569cd9f33e9438d1d1ccbd416f33445e16cafe8a3e",
  },
  {
    title: "multi-signature wallet",
    table: "defi_wallets",
    write: (transaction) =>
      createDefiStore(store).insertWallet(transaction, {
        walletId: "wallet-1",
        threshold: 2,
        signers: ["0x01", "0x02"],
        owner,
        createdAt: at,
      }),
    tag: "a52e56ce914bc417cb1ca4e04d0759bb9141ada09d6674dc5db0c34bc443fc8c",
  },
  {
    title: "signer with a server-held key",
    table: "defi_signers",
    write: (transaction) =>
      createDefiStore(store).signers.insert(
        transaction,
        { walletId: "wallet-1", address: "0x01", publicKey, isServerHeld: true },
        secret,
      ),
    tag: "bd9689f71cd54500f77c4c59126deaa38dd9d4b6fc75188483f667872fcd63b1",
  },
  {
    title: "proposal",
    table: "defi_proposals",
    write: (transaction) => createDefiStore(store).proposals.insert(transaction, proposal),
    tag: "6eb2165727b4224fb14eb1b2f69f9a925fba462eea14e7f01e2ed3822bb7c6fc",
  },
  {
    title: "signed and executed proposal with an expiry",
    table: "defi_proposals",
    write: async (transaction) => {
      const defi = createDefiStore(store);
      const expiring = { ...proposal, proposalId: "proposal-2", expiresAt: later };
      await defi.proposals.insert(transaction, expiring);
      const signed = await defi.addSignature(transaction, expiring, "0x01", new Uint8Array([4]));
      await defi.proposals.update(transaction, intact(signed), { status: "EXECUTED", executedAt: later });
    },
    tag: "4adc9feea4e057c15d3c372df11d8d02200714521ebf9d69e272a038ca9b8063",
  },
  {
    title: "key",
    table: "kms_keys",
    write: (transaction) => createKmsStore(store).insert(transaction, keyRecord, secret),
    tag: "44596c53584339cc807ebf3322c3b652e99c0b1d6ad82eaec92a6c41dcd22c7b",
  },
  {
    title: "destroyed key",
    table: "kms_keys",
    write: async (transaction) => {
      const keys = createKmsStore(store);
      await keys.insert(transaction, { ...keyRecord, keyId: "key-2" }, secret);
      const created = {
        keyId: "key-2",
        operation: "CREATE",
        user: "ada",
        outcome: "OK",
        details: "",
      } as const;
      transaction.audit(created);
      const found = await keys.findForChange(transaction, "key-2");
      if (found) await keys.change(transaction, found, { state: "DESTROYED" });
    },
    tag: "1a4cd8721a3da71ada9b7740d53558903f3f726012bcb9609bff342cad946e5c",
  },
  {
    title: "key with a name",
    table: "kms_keys",
    write: (transaction) =>
      createKmsStore(store).insert(
        transaction,
        { ...keyRecord, keyId: "key-3", name: "payroll", version: 1, isPrimary: true },
        secret,
      ),
    tag: "0087376d266533662888e342eaacd47b811f128da7bfc9489388a051407da3a0",
  },
  {
    title: "key with labels",
    table: "kms_keys",
    write: (transaction) =>
      createKmsStore(store).insert(
        transaction,
        { ...keyRecord, keyId: "key-4", labels: { team: "pay", env: "test" } },
        secret,
      ),
    tag: "1b4c70b167041f0f86d8c98338766165c484739ff08d6e501b5aa18cacdc7590",
  },
  {
    title: "imported version of a rotated key",
    table: "kms_keys",
    write: (transaction) =>
      createKmsStore(store).insert(
        transaction,
        {
          ...{ ...keyRecord, keyId: "key-5", state: "ROTATED", name: "payroll", version: 2 },
          ...{ isImported: true, replacedBy: "key-6" },
        },
        secret,
      ),
    tag: "b74a9f9bbd457a9a63f24b9e91a65694e4cb2ef0a83b25f5fb7d69a6f704a681",
  },
  {
    title: "composite key",
    table: "kms_keys",
    write: (transaction) =>
      createKmsStore(store).insert(
        transaction,
        {
          ...{ ...keyRecord, keyId: "key-8", algorithm: "MLDSA65-Ed25519-SHA512" },
          draft: "draft-ietf-lamps-pq-composite-sigs-19",
        },
        secret,
      ),
    tag: "e28a0690634f35b034076168c3db7b00a3e1713698edc754cef4591c45faeeb6",
  },
  {
    title: "key scheduled for destruction",
    table: "kms_keys",
    write: (transaction) =>
      createKmsStore(store).insert(
        transaction,
        { ...keyRecord, keyId: "key-7", state: "DESTROY_SCHEDULED", destroyAt: later },
        secret,
      ),
    tag: "56660237e626a0914b93ae38c208cab62a37b84103d0321e429e61922c5eb16c",
  },
  {
    title: "key name",
    table: "kms_names",
    write: (transaction) => createKmsStore(store).names.insert(transaction, keyName),
    tag: "f46eec17056489fadfd3e72ea82c6bb7de71c00782a87c3cd143be64683f9fc8",
  },
  {
    title: "key name with automatic rotation",
    table: "kms_names",
    write: (transaction) =>
      createKmsStore(store).names.insert(transaction, {
        ...{ ...keyName, name: "rotating", labels: { team: "pay" }, versions: 2, primaryKeyId: "key-5" },
        ...{ rotationPeriodSeconds: 86_400, nextRotationAt: later, destroyAfterSeconds: 60, signsMu: true },
      }),
    tag: "21bafeb47f2fa8d07121dd19471c3d8689d00c1a06881de6f43517a25f512865",
  },
  {
    title: "grant",
    table: "kms_grants",
    write: (transaction) =>
      createKmsStore(store).grants.insert(transaction, {
        ...{ grantId: "grant-1", owner, ownerName: "ada", keyId: "key-1", name: "", expiresAt: later },
        ...{ grantee: "user:bob", granteeName: "bob", operations: ["SIGN", "VERIFY"], createdAt: at },
      }),
    tag: "bf71380ef55641a5d7283f9573b9b7e5878a9c48ad7f748dcfdaeb3904038326",
  },
  {
    title: "import token",
    table: "kms_imports",
    write: (transaction) =>
      createKmsStore(store).imports.insert(
        transaction,
        {
          ...{ importId: "import-1", owner, method: "HPKE", publicKey, jobName: "" },
          ...{ expiresAt: later, createdAt: at },
        },
        secret,
      ),
    tag: "468053cdf96248299a64ab43176e12dafb518373378da6bc00b3dec48c48f77b",
  },
  {
    title: "device",
    table: "iot_devices",
    write: (transaction) => createIotStore(store).insert(transaction, device, secret),
    tag: "3233db2520cf6c2b23c1e672e40bf6d3a5d1974f63f4d669311601dbfc0ef499",
  },
  {
    title: "device with signing contexts",
    table: "iot_devices",
    write: (transaction) =>
      createIotStore(store).insert(
        transaction,
        { ...device, deviceId: "device-2", isSimulated: false, hasSigningContexts: true },
        undefined,
      ),
    tag: "669977778fa30e95ba75c363d7eb160b86a40418f7ce6e1fed5be92233bbeeef",
  },
  {
    title: "state of a new device",
    table: "iot_devices",
    column: "state_tag",
    write: (transaction) =>
      createIotStore(store).insert(transaction, { ...device, deviceId: "device-3" }, secret),
    tag: "421cf256f01468664bcf4377020b508fe19c214fb987ef161145038696c3b5ee",
  },
  {
    title: "state of a device that reported its firmware",
    table: "iot_devices",
    column: "state_tag",
    write: async (transaction) => {
      const iot = createIotStore(store);
      await iot.insert(transaction, { ...device, deviceId: "device-5" }, secret);
      await iot.saveState(transaction, "device-5", {
        ...newDeviceState,
        ...{ reportedPath: "sensor/image", reportedVersion: "2", reportedHash: zeroes, reportedAt: at },
        previousVersion: "3",
      });
    },
    tag: "d767ebe8cb86cb00b7f7cfe6c1f37050f4fc0f859f38630e962d02da0935652b",
  },
  {
    title: "device state",
    table: "iot_devices",
    column: "state_tag",
    write: async (transaction) => {
      const iot = createIotStore(store);
      await iot.insert(transaction, { ...device, deviceId: "device-4" }, secret);
      await iot.saveState(transaction, "device-4", {
        ...newDeviceState,
        lastSeenAt: at,
        lastSequence: 41,
        readingForm: "NUMBERED",
        firmwareVersion: 3,
        firmwareHash: zeroes,
        formerImages: ["1".repeat(64), "2".repeat(64)],
      });
    },
    tag: "9a0d403d922fffb1fa2ad83d0dce1003efe02d457424ffcc4f54934242f23f15",
  },
  {
    title: "challenge",
    table: "iot_challenges",
    write: (transaction) =>
      createIotStore(store).insertChallenge(transaction, {
        ...{ challenge: new Uint8Array(32), deviceId: "device-1", client: "127.0.0.1", expiresAt: later },
      }),
    tag: "76eac8efe69fc9947a08e5f8fb07b87063be91e36954a26b681386ae1c7fd26e",
  },
  {
    title: "used challenge",
    table: "iot_challenges",
    write: async (transaction) => {
      const iot = createIotStore(store);
      const found = await iot.findChallenge(transaction, new Uint8Array(32));
      if (found) await iot.useChallenge(transaction, found, at);
    },
    tag: "f4151ceb4cde350d40cae475ad07bad6ff9999dc35a2b3ff596523c72199053b",
  },
  {
    title: "tunnel",
    table: "vpn_tunnels",
    write: (transaction) => createVpnStore(store).insert(transaction, tunnel, secret),
    tag: "a82964cd5a8b6f51fa2ea9075c4a92ff312d1acf1e6d6dc1bc5dd774f0e71343",
  },
  {
    title: "validator",
    table: "blockchain_validators",
    write: (transaction) =>
      createChainStore(store).validators.insert(
        transaction,
        { address: "0x01", name: "north", publicKey, owner, createdAt: at },
        secret,
      ),
    tag: "427d07f662b6b3b79e940de22be781d90260e17b54ef201667e3ea2955081bdf",
  },
  {
    title: "end of the chain",
    table: "blockchain_head",
    write: (transaction) =>
      createChainStore(store).append(transaction, { length: 1, headHash: genesis.blockHash }, [
        {
          ...genesis,
          index: 1,
          prevHash: genesis.blockHash,
          blockHash: zeroes,
          signature: new Uint8Array([8]),
        },
      ]),
    tag: "9c89d6ee685bca1f6d7eb86f4d3025f126c218803c66cd134828d7b5d6a0a1b9",
  },
  {
    title: "token",
    table: "nft_tokens",
    write: (transaction) => createNftStore(store).insert(transaction, token),
    tag: "a1a1777a0ad6bc5157d34b43ec7b3a131db223a30a9a5b587329ede62d3419b3",
  },
  {
    title: "transfer",
    table: "nft_transfers",
    write: async (transaction) => {
      const nft = createNftStore(store);
      const found = await nft.find({ tokenId: "token-1" }, transaction);
      if (found) await nft.transfer(transaction, found.record, "0x03", later);
    },
    tag: "039dab1de949c3e587743cbaa5c60a1d401e442013e065010cc845ee49063678",
  },
  {
    title: "transferred token",
    table: "nft_tokens",
    tag: "659a4387998053c8ac601637545d73abf08edecfefa88f3905d57bd17372cb28",
  },
];

// All tests share one store: the first ones fill it, and the last ones change its tables.
describe("record tags", { shuffle: false }, () => {
  describe("the tag", () => {
    it.each(records)("never changes for: $title", async (record) => {
      const { write, writeAlone, tag } = record;
      if (write) await store.write(async (transaction) => void (await write(transaction)));
      await writeAlone?.();
      expect(await readTag(record)).toBe(tag);
    });
  });

  /** Tables whose rows have no tag, with the reason. */
  const untaggedTables: Readonly<Record<string, string>> = {
    sealed_secrets: "its ciphertext is authenticated together with its record's name",
    idempotent_answers: "its ciphertext is authenticated together with the other columns",
    audit_checkpoints: "each is signed",
    identity_checkpoints: "each is signed",
    list_counts: "only sizes of lists and quotas; no call relies on it otherwise",
    kms_labels: "an index: the labels of the tagged records decide what it finds",
    vpn_used_ciphertexts:
      "a row can only cause a rejection: whoever could change it could also remove it, which no tag detects",
    defi_signatures: "each is verified with the signer's key before the proposal is executed",
    blockchain_blocks: "its hash and its signature protect each",
    blockchain_peers: "each ConnectPeer call asks the peer again",
  };

  describe("a table", () => {
    it("has tagged rows, or a reason for having none", async () => {
      const tables = await store.reader.introspection.getTables();
      const isTagged = (table: string) =>
        tables.some(
          ({ name, columns }) => name === table && columns.some((column) => column.name.endsWith("_tag")),
        );
      const names = listTables(coreTables.owners).map(([name]) => name);
      const untagged = names.filter((table) => !isTagged(table));
      expect(untagged.toSorted()).toEqual(Object.keys(untaggedTables).toSorted());
    });
  });

  describe("the entry about the end of a grant", () => {
    it("never changes, because it records which grants have ended", () => {
      const grant = {
        ...{ grantId: "grant-1", owner, ownerName: "ada", keyId: "key-1", name: "", expiresAt: later },
        ...{ grantee: "user:bob", granteeName: "bob", operations: ["SIGN"], createdAt: at },
      };
      expect(grantEnds.map((end) => describeGrantEnd(grant, end))).toEqual([
        "grantId=grant-1, grantee=bob, reason=revoked",
        "grantId=grant-1, grantee=bob, reason=expired",
      ]);
    });
  });

  /** Columns that a later version of the program could add to every table. */
  const laterColumns = {
    laterNote: column.added(column.optionalText("later_note")),
    laterFlag: column.added(column.optionalFlag("later_flag")),
    laterTime: column.added(column.optionalTime("later_time_ms")),
    laterNumber: column.added(column.optionalInteger("later_number")),
    laterList: column.added(column.spacedList("later_list")),
    laterMap: column.added(column.textMap("later_map")),
  };

  /** A table as the later version declares it. */
  function declareLater<C extends Columns>(declaration: TableDeclaration<C>) {
    const { name, tagKind = name, tagColumn = "record_tag" } = declaration;
    const columns: C & typeof laterColumns = { ...declaration.columns, ...laterColumns };
    const later: TableDeclaration<typeof columns> = { ...declaration, columns };
    return {
      name,
      tagKind,
      verify: () => verifyRecords(store, [later]),
      readRows: () => anyTable(store.reader).selectFrom(name).selectAll().execute(),
      isIntact: (row: Readonly<AnyRow>) => openTable(store, later).readRow(row).isIntact,
      /** Reads the record of a row and recomputes its tag. */
      tagAgain(row: Readonly<AnyRow>) {
        const { readRow, toTaggedRow } = openTable(store, later);
        const tagged = toTaggedRow(readRow(row).record);
        return { row: { ...row, ...tagged }, tag: tagged[tagColumn] };
      },
    };
  }

  const laterTables = [
    ...[declareLater(userTable), declareLater(clientTable), declareLater(issuerKeyTable)],
    ...[declareLater(keyTable), declareLater(nameTable), declareLater(grantTable), declareLater(importTable)],
    ...[declareLater(walletTable), declareLater(tokenTable)],
    ...[declareLater(transferTable), declareLater(contractTable), declareLater(signerWalletTable)],
    ...[declareLater(signerTable), declareLater(proposalTable), declareLater(validatorTable)],
    ...[
      declareLater(headTable),
      declareLater(deviceTable),
      declareLater(stateTable),
      declareLater(challengeTable),
      declareLater(tunnelTable),
    ],
  ];

  /** Columns that verification cannot compare with anything, and why that is harmless. */
  const unverified: Readonly<Record<string, string>> = {
    position: "only orders lists",
    "blockchain_head id": "chain verify looks for the row by its number, and misses it",
    "iot_devices last_seen_at_ms": "a time for people; it changes with each reading and proves nothing",
  };

  describe("a column value changed by someone else", () => {
    it.each([...coreTables.records, keyTable, headTable])(
      "is detected: $name, key $key",
      async (declaration) => {
        const { name } = declaration;
        const { tagColumn = "record_tag" } = declaration;
        const tables = await store.reader.introspection.getTables();
        const names = tables.find((table) => table.name === name)?.columns.map((one) => one.name) ?? [];
        const others = declarationsOf(name).filter((one) => one !== declaration);
        const elsewhere = others.flatMap((one) => [
          one.tagColumn ?? "record_tag",
          ...Object.values<{ name: string }>(one.columns).map((one) => one.name),
        ]);
        const own = [
          tagColumn,
          ...Object.values<{ name: string }>(declaration.columns).map((one) => one.name),
        ];
        const missed: string[] = [];
        for (const changed of names) {
          if (elsewhere.includes(changed) && !own.includes(changed)) continue;
          const [row] = await anyTable(store.reader).selectFrom(name).selectAll().limit(1).execute();
          const value = row?.[changed] ?? null;
          const set = (to: typeof value) =>
            store.write(async ({ db }) => {
              await sql`update ${sql.table(name)} set ${sql.ref(changed)} = ${to}
            where rowid = (select rowid from ${sql.table(name)} where ${sql.ref(changed)} is ${to === value ? changeOf(value) : value} limit 1)`.execute(
                db,
              );
            });
          await set(changeOf(value));
          const { damaged } = await verifyRecords(store, [declaration]);
          await set(value);
          if (
            damaged.length === 0 &&
            unverified[changed] === undefined &&
            unverified[`${name} ${changed}`] === undefined
          )
            missed.push(changed);
        }
        expect(missed).toEqual([]);
        expect((await verifyRecords(store, [declaration])).damaged).toEqual([]);
      },
    );
  });

  describe("the secret of a record", () => {
    it("is declared by its table, and found missing", async () => {
      const secrets = await store.reader.selectFrom("sealed_secrets").selectAll().execute();
      const verify = async () => (await verifyRecords(store, coreTables.records)).withoutSecret;
      const before = await verify();
      await store.write(async ({ db }) => void (await db.deleteFrom("sealed_secrets").execute()));
      const missing = await verify();
      await store.write(
        async ({ db }) => void (await db.insertInto("sealed_secrets").values(secrets).execute()),
      );
      const names = secrets
        .map(({ identity }) => identity)
        .filter((identity) => !/^(store|kms_keys)\//.test(identity));
      expect([before, missing.length, names.length]).toEqual([[], 10, 10]);
    });
  });

  /** All declarations of a table. */
  function declarationsOf(name: string) {
    return [...coreTables.records, keyTable, headTable].filter((one) => one.name === name);
  }

  /** A different value of the same kind, which no record has. */
  function changeOf(value: AnyRow[string]): AnyRow[string] {
    if (typeof value === "number") return value + 7;
    if (value instanceof Uint8Array) return Uint8Array.from([...value, 1]);
    return value === null ? 7 : `x${value}`;
  }

  /** The added columns' values in a row; each produces a different tag. */
  const laterValues = [
    { later_note: "note" },
    { later_note: "later_flag" },
    { later_flag: 1 },
    { later_time_ms: 1 },
    { later_number: 0 },
    { later_number: 1 },
    { later_list: "a b" },
    { later_map: '{"a":"b"}' },
    { later_note: "note", later_flag: 1, later_number: 1 },
  ] as const;

  describe("a column added by a later version", () => {
    const absent = { later_note: null, later_flag: null, later_time_ms: null, later_number: null };
    const none = { ...absent, later_list: "", later_map: "" };

    beforeAll(() =>
      store.write(async ({ db }) => {
        for (const table of new Set(laterTables.map(({ name }) => name)))
          for (const name of Object.keys(none))
            await db.schema
              .alterTable(table)
              .addColumn(name, name in absent ? "bigint" : "text")
              .execute();
      }),
    );

    it("is tested with every table of tagged records", async () => {
      const tables = await store.reader.introspection.getTables();
      const tagged = tables.filter(({ columns }) => columns.some(({ name }) => name.endsWith("_tag")));
      const declared = tagged.map(({ name }) => name).filter((name) => !/^(tlog|audit|identity)_/.test(name));
      expect(declared.toSorted()).toEqual([...new Set(laterTables.map(({ name }) => name))].toSorted());
    });

    it.each(laterTables)("leaves older rows intact: $tagKind", async ({ verify }) => {
      const { checked, damaged } = await verify();
      expect(damaged).toEqual([]);
      expect(checked).toBeGreaterThan(0);
    });

    it.each(laterTables)("is protected by the tag: $tagKind", async ({ readRows, isIntact, tagAgain }) => {
      const [older] = await readRows();
      const tags = laterValues.map((values) => {
        const forged = { ...older, ...values };
        expect(isIntact(forged), JSON.stringify(values)).toBe(false);
        const { row, tag } = tagAgain(forged);
        expect(isIntact(row)).toBe(true);
        expect(isIntact({ ...row, ...none })).toBe(false);
        return tag;
      });
      expect(new Set(tags).size).toBe(laterValues.length);
    });
  });

  describe("a declaration of columns", () => {
    const base = { a: column.text("a"), b: column.text("b") };
    const declare = (columns: Columns, omittedAtEnd: readonly string[] = []) =>
      openTable<Columns>(store, {
        name: "table",
        columns,
        key: ["a"],
        describe: () => "a row",
        omittedAtEnd,
      });

    it.each([
      { columns: { ...base, c: column.optionalText("c"), d: column.text("d") }, omitted: ["c"] },
      { columns: { ...base, c: column.optionalText("c"), d: column.optionalText("d") }, omitted: ["d", "c"] },
      { columns: { a: base.a, c: column.added(column.optionalText("c")), b: base.b }, omitted: [] },
      {
        columns: { ...base, d: column.added(column.optionalText("d")), c: column.optionalText("c") },
        omitted: ["c"],
      },
    ])("is rejected if columns that may be missing are not last: $omitted", ({ columns, omitted }) => {
      expect(() => declare(columns, omitted)).toThrow(/^table table: the tagged columns are a, /);
    });

    it.each([
      ["text", column.added(column.text("c"))],
      ["flag", column.added(column.flag("c"))],
      ["integer", column.added(column.integer("c"))],
      ["bytes", column.added(column.bytes("c"))],
      ["list", column.added(column.jsonList("c"))],
    ])("is rejected if an added column has a value in older rows: %s", (_kind, c) => {
      expect(() => declare({ ...base, c })).toThrow(
        "table table: the added column c has a value in rows older than the column; declare it optional",
      );
    });

    it("may have untagged columns anywhere", () => {
      const c = column.added(column.optionalText("c"));
      expect(() => declare({ ...base, c, d: column.untagged(column.text("d")) })).not.toThrow();
    });
  });
});
