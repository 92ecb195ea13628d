/**
 * Lists at their largest: no page exceeds 4 MiB over REST, whose messages are the longest, and all pages together
 * contain every row.
 */
import { beforeAll, describe, expect, it } from "vitest";
import { readConfig } from "../../src/config.ts";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import { openTable } from "../../src/records/record-table.ts";
import { createServiceSecrets } from "../../src/secrets/service-secrets.ts";
import { createChainStore } from "../../src/services/blockchain/store.ts";
import { contractTable } from "../../src/services/dapp/tables.ts";
import { createDefiStore } from "../../src/services/defi/store.ts";
import { createIotStore } from "../../src/services/iot/store.ts";
import { createKmsStore } from "../../src/services/kms/store.ts";
import { createNftStore } from "../../src/services/nft/store.ts";
import { createVpnStore } from "../../src/services/vpn/store.ts";
import { gatewaySecrets } from "../../src/services/vpn/tables.ts";
import { walletTable } from "../../src/services/wallet/tables.ts";
import { storeSettings } from "../../src/settings/store-settings.ts";
import { type AccessServer, makeDatabase, startAccessServer } from "../access/access-server.ts";
import { endAfterAll } from "../support/at-end.ts";
import { openStore } from "../support/open-store.ts";

const rows = 1001;
const limitBytes = 4 * 1024 * 1024;
/** The largest text in UTF-8, and the largest in JSON. */
const names = ["\u{1f511}".repeat(255), '"'.repeat(255)];

const atEnd = endAfterAll();
let server: AccessServer;
let authorization = "";

beforeAll(async () => {
  const database = await makeDatabase(atEnd);
  await fill(database);
  server = await startAccessServer({ atEnd, database });
  authorization = `Bearer ${(await server.makePerson("admin")).token}`;
}, 300_000);

/** Each list: its REST path, and the field of its rows. */
const lists = [
  ["ListKeys", "/api/kms/keys", "keys"],
  ["GetAuditLog", "/api/kms/audit", "auditLog"],
  ["ListDevices", "/api/iot/devices", "devices"],
  ["ListTunnels", "/api/vpn/tunnels", "tunnels"],
  ["ListContracts", "/api/dapp/contracts", "contracts"],
  ["ListWallets", "/api/wallet/list", "wallets"],
  ["ListWallets of governance", "/api/defi/wallets", "wallets"],
  ["ListProposals", "/api/defi/proposals", "proposals"],
  ["GetChain", "/api/blockchain/chain", "blocks"],
  ["ListValidators", "/api/blockchain/validators", "validators"],
  ["ListTokens", "/api/nft/list", "tokens"],
] as const;

describe("a page of 1,000 of the largest rows", { timeout: 300_000 }, () => {
  it.each(lists)("is at most 4 MiB over REST: %s", async (_, path, field) => {
    let [count, pageToken, largest] = [0, "", 0];
    do {
      const target = `${server.url}${path}?pageSize=1000&pageToken=${pageToken}`;
      const text = await (await fetch(target, { headers: { authorization } })).text();
      const page = JSON.parse(text);
      count += page[field].length;
      pageToken = page.nextPageToken;
      largest = Math.max(largest, Buffer.byteLength(text));
    } while (pageToken !== "");
    expect(count).toBeGreaterThanOrEqual(rows);
    expect(largest).toBeLessThanOrEqual(limitBytes);
  });
});

const plainKey = {
  ...({ algorithm: "ML-DSA-87", usage: "SIGN", state: "ACTIVE" } as const),
  publicKey: new Uint8Array(2592),
  ...{ name: undefined, version: undefined, isPrimary: false, isImported: false, labels: {} },
  ...{ destroyAt: undefined, replacedBy: undefined, draft: undefined },
};
const plainDevice = {
  ...{ publicKey: new Uint8Array(1312), vendorPublicKey: new Uint8Array(2592) },
  ...{ isSimulated: true, hasSigningContexts: false },
};

/** Fills the store with the largest rows that the API's rules allow. */
async function fill(database: readonly string[]): Promise<void> {
  const provider = await createCryptoProvider("openssl");
  const store = await openStore({ ...storeSettings(readConfig([...database], {})), provider });
  const owner = "ada";
  const createdAt = new Date();
  const secret = new Uint8Array(32);
  const addressOf = (i: number) => `0x${i.toString(16).padStart(40, "0")}`;
  const hashOf = (i: number) => i.toString(16).padStart(64, "0");
  const nameOf = (i: number) => names[i % names.length] ?? "";
  const signature = new Uint8Array(3309).fill(255);
  const publicKey = new Uint8Array(1952).fill(255);
  const [chain, keys, governance] = [createChainStore(store), createKmsStore(store), createDefiStore(store)];
  const [devices, tokens, tunnels] = [createIotStore(store), createNftStore(store), createVpnStore(store)];
  const [contracts, wallets] = [openTable(store, contractTable), openTable(store, walletTable)];
  // A server creates them before it registers tunnels.
  await createServiceSecrets(store, gatewaySecrets);
  const signers = Array.from({ length: 100 }, (_, i) => addressOf(i));
  for (let from = 0; from < rows; from += 100)
    await store.write(async (transaction) => {
      for (let i = from; i < Math.min(rows, from + 100); i += 1) {
        const [name, address, metadataHash] = [nameOf(i), addressOf(i), hashOf(i)];
        const about = { owner, createdAt };
        const key = { ...about, ...plainKey, keyId: `key-${i}`, alias: name };
        await keys.insert(transaction, key, secret);
        const details = "input=data, batchItem=1000/1000";
        transaction.audit({ keyId: key.keyId, operation: "SIGN", user: name, outcome: "OK", details });
        const device = { deviceId: `device-${i}`, deviceName: name, deviceType: name, ...plainDevice };
        await devices.insert(transaction, { ...device, owner, registeredAt: createdAt }, secret);
        const tunnel = { tunnelId: `tunnel-${i}`, peerName: name, addressNumber: i + 2, ...about };
        const heldKey = { publicKey: new Uint8Array(1568), isServerHeld: true };
        await tunnels.insert(transaction, { ...tunnel, ...heldKey }, secret);
        const contract = { contractId: `contract-${i}`, name, codeHash: hashOf(i), signature, publicKey };
        await contracts.insert(transaction, { ...contract, owner, deployedAt: createdAt });
        const wallet = { ...about, walletId: `wallet-${i}`, label: name, address, publicKey };
        await wallets.insert(transaction, wallet, secret);
        const multisig = { ...about, walletId: `multisig-${i}`, threshold: 100 };
        await governance.insertWallet(transaction, { ...multisig, signers });
        await governance.proposals.insert(transaction, {
          ...{ ...multisig, proposalId: `proposal-${i}`, title: name, status: "PENDING", signedBy: signers },
          // A few with the largest data, and many small ones with everything else at its largest.
          data: new Uint8Array(i < 100 ? 65_536 : 1),
          ...{ expiresAt: createdAt, executedAt: createdAt },
        });
        await chain.validators.insert(transaction, { ...about, address, name, publicKey }, secret);
        await tokens.insert(transaction, {
          ...{ tokenId: `token-${i}`, name, metadataHash, currentOwner: address, transferCount: 0 },
          ...{ description: "d".repeat(10_000), artworkUri: "u".repeat(2000) },
          ...{ creatorAddress: address, creatorPublicKey: publicKey, creatorSignature: signature },
          ...{ minter: owner, mintedAt: createdAt },
        });
      }
      const head = await chain.readHead(transaction.db);
      const blocks = Array.from({ length: 101 }, (_, i) => ({
        index: head.length + i,
        prevHash: hashOf(i),
        data: new Uint8Array(i < 20 ? 65_536 : 1),
        timestamp: createdAt,
        validatorAddress: addressOf(i),
        blockHash: hashOf(head.length + i),
        signature,
      }));
      await chain.append(transaction, head, blocks);
    });
  await store.close();
  await provider.close();
}
