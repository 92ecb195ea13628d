import { closeSync, openSync, writeSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readConfig } from "../../../src/config.ts";
import { createCryptoProvider } from "../../../src/crypto/create-provider.ts";
import type { CryptoProvider } from "../../../src/crypto/provider.ts";
import { createClientStore } from "../../../src/identity/clients.ts";
import { openIssuer } from "../../../src/identity/issuer.ts";
import { createIssuerStore } from "../../../src/identity/issuer-store.ts";
import { createRevocations } from "../../../src/identity/revocations.ts";
import { createUserStore } from "../../../src/identity/users.ts";
import { createServiceSecrets } from "../../../src/secrets/service-secrets.ts";
import { hashProposal } from "../../../src/services/defi/proposal.ts";
import { createDefiStore, type Proposal } from "../../../src/services/defi/store.ts";
import { createKey } from "../../../src/services/kms/create.ts";
import { createKeyCache } from "../../../src/services/kms/key-cache.ts";
import { destroyKey } from "../../../src/services/kms/life-cycle.ts";
import { createKmsStore } from "../../../src/services/kms/store.ts";
import { createNftStore, type Token } from "../../../src/services/nft/store.ts";
import { gatewaySecrets } from "../../../src/services/vpn/tables.ts";
import type { Store } from "../../../src/store/store.ts";
import { callRest } from "../../services/answers.ts";
import { serveApp } from "../../services/app-under-test.ts";
import { endAfterAll } from "../../support/at-end.ts";
import { describeClient } from "../../support/clients.ts";
import { copySqlitePlace, makeSqlitePlace, type Place } from "../../support/on-both.ts";
import { tables } from "../../support/open-store.ts";
import { runToEndHere } from "../../support/run-here.ts";
import { systemCaller } from "../../support/system-caller.ts";
import { makeTemporaryDirectory } from "../../support/temporary-directory.ts";
import { runCommand } from "./command-line.ts";

const verify = (place: Pick<Place, "settings">) => runCommand(place, ["store", "verify"]);

/**
 * A store with all kinds of records: three keys, the last of which is destroyed, a user, a client, an answer, the keys
 * of the issuer, the gateway and a log, an executed proposal, and a token that was transferred twice.
 */
const full: { directory: string; keyIds: readonly string[] } = { directory: "", keyIds: [] };
const atEnd = endAfterAll();
beforeAll(async () => {
  const place = await makeSqlitePlace(atEnd);
  const store = await place.open({ atEnd });
  const provider = await createCryptoProvider("openssl");
  const keys = createKmsStore(store);
  const cache = createKeyCache({ provider, keys });
  const parts = { provider, store, keys, cache, users: undefined, now: () => new Date() };
  const make = async (algorithm: string): Promise<string> => {
    const labels = { team: "payments" };
    const key = { alias: "", algorithm, usage: "", name: "", rotationPeriodSeconds: undefined, labels };
    return (await createKey(parts, key, systemCaller)).keyId;
  };
  full.directory = place.directory;
  full.keyIds = [await make("ML-DSA-44"), await make("ML-KEM-512"), await make("ML-DSA-44")];
  await destroyKey(parts, { handle: full.keyIds[2] ?? "", afterSeconds: 0, ...systemCaller });
  await cache.close();
  await createUserStore(store).add({ name: "ada", role: "user", passwordHash: "none" }, new Date());
  await createClientStore(store).add(describeClient("shop"), new Date());
  const issuer = createIssuerStore(store);
  await openIssuer({ provider, store: issuer, now: () => new Date() }).then(({ close }) => close());
  await createServiceSecrets(store, gatewaySecrets);
  await addExecutedProposal(store, provider);
  await addTransferredToken(store);
  const origin = { clientAddress: "192.0.2.7", requestId: "call-1" };
  await createRevocations(store).add({ tokenId: "token-1", client: "shop", origin });
  const call = { userId: "ada", idempotencyKey: "key-1", requestHash: "aa" };
  const codec = { encode: () => new Uint8Array(1), decode: () => "" };
  await store.runIdempotent(call, codec, (write) => write(async () => ""));
  await store.close();
  await provider.close();
});

const createdAt = new Date("2026-01-02T03:04:05Z");

async function addExecutedProposal(store: Store, provider: CryptoProvider): Promise<void> {
  const { publicKey, secretKey } = await provider.generateKeyPair("ML-DSA-65");
  const governance = createDefiStore(store);
  const walletId = "multisig-1";
  const proposal: Proposal = {
    ...{ proposalId: "proposal-1", walletId, data: new Uint8Array(1), title: "", threshold: 1, owner: "ada" },
    ...{ status: "EXECUTED", signedBy: [], createdAt, expiresAt: undefined, executedAt: createdAt },
  };
  const signer = { walletId, address: "0x1", publicKey: publicKey.exportRaw(), isServerHeld: false };
  const signature = await provider.sign(secretKey, hashProposal(proposal));
  await store.write(async (transaction) => {
    await governance.signers.insert(transaction, signer);
    await governance.proposals.insert(transaction, proposal);
    await governance.addSignature(transaction, proposal, signer.address, signature);
  });
}

async function addTransferredToken(store: Store): Promise<void> {
  const tokens = createNftStore(store);
  const token: Token = {
    ...{ tokenId: "nft-1", name: "n", description: "", artworkUri: "", metadataHash: "", minter: "ada" },
    ...{ creatorPublicKey: new Uint8Array(1), creatorSignature: new Uint8Array(1), mintedAt: createdAt },
    ...{ creatorAddress: "0xa", currentOwner: "0xa", transferCount: 0 },
  };
  await store.write(async (transaction) => {
    await tokens.insert(transaction, token);
    await tokens.transfer(transaction, token, "0xb", createdAt);
    const moved = { ...token, currentOwner: "0xb", transferCount: 1 };
    await tokens.transfer(transaction, moved, "0xc", createdAt);
  });
}

/** Overwrites the pages of these indexes, which no record check reads. */
function damageIndexes({ location }: Place, table: string): void {
  if (location.kind !== "sqlite") throw new Error("only SQLite has a file");
  const database = new DatabaseSync(location.path);
  const [{ size } = { size: 0 }] = database.prepare("select page_size as size from pragma_page_size").all();
  const pages = database
    .prepare("select rootpage from sqlite_schema where type = 'index' and tbl_name = ?")
    .all(table);
  database.close();
  expect(pages).not.toEqual([]);
  const file = openSync(location.path, "r+");
  for (const { rootpage } of pages)
    writeSync(file, Buffer.alloc(Number(size), 0xa5), 0, Number(size), (Number(rootpage) - 1) * Number(size));
  closeSync(file);
}

const secretOf = (keyId: string) => `kms_keys/${keyId}/secret-key`;

describe("qsp store verify", () => {
  it("exits with 0 and one sentence if nothing was changed", async () => {
    const { code, stdout } = await verify(await copySqlitePlace(full.directory));
    expect({ code, stdout }).toEqual({
      code: 0,
      // Two of the keys, the root key, and the keys of the audit log, the issuer and the gateway.
      stdout:
        "The store is intact: 7 secrets, 3 keys, 9 other records and 0 checkpoints are unchanged. To check entries and blocks, run qsp audit verify and qsp chain verify.\n",
    });
  });

  /** Statements run behind the server's back, and the resulting report. */
  const changes: readonly (readonly [statement: string | ((...keyIds: string[]) => string), said: RegExp])[] =
    [
      ["update users set role = 'admin'", /^The record of user ada was changed outside of the server\.$/m],
      ["update oauth_clients set may_exchange = 1", /^The record of client shop was changed /m],
      ["update oauth_clients set role = 'xser'", /^The record of client shop was changed /m],
      ["update list_counts set row_count = 0", /The stored count of the list kms_keys/],
      ["delete from list_counts where list_name = 'kms_keys'", /The stored count of the list kms_keys/],
      [
        "update list_counts set list_name = 'kms_keys by=eve' where list_name = 'kms_keys by=system'",
        /kms_keys by=eve/,
      ],
      ["update kms_keys set is_primary = 5", /The key key-/],
      ["update kms_keys set labels = '{}'", /The key key-/],
      [
        "delete from kms_labels",
        /^The label index lacks a label of the key key-.*: lists by label miss it\.$/m,
      ],
      ["update audit_head set head_tag = 'ab'", /^The log audit is damaged from entry 5 on: the end of /m],
      [
        "insert into blockchain_head (id, chain_length, head_hash, record_tag) values (1, 9, 'ab', 'cd')",
        /^The log blockchain is damaged from entry 2 on: the stored end of the chain was changed /m,
      ],
      ["update identity_head set id = 2", /^The identity log is damaged from entry 1 on: /m],
      [
        "delete from identity_entries where operation = 'REVOKE_TOKEN'",
        /^The identity log is damaged from entry \d+ on: /m,
      ],
      ["update idempotent_answers set user_id = 'grace'", /^The answer to idempotency key key-1 of user gr/m],
      [
        (first) => `update kms_keys set alias = 'other' where key_id = '${first}'`,
        /key-.* record was changed outside the server/,
      ],
      [(first) => `delete from kms_keys where key_id = '${first}'`, /key-.* record is missing/],
      [
        (_first, _second, third) => `update kms_keys set key_state = 'ACTIVE' where key_id = '${third}'`,
        /key-.* status ACTIVE, the audit log DESTROYED/,
      ],
      [
        (_first, second = "") => `delete from sealed_secrets where identity = '${secretOf(second)}'`,
        /key-.* secret key is missing/,
      ],
      [
        "update defi_signatures set signature = zeroblob(3309)",
        /^The signatures of proposal proposal-1 were changed /m,
      ],
      ["delete from defi_signatures", /^The signatures of proposal proposal-1 were changed /m],
      ["delete from nft_transfers where transfer_index = 1", /^The history of token nft-1 was changed /m],
      ["delete from nft_transfers where transfer_index = 2", /^The history of token nft-1 was changed /m],
      [
        "delete from sealed_secrets where identity like 'issuer_keys/%'",
        /^The secret key of issuer key \S+ is missing\.$/m,
      ],
      ...["vpn/gateway/kem-key", "vpn/gateway/identity-key"].map((secret): [string, RegExp] => [
        `delete from sealed_secrets where identity = '${secret}'`,
        new RegExp(`^The secret ${secret} is missing\\.$`, "m"),
      ]),
    ];

  it.each(changes)("exits with 1 and names what was changed: %s", async (statement, said) => {
    const place = await copySqlitePlace(full.directory);
    await place.query(typeof statement === "string" ? statement : statement(...full.keyIds));
    const { code, stdout } = await verify(place);
    expect(code).toBe(1);
    expect(stdout).toMatch(said);
    expect(stdout).toMatch(/^The store is damaged: \d+ faults? /m);
  });

  it("checks every table whose rows have tags, besides keys and logs", async () => {
    const place = await makeSqlitePlace();
    await (await place.open()).close();
    const rows = await place.query(
      `select tables.name as name from sqlite_schema as tables, pragma_table_info(tables.name) as columns
       where tables.type = 'table' and columns.name = 'record_tag' order by tables.rowid`,
    );
    const tagged = rows.map(({ name }) => String(name));
    const known = tables.records.map(({ name }): string => name);
    // Keys and verifiable logs have their own verification, and `chain verify` checks the chain.
    expect(tagged.filter((table) => !known.includes(table)).sort()).toEqual([
      ...["blockchain_head", "kms_keys", "tlog_checkpoints", "tlog_hashes"],
      // If this table was changed, the next verification reads all entries.
      "tlog_verified",
    ]);
  });

  it("exits with 1 and names the secret and its key if the sealed half belongs to a different key", async () => {
    const place = await copySqlitePlace(full.directory);
    const [first = "", second = ""] = full.keyIds;
    await place.query(
      `update sealed_secrets set ciphertext = (select ciphertext from sealed_secrets where identity = $2)
       where identity = $1`,
      [secretOf(first), secretOf(second)],
    );
    const { code, stdout } = await verify(place);
    expect(code).toBe(1);
    expect(stdout).toContain(`secret ${secretOf(first)} cannot be decrypted`);
    expect(stdout).toContain(`key ${first} is damaged: its secret key was changed outside the server`);
  });

  it("lists twenty faults, and counts the others", async () => {
    const place = await copySqlitePlace(full.directory);
    const [first = ""] = full.keyIds;
    for (let i = 0; i < 30; i += 1)
      await place.query(
        `insert into sealed_secrets select identity || '${i}', master_key_id, wrapped_data_key, ciphertext
         from sealed_secrets where identity = $1`,
        [secretOf(first)],
      );
    const { code, stdout } = await verify(place);
    const lines = stdout.trimEnd().split("\n");
    expect([code, lines.length, lines.at(-2)]).toEqual([1, 22, "… and 10 more."]);
  });

  it("exits with 1 and names the overwritten pages, even if they contain no records", async () => {
    const place = await copySqlitePlace(full.directory);
    damageIndexes(place, "wallets");
    const { code, stdout, stderr } = await verify(place);
    const lines = stdout.trimEnd().split("\n");
    expect({ code, stderr }).toEqual({ code: 1, stderr: "" });
    expect(lines.slice(0, -1)).toContainEqual(expect.stringMatching(/^The file is damaged: .* page \d+/));
    expect(lines.at(-1)).toMatch(/^The store is damaged: \d+ faults? in its file; restore a backup\.$/);
  });
});

const timeout = 180_000;

describe("chain verify", { timeout }, () => {
  /** A data directory left by a server, with a chain of 4 blocks. */
  const chainDir = makeTemporaryDirectory(afterAll);
  beforeAll(async () => {
    const { url, close } = await serveApp(readConfig(["--port", "0", "--data-dir", chainDir], {}));
    await callRest(url, "POST /api/blockchain/register-node", {});
    for (let i = 0; i < 3; i += 1)
      await callRest(url, "POST /api/blockchain/add-block", { data: "aGVsbG8=" });
    await close();
  }, timeout);

  it("reports that a chain is valid, and its length", async () => {
    expect(await runToEndHere(["chain", "verify", "--data-dir", chainDir])).toMatchObject({
      code: 0,
      stdout: "The chain is valid: 4 blocks.\n",
      stderr: expect.stringContaining("4 of 4 blocks verified"),
    });
  });

  it("exits with 1 and names the first bad block and the reason", async () => {
    const place = await copySqlitePlace(chainDir);
    await place.query("update blockchain_blocks set data = x'00' where block_index = 2");
    const { code, stdout } = await runToEndHere(["chain", "verify", ...place.settings]);
    expect([code, stdout]).toEqual([
      1,
      expect.stringMatching(/^The chain is broken at block 2: HASH, .*\n$/),
    ]);
  });
});
