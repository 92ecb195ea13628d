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
import { createUserStore } from "../../src/identity/users.ts";
import { openStore } from "../../src/open-store.ts";
import { type Columns, column } from "../../src/records/columns.ts";
import { openTable } from "../../src/records/record-table.ts";
import { type AnyTable, intact } from "../../src/records/table-declaration.ts";
import { equalTags, tagRecord } from "../../src/records/tag.ts";
import { verifyRecords } from "../../src/records/verify-records.ts";
import { masterKeyIn } from "../../src/secrets/master-key.ts";
import { genesis } from "../../src/services/blockchain/block.ts";
import { createChainStore } from "../../src/services/blockchain/store.ts";
import { headTable } from "../../src/services/blockchain/tables.ts";
import { contractTable } from "../../src/services/dapp/tables.ts";
import { createDefiStore, type Proposal } from "../../src/services/defi/store.ts";
import { newDeviceState } from "../../src/services/iot/device-state.ts";
import { createIotStore, type Device } from "../../src/services/iot/store.ts";
import { createKmsStore } from "../../src/services/kms/store.ts";
import type { KeyName, KeyRecord } from "../../src/services/kms/tables.ts";
import { describeGrantEnd, grantEnds, keyTable } from "../../src/services/kms/tables.ts";
import { createNftStore, type Token } from "../../src/services/nft/store.ts";
import { createVpnStore } from "../../src/services/vpn/store.ts";
import { walletTable } from "../../src/services/wallet/tables.ts";
import type { Store } from "../../src/store/store.ts";
import type { WriteTransaction } from "../../src/store/write-transaction.ts";
import { present } from "../services/answers.ts";
import { coreTables } from "../support/open-store.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";

const tagKey = new Uint8Array(32).fill(7);
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
    tagKey,
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
  ...{ deviceId: "device-1", deviceName: "Boiler", deviceType: "sensor", publicKey, owner, registeredAt: at },
  ...{ isSimulated: true, vendorPublicKey: new Uint8Array([9]), hasSigningContexts: false },
};
const keyRecord: KeyRecord = {
  ...{ keyId: "key-1", alias: "payroll", algorithm: "ML-DSA-65", usage: "SIGN", state: "ACTIVE" },
  ...{ publicKey, owner, createdAt: at, isPrimary: false, labels: {}, isImported: false },
  ...{ name: undefined, version: undefined, destroyAt: undefined, replacedBy: undefined, draft: undefined },
};
const keyName: KeyName = {
  ...{ owner, name: "payroll", algorithm: "ML-DSA-65", labels: {}, versions: 0, createdAt: at },
  ...{ rotationPeriodSeconds: undefined, nextRotationAt: undefined, destroyAfterSeconds: undefined },
  ...{ isImportOnly: false, signsMu: false, primaryKeyId: undefined },
};
const token: Token = {
  ...{ tokenId: "token-1", name: "Night", description: "At sea", metadataHash: zeroes, currentOwner: "0x02" },
  ...{ artworkUri: "https://example.com/1.png", creatorAddress: "0x01", creatorPublicKey: publicKey },
  ...{ creatorSignature: new Uint8Array([4, 5]), transferCount: 0, minter: owner, mintedAt: at },
};
const proposal: Proposal = {
  ...{ proposalId: "proposal-1", walletId: "wallet-1", data: new Uint8Array([6]), title: "Raise" },
  ...{ threshold: 2, status: "PENDING", signedBy: [], owner, createdAt: at },
  ...{ expiresAt: undefined, executedAt: undefined },
};
const grant = {
  ...{ grantId: "grant-1", owner, ownerName: "ada", keyId: "key-1", name: "", expiresAt: later },
  ...{ grantee: "user:bob", granteeName: "bob", operations: ["SIGN", "VERIFY"], createdAt: at },
};
const importToken = {
  ...{ importId: "import-1", owner, method: "HPKE", publicKey, jobName: "" },
  ...{ expiresAt: later, createdAt: at },
};
const tunnel = {
  ...{ tunnelId: "tunnel-1", peerName: "laptop", addressNumber: 2, publicKey, isServerHeld: true },
  ...{ owner, createdAt: at },
};

/** Names of the tables whose rows have tags. */
async function listTagged(): Promise<string[]> {
  const tables = await store.reader.introspection.getTables();
  const tagged = tables.filter(({ columns }) => columns.some(({ name }) => name.endsWith("_tag")));
  return tagged.map(({ name }) => name);
}

/** Writes in one transaction. */
const write = (work: (transaction: WriteTransaction) => Promise<unknown>) => () =>
  store.write(async (transaction) => void (await work(transaction)));

/** Adds a device and changes its state. */
const deviceState = (deviceId: string, change: Partial<typeof newDeviceState>) =>
  write(async (transaction) => {
    const iot = createIotStore(store);
    await iot.insert(transaction, { ...device, deviceId }, secret);
    await iot.saveState(transaction, deviceId, { ...newDeviceState, ...change });
  });

/** Adds a key. */
const key = (change: Partial<KeyRecord>) =>
  write((transaction) => createKmsStore(store).insert(transaction, { ...keyRecord, ...change }, secret));

const issuerKey = {
  keyId: "issuer-1",
  publicKey: { algorithm: "ML-DSA-65", exportRaw: () => publicKey } as PublicKey,
  seed: secret,
};

/** How each kind of record is written, by table and title. */
const records: Readonly<Record<string, () => Promise<unknown>>> = {
  "users: user": () =>
    createUserStore(store).add({ name: "ada", role: "auditor", passwordHash: "scrypt$1" }, at),
  "oauth_clients: client": () =>
    createClientStore(store).add(
      {
        ...{ name: "orders", role: "user", secretHash: "sha256$1", mayExchange: true },
        ...{ scopes: ["kms.read", "kms.sign"], audiences: ["https://a.example.com"], resources: [] },
      },
      at,
    ),
  "issuer_keys: issuer key": () => createIssuerStore(store).addFirstKey(issuerKey, at),
  "issuer_keys: retired issuer key": () =>
    createIssuerStore(store).replaceKey({ ...issuerKey, keyId: "issuer-2" }, later, later),
  "wallets: wallet": write((transaction) =>
    openTable(store, walletTable).insert(
      transaction,
      { walletId: "wallet-1", label: "savings", address: "0x03", publicKey, owner, createdAt: at },
      secret,
    ),
  ),
  "dapp_contracts: contract": write((transaction) =>
    openTable(store, contractTable).insert(transaction, {
      ...{ contractId: "contract-1", name: "Escrow", codeHash: zeroes, publicKey, owner, deployedAt: at },
      signature: new Uint8Array([4, 5]),
    }),
  ),
  "defi_wallets: shared wallet": write((transaction) =>
    createDefiStore(store).insertWallet(transaction, {
      ...{ walletId: "wallet-1", threshold: 2, signers: ["0x01", "0x02"], owner, createdAt: at },
    }),
  ),
  "defi_signers: server-held signer": write((transaction) =>
    createDefiStore(store).signers.insert(
      transaction,
      { walletId: "wallet-1", address: "0x01", publicKey, isServerHeld: true },
      secret,
    ),
  ),
  "defi_proposals: proposal": write((transaction) =>
    createDefiStore(store).proposals.insert(transaction, proposal),
  ),
  "defi_proposals: executed proposal": write(async (transaction) => {
    const defi = createDefiStore(store);
    const expiring = { ...proposal, proposalId: "proposal-2", expiresAt: later };
    await defi.proposals.insert(transaction, expiring);
    const signed = await defi.addSignature(transaction, expiring, "0x01", new Uint8Array([4]));
    await defi.proposals.update(transaction, intact(signed), { status: "EXECUTED", executedAt: later });
  }),
  "kms_keys: key": key({}),
  "kms_keys: destroyed key": write(async (transaction) => {
    const keys = createKmsStore(store);
    const keyId = "key-2";
    await keys.insert(transaction, { ...keyRecord, keyId }, secret);
    transaction.audit({ keyId, operation: "CREATE", user: "ada", outcome: "OK", details: "" });
    const found = present(await keys.findForChange(transaction, keyId));
    await keys.change(transaction, found, { state: "DESTROYED" });
  }),
  "kms_keys: key with a name": key({ keyId: "key-3", name: "payroll", version: 1, isPrimary: true }),
  "kms_keys: key with labels": key({ keyId: "key-4", labels: { team: "pay", env: "test" } }),
  "kms_keys: imported rotated version": key({
    keyId: "key-5",
    state: "ROTATED",
    name: "payroll",
    version: 2,
    isImported: true,
    replacedBy: "key-6",
  }),
  "kms_keys: composite key": key({
    keyId: "key-8",
    algorithm: "MLDSA65-Ed25519-SHA512",
    draft: "draft-ietf-lamps-pq-composite-sigs-19",
  }),
  "kms_keys: key due for destruction": key({
    keyId: "key-7",
    state: "DESTROY_SCHEDULED",
    destroyAt: later,
  }),
  "kms_names: key name": write((transaction) => createKmsStore(store).names.insert(transaction, keyName)),
  "kms_names: name that is rotated": write((transaction) =>
    createKmsStore(store).names.insert(transaction, {
      ...{ ...keyName, name: "rotating", labels: { team: "pay" }, versions: 2, primaryKeyId: "key-5" },
      ...{ rotationPeriodSeconds: 86_400, nextRotationAt: later, destroyAfterSeconds: 60, signsMu: true },
    }),
  ),
  "kms_grants: grant": write((transaction) => createKmsStore(store).grants.insert(transaction, grant)),
  "kms_imports: import token": write((transaction) =>
    createKmsStore(store).imports.insert(transaction, importToken, secret),
  ),
  "iot_devices: device": write((transaction) => createIotStore(store).insert(transaction, device, secret)),
  "iot_devices: device with contexts": write((transaction) =>
    createIotStore(store).insert(
      transaction,
      { ...device, deviceId: "device-2", isSimulated: false, hasSigningContexts: true },
      undefined,
    ),
  ),
  "iot_devices: state of a new device": write((transaction) =>
    createIotStore(store).insert(transaction, { ...device, deviceId: "device-3" }, secret),
  ),
  "iot_devices: state with firmware": deviceState("device-5", {
    ...{ reportedPath: "sensor/image", reportedVersion: "2", reportedHash: zeroes, reportedAt: at },
    previousVersion: "3",
  }),
  "iot_devices: device state": deviceState("device-4", {
    ...{ lastSeenAt: at, lastSequence: 41, readingForm: "NUMBERED", firmwareVersion: 3 },
    ...{ firmwareHash: zeroes, formerImages: ["1".repeat(64), "2".repeat(64)] },
  }),
  "iot_challenges: challenge": write((transaction) =>
    createIotStore(store).insertChallenge(transaction, {
      ...{ challenge: new Uint8Array(32), deviceId: "device-1", client: "127.0.0.1", expiresAt: later },
    }),
  ),
  "iot_challenges: used challenge": write(async (transaction) => {
    const iot = createIotStore(store);
    const found = present(await iot.findChallenge(transaction, new Uint8Array(32)));
    await iot.useChallenge(transaction, found, at);
  }),
  "vpn_tunnels: tunnel": write((transaction) => createVpnStore(store).insert(transaction, tunnel, secret)),
  "blockchain_validators: validator": write((transaction) =>
    createChainStore(store).validators.insert(
      transaction,
      { address: "0x01", name: "north", publicKey, owner, createdAt: at },
      secret,
    ),
  ),
  "blockchain_head: end of the chain": write((transaction) =>
    createChainStore(store).append(transaction, { length: 1, headHash: genesis.blockHash }, [
      {
        ...{ ...genesis, index: 1, prevHash: genesis.blockHash, blockHash: zeroes },
        signature: new Uint8Array([8]),
      },
    ]),
  ),
  "nft_tokens: token": write((transaction) => createNftStore(store).insert(transaction, token)),
  "nft_transfers: transfer": write(async (transaction) => {
    const nft = createNftStore(store);
    const { record } = present(await nft.find({ tokenId: "token-1" }, transaction));
    await nft.transfer(transaction, record, "0x03", later);
  }),
  "nft_tokens: transferred token": async () => {},
};

const tags: Readonly<Record<string, string>> = {
  "users: user": "bc147eebba67ebb8227dc58e293aa084f89d692c021bf84d17d7fed5c38a1252",
  "oauth_clients: client": "fd5680c5d9edef99843cc8cd96e437b6d439a23a9bda749f5af3aec06b4656cf",
  "issuer_keys: issuer key": "c7a39f67e02bb6b5ea5c79f97e45378a40c6492f475cd3fee22242625980ca9d",
  "issuer_keys: retired issuer key": "6b82309a35d49615e5d91c794b3565545fcd38e6b7501be7a24c957ffe66c503",
  "wallets: wallet": "c2fdb53d938051a7fc1baf356a80d9eaaaab08d759ace1c3b90c081ff089ef27",
  "dapp_contracts: contract": "94de4ac1ebd6e205064449569cd9f33e9438d1d1ccbd416f33445e16cafe8a3e",
  "defi_wallets: shared wallet": "a52e56ce914bc417cb1ca4e04d0759bb9141ada09d6674dc5db0c34bc443fc8c",
  "defi_signers: server-held signer": "bd9689f71cd54500f77c4c59126deaa38dd9d4b6fc75188483f667872fcd63b1",
  "defi_proposals: proposal": "6eb2165727b4224fb14eb1b2f69f9a925fba462eea14e7f01e2ed3822bb7c6fc",
  "defi_proposals: executed proposal": "4adc9feea4e057c15d3c372df11d8d02200714521ebf9d69e272a038ca9b8063",
  "kms_keys: key": "44596c53584339cc807ebf3322c3b652e99c0b1d6ad82eaec92a6c41dcd22c7b",
  "kms_keys: destroyed key": "1a4cd8721a3da71ada9b7740d53558903f3f726012bcb9609bff342cad946e5c",
  "kms_keys: key with a name": "0087376d266533662888e342eaacd47b811f128da7bfc9489388a051407da3a0",
  "kms_keys: key with labels": "1b4c70b167041f0f86d8c98338766165c484739ff08d6e501b5aa18cacdc7590",
  "kms_keys: imported rotated version": "b74a9f9bbd457a9a63f24b9e91a65694e4cb2ef0a83b25f5fb7d69a6f704a681",
  "kms_keys: composite key": "e28a0690634f35b034076168c3db7b00a3e1713698edc754cef4591c45faeeb6",
  "kms_keys: key due for destruction": "56660237e626a0914b93ae38c208cab62a37b84103d0321e429e61922c5eb16c",
  "kms_names: key name": "f46eec17056489fadfd3e72ea82c6bb7de71c00782a87c3cd143be64683f9fc8",
  "kms_names: name that is rotated": "21bafeb47f2fa8d07121dd19471c3d8689d00c1a06881de6f43517a25f512865",
  "kms_grants: grant": "bf71380ef55641a5d7283f9573b9b7e5878a9c48ad7f748dcfdaeb3904038326",
  "kms_imports: import token": "468053cdf96248299a64ab43176e12dafb518373378da6bc00b3dec48c48f77b",
  "iot_devices: device": "3233db2520cf6c2b23c1e672e40bf6d3a5d1974f63f4d669311601dbfc0ef499",
  "iot_devices: device with contexts": "669977778fa30e95ba75c363d7eb160b86a40418f7ce6e1fed5be92233bbeeef",
  "iot_devices: state of a new device": "421cf256f01468664bcf4377020b508fe19c214fb987ef161145038696c3b5ee",
  "iot_devices: state with firmware": "d767ebe8cb86cb00b7f7cfe6c1f37050f4fc0f859f38630e962d02da0935652b",
  "iot_devices: device state": "9a0d403d922fffb1fa2ad83d0dce1003efe02d457424ffcc4f54934242f23f15",
  "iot_challenges: challenge": "76eac8efe69fc9947a08e5f8fb07b87063be91e36954a26b681386ae1c7fd26e",
  "iot_challenges: used challenge": "f4151ceb4cde350d40cae475ad07bad6ff9999dc35a2b3ff596523c72199053b",
  "vpn_tunnels: tunnel": "a82964cd5a8b6f51fa2ea9075c4a92ff312d1acf1e6d6dc1bc5dd774f0e71343",
  "blockchain_validators: validator": "427d07f662b6b3b79e940de22be781d90260e17b54ef201667e3ea2955081bdf",
  "blockchain_head: end of the chain": "9c89d6ee685bca1f6d7eb86f4d3025f126c218803c66cd134828d7b5d6a0a1b9",
  "nft_tokens: token": "a1a1777a0ad6bc5157d34b43ec7b3a131db223a30a9a5b587329ede62d3419b3",
  "nft_transfers: transfer": "039dab1de949c3e587743cbaa5c60a1d401e442013e065010cc845ee49063678",
  "nft_tokens: transferred token": "659a4387998053c8ac601637545d73abf08edecfefa88f3905d57bd17372cb28",
};

/** Reads the tag of the last row; for a retired record, of the row before it. */
async function readTag(title: string): Promise<unknown> {
  const [table = ""] = title.split(":");
  const rows = await anyTable(store.reader).selectFrom(table).selectAll().execute();
  return rows.at(title.includes("retired") ? -2 : -1)?.[title.includes("state") ? "state_tag" : "record_tag"];
}

it("the entry about the end of a grant never changes, because it records which grants have ended", () => {
  expect(grantEnds.map((end) => describeGrantEnd(grant, end))).toEqual([
    "grantId=grant-1, grantee=bob, reason=revoked",
    "grantId=grant-1, grantee=bob, reason=expired",
  ]);
});

// All tests share one store: the first ones fill it, and the last ones change its tables.
describe("record tags", { shuffle: false }, () => {
  it.each(Object.entries(records))("never change: %s", async (title, writeRecord) => {
    await writeRecord();
    expect(await readTag(title)).toBe(tags[title]);
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

  it("are in the rows of each table, or there is a reason for having none", async () => {
    const tagged = await listTagged();
    const names = listTables(coreTables.owners).map(([name]) => name);
    const untagged = names.filter((name) => !tagged.includes(name));
    expect(untagged.toSorted()).toEqual(Object.keys(untaggedTables).toSorted());
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
  const declarations: readonly AnyTable[] = [...coreTables.records, keyTable, headTable];
  /** The tables as the later version declares them. */
  const laterTables = declarations.map((declaration): AnyTable & { tagKind: string } => {
    const { name, tagKind = name } = declaration;
    return { ...declaration, tagKind, columns: { ...declaration.columns, ...laterColumns } };
  });

  /** Columns that verification cannot compare with anything, and why that is harmless. */
  const unverified: Readonly<Record<string, string>> = {
    position: "only orders lists",
    "blockchain_head id": "chain verify looks for the row by its number, and misses it",
    "iot_devices last_seen_at_ms": "a time for people; it changes with each reading and proves nothing",
  };

  /** Changes the first row that has a value in a column. */
  async function replace(table: string, name: string, from: AnyRow[string], to: AnyRow[string]) {
    const ref = sql.ref(name);
    const row = sql`(select rowid from ${sql.table(table)} where ${ref} is ${from} limit 1)`;
    const update = sql`update ${sql.table(table)} set ${ref} = ${to} where rowid = ${row}`;
    await store.write(async ({ db }) => void (await update.execute(db)));
  }

  const columnsOf = ({ tagColumn = "record_tag", columns }: AnyTable): string[] => [
    tagColumn,
    ...Object.values<{ name: string }>(columns).map(({ name }) => name),
  ];

  it.each(declarations)(
    "reveal a value changed by someone else in any column: $name, key $key",
    async (declaration) => {
      const { name } = declaration;
      const verify = async () => (await verifyRecords(store, [declaration])).damaged;
      const others = declarations
        .filter((one) => one.name === name && one !== declaration)
        .flatMap(columnsOf);
      const own = columnsOf(declaration);
      const tables = await store.reader.introspection.getTables();
      const columns = tables.find((table) => table.name === name)?.columns.map((one) => one.name) ?? [];
      const missed: string[] = [];
      for (const changed of columns.filter((one) => own.includes(one) || !others.includes(one))) {
        const [row] = await anyTable(store.reader).selectFrom(name).selectAll().limit(1).execute();
        const value = row?.[changed] ?? null;
        await replace(name, changed, value, changeOf(value));
        if ((await verify()).length === 0) missed.push(changed);
        await replace(name, changed, changeOf(value), value);
      }
      const harmless = (one: string) => one in unverified || `${name} ${one}` in unverified;
      expect(missed.filter((one) => !harmless(one))).toEqual([]);
      expect(await verify()).toEqual([]);
    },
  );

  it("do not hide that the secret of a record is missing, which its table declares", async () => {
    const secrets = await store.reader.selectFrom("sealed_secrets").selectAll().execute();
    const verify = async () => (await verifyRecords(store, coreTables.records)).withoutSecret;
    const before = await verify();
    await store.write(async ({ db }) => void (await db.deleteFrom("sealed_secrets").execute()));
    const missing = await verify();
    await store.write(
      async ({ db }) => void (await db.insertInto("sealed_secrets").values(secrets).execute()),
    );
    const names = secrets.filter(({ identity }) => !/^(store|kms_keys)\//.test(identity));
    expect([before, missing.length, names.length]).toEqual([[], 10, 10]);
  });

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
      const declared = (await listTagged()).filter((name) => !/^(tlog|audit|identity)_/.test(name));
      expect(declared.toSorted()).toEqual([...new Set(laterTables.map(({ name }) => name))].toSorted());
    });

    it.each(laterTables)("leaves older rows intact, and is protected: $tagKind", async (later) => {
      const { checked, damaged } = await verifyRecords(store, [later]);
      expect(damaged).toEqual([]);
      expect(checked).toBeGreaterThan(0);
      const { readRow, toTaggedRow } = openTable(store, later);
      const isIntact = (row: Readonly<AnyRow>) => readRow(row).isIntact;
      const [older] = await anyTable(store.reader).selectFrom(later.name).selectAll().execute();
      const tags = laterValues.map((values) => {
        const forged = { ...older, ...values };
        expect(isIntact(forged), JSON.stringify(values)).toBe(false);
        const tagged = toTaggedRow(readRow(forged).record);
        const row = { ...forged, ...tagged };
        expect(isIntact(row)).toBe(true);
        expect(isIntact({ ...row, ...none })).toBe(false);
        return tagged[later.tagColumn ?? "record_tag"];
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
