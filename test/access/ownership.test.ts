import type { Kysely } from "kysely";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Schema } from "../../src/database/schema.ts";
import { present, readPages } from "../services/answers.ts";
import { bytesOf } from "../support/bytes.ts";
import { makeStoreDirectory } from "../support/empty-store.ts";
import { inheritedEnvironment } from "../support/environment.ts";
import { password } from "../support/passwords.ts";
import { outcomeOf, type Refusal, refusal } from "../support/refusal.ts";
import { damaged } from "../support/refusals.ts";
import { runHere } from "../support/run-here.ts";
import { createOutgoing } from "../support/streams.ts";
import {
  type AccessServer,
  type Clients,
  describeAccess,
  makeDatabase,
  type Person,
  startAccessServer,
  timeout,
} from "./access-server.ts";
import { answerChallenge, type OwnDevice, readingOf, registerDevice } from "./rpc-rows.ts";

const data = bytesOf("hello");
const keyDamaged: Refusal = { code: "DataLoss", reason: "KEY_DAMAGED" };
const foreignPage: Refusal = { code: "InvalidArgument", reason: "FIELD_INVALID", fields: ["pageToken"] };
const notFound = (reason: string): Refusal => ({ code: "NotFound", reason });

interface ListPage {
  readonly ids: string[];
  readonly nextPageToken: string;
  readonly totalSize: number;
}

interface PageInput {
  readonly pageSize?: number;
  readonly pageToken?: string;
}

/** A list of what users make: how to make one of it, and how to read it. */
interface OwnedList {
  make(clients: Clients): Promise<string>;
  read(clients: Clients, order: PageInput): Promise<ListPage>;
}

const lists: Readonly<Record<string, OwnedList>> = {
  "kms.KmsService.ListKeys": {
    make: async ({ kms }) => present((await kms.createKey({})).result).keyId,
    read: async ({ kms }, order) => {
      const { keys, ...page } = await kms.listKeys(order);
      return { ...page, ids: keys.map(({ keyId }) => keyId) };
    },
  },
  "iot.IotService.ListDevices": {
    make: async ({ iot }) => (await iot.registerDevice({})).deviceId,
    read: async ({ iot }, order) => {
      const { devices, ...page } = await iot.listDevices(order);
      return { ...page, ids: devices.map(({ deviceId }) => deviceId) };
    },
  },
  "vpn.VpnService.ListTunnels": {
    make: async ({ vpn }) => (await vpn.registerPeer({})).tunnelId,
    read: async ({ vpn }, order) => {
      const { tunnels, ...page } = await vpn.listTunnels(order);
      return { ...page, ids: tunnels.map(({ tunnelId }) => tunnelId) };
    },
  },
  "dapp.DappService.ListContracts": {
    make: async ({ dapp }) => (await dapp.deployContract({ code: "contract" })).contractId,
    read: async ({ dapp }, order) => {
      const { contracts, ...page } = await dapp.listContracts(order);
      return { ...page, ids: contracts.map(({ contractId }) => contractId) };
    },
  },
  "wallet.WalletService.ListWallets": {
    make: async ({ wallet }) => (await wallet.createWallet({})).walletId,
    read: async ({ wallet }, order) => {
      const { wallets, ...page } = await wallet.listWallets(order);
      return { ...page, ids: wallets.map(({ walletId }) => walletId) };
    },
  },
  "defi.DefiService.ListWallets": {
    make: makeMultisig,
    read: async ({ defi }, order) => {
      const { wallets, ...page } = await defi.listWallets(order);
      return { ...page, ids: wallets.map(({ walletId }) => walletId) };
    },
  },
  "defi.DefiService.ListProposals": {
    make: async (clients) => makeProposal(clients, await makeMultisig(clients)),
    read: async ({ defi }, order) => {
      const { proposals, ...page } = await defi.listProposals(order);
      return { ...page, ids: proposals.map(({ proposalId }) => proposalId) };
    },
  },
  "nft.NftService.ListTokens": {
    make: async ({ nft }) => (await nft.mint({ name: "art" })).tokenId,
    read: async ({ nft }, order) => {
      const { tokens, ...page } = await nft.listTokens(order);
      return { ...page, ids: tokens.map(({ tokenId }) => tokenId) };
    },
  },
};

describeAccess("lists of two users", (shared) => {
  for (const [name, { make, read }] of Object.entries(lists)) {
    describe(name, () => {
      it("shows each their own, in pages, and counts those alone", async () => {
        const [ada, bob] = await makeTwo(await shared());
        const adas = [await make(ada), await make(ada)];
        const bobs = [await make(bob)];
        adas.push(await make(ada));
        expect(await readAll(read, ada)).toEqual({ rows: adas, sizes: [2, 1], totals: [3] });
        expect(await readAll(read, bob)).toEqual({ rows: bobs, sizes: [1], totals: [1] });
      });

      it("shows nothing, and counts nothing, to a user and to an auditor who made nothing", async () => {
        const server = await shared();
        await make(await server.makePerson());
        for (const role of ["user", "auditor"] as const) {
          const other = await server.makePerson(role);
          expect(await read(other, {})).toMatchObject({ ids: [], nextPageToken: "", totalSize: 0 });
        }
      });

      it("shows all records to an administrator, and counts them", async () => {
        const server = await shared();
        const [ada, bob] = await makeTwo(server);
        const made = [await make(ada), await make(bob)];
        const { rows, totals } = await readAll(read, await server.makePerson("admin"), 1000);
        expect(rows).toEqual(expect.arrayContaining(made));
        expect(totals).toEqual([rows.length]);
      });

      it("refuses a page token of another user, of an administrator, and to an administrator", async () => {
        const server = await shared();
        const [ada, bob] = await makeTwo(server);
        const admin = await server.makePerson("admin");
        for (const person of [ada, ada, bob, bob]) await make(person);
        const tokenOf = async (person: Person) => (await read(person, { pageSize: 1 })).nextPageToken;
        const adas = await tokenOf(ada);
        expect((await read(ada, { pageToken: adas })).ids).toHaveLength(1);
        expect(await refusal(read(bob, { pageToken: adas }))).toEqual(foreignPage);
        expect(await refusal(read(admin, { pageToken: adas }))).toEqual(foreignPage);
        expect(await refusal(read(ada, { pageToken: await tokenOf(admin) }))).toEqual(foreignPage);
      });
    });
  }
});

describeAccess("filters of lists", (shared) => {
  it("find keys of an algorithm, and of a state, among one's own alone", async () => {
    const [ada, bob] = await makeTwo(await shared());
    const { keyId } = present((await ada.kms.createKey({ algorithm: "ML-DSA-87" })).result);
    await ada.kms.destroyKey({ keyId });
    for (const filter of [{ algorithm: "ML-DSA-87" }, { status: "DESTROYED" }]) {
      expect(await ada.kms.listKeys(filter)).toMatchObject({ keys: [{ keyId }], totalSize: 1 });
      expect(await bob.kms.listKeys(filter)).toMatchObject({ keys: [], totalSize: 0 });
    }
  });

  it("find proposals of a wallet, and of a status, among one's own alone", async () => {
    const [ada, bob] = await makeTwo(await shared());
    const walletId = await makeMultisig(ada);
    const proposalId = await makeProposal(ada, walletId);
    for (const filter of [{ walletId }, { proposalStatus: "PENDING" }]) {
      expect(await ada.defi.listProposals(filter)).toMatchObject({
        proposals: [{ proposalId }],
        totalSize: 1,
      });
      expect(await bob.defi.listProposals(filter)).toMatchObject({ proposals: [], totalSize: 0 });
    }
  });

  it("find tokens of an address among those that one minted alone", async () => {
    const [ada, bob] = await makeTwo(await shared());
    const { tokenId, owner } = await ada.nft.mint({ name: "art" });
    expect(await ada.nft.listTokens({ owner })).toMatchObject({ tokens: [{ tokenId }], totalSize: 1 });
    expect(await bob.nft.listTokens({ owner })).toMatchObject({ tokens: [], totalSize: 0 });
  });

  it("count a token at its new address for its minter, regardless of who transferred it", async () => {
    const server = await shared();
    const [ada, bob] = await makeTwo(server);
    const { tokenId, owner } = await ada.nft.mint({ name: "art" });
    const newOwner = `0x${owner.slice(2).split("").reverse().join("")}`;
    await (await server.makePerson("admin")).nft.transfer({ tokenId, newOwner });
    expect((await ada.nft.listTokens({ owner: newOwner })).totalSize).toBe(1);
    expect((await ada.nft.listTokens({ owner })).totalSize).toBe(0);
    expect((await bob.nft.listTokens({ owner: newOwner })).totalSize).toBe(0);
  });
});

/** A record whose owner is changed in the database, and how it is used. */
interface Stolen {
  make(ada: Person): Promise<string>;
  /** Writes another owner over the one of the record. */
  give(db: Kysely<Schema>, id: string, owner: string): Promise<unknown>;
  use(clients: Clients, id: string): Promise<unknown>;
  /** How the user is refused whose record it now seems to be. */
  readonly refused: Refusal;
  /** How the user is refused whose record it was: it is nobody's until somebody restores it. */
  readonly refusedOwner: Refusal;
  /** What comes of using one that nobody changed, if not an answer. */
  readonly intact?: string;
}

const stolen: Readonly<Record<string, Stolen>> = {
  "a key": {
    make: async ({ kms }) => present((await kms.createKey({})).result).keyId,
    give: (db, id, owner) => db.updateTable("kms_keys").set({ owner }).where("key_id", "=", id).execute(),
    use: ({ kms }, keyId) => kms.sign({ keyId, data }),
    refused: keyDamaged,
    refusedOwner: notFound("KEY_NOT_FOUND"),
  },
  "a key that is looked at": {
    make: async ({ kms }) => present((await kms.createKey({})).result).keyId,
    give: (db, id, owner) => db.updateTable("kms_keys").set({ owner }).where("key_id", "=", id).execute(),
    use: ({ kms }, keyId) => kms.getKey({ keyId }),
    refused: keyDamaged,
    refusedOwner: notFound("KEY_NOT_FOUND"),
  },
  "a key that is rotated": {
    make: async ({ kms }) => present((await kms.createKey({})).result).keyId,
    give: (db, id, owner) => db.updateTable("kms_keys").set({ owner }).where("key_id", "=", id).execute(),
    use: ({ kms }, keyId) => kms.rotateKey({ keyId }),
    refused: keyDamaged,
    refusedOwner: notFound("KEY_NOT_FOUND"),
  },
  "a simulated device": {
    make: async ({ iot }) => (await iot.registerDevice({ simulated: true })).deviceId,
    give: (db, id, owner) =>
      db.updateTable("iot_devices").set({ owner }).where("device_id", "=", id).execute(),
    use: ({ iot }, deviceId) => iot.simulatedSign({ deviceId, data }),
    refused: damaged,
    refusedOwner: damaged,
  },
  "a device that sends": {
    make: async (ada) => (await registerDevice(ada)).deviceId,
    give: (db, id, owner) =>
      db.updateTable("iot_devices").set({ owner }).where("device_id", "=", id).execute(),
    use: ({ iot }, deviceId) =>
      iot.sendTelemetry({ deviceId, telemetry: data, signature: new Uint8Array(2420) }),
    refused: damaged,
    refusedOwner: damaged,
  },
  "a tunnel": {
    make: async ({ vpn }) => (await vpn.registerPeer({})).tunnelId,
    give: (db, id, owner) =>
      db.updateTable("vpn_tunnels").set({ owner }).where("tunnel_id", "=", id).execute(),
    use: ({ vpn }, tunnelId) => vpn.handshake({ tunnelId }),
    refused: damaged,
    refusedOwner: damaged,
  },
  "a wallet": {
    make: async ({ wallet }) => (await wallet.createWallet({})).walletId,
    give: (db, id, owner) => db.updateTable("wallets").set({ owner }).where("wallet_id", "=", id).execute(),
    use: ({ wallet }, walletId) => wallet.signTransaction({ walletId, data }),
    refused: damaged,
    refusedOwner: damaged,
  },
  "a wallet of several signers": {
    make: makeMultisig,
    give: (db, id, owner) =>
      db.updateTable("defi_wallets").set({ owner }).where("wallet_id", "=", id).execute(),
    use: ({ defi }, walletId) => defi.createProposal({ walletId, data }),
    refused: damaged,
    refusedOwner: damaged,
  },
  "a proposal": {
    make: async (ada) => makeProposal(ada, await makeMultisig(ada)),
    give: (db, id, owner) =>
      db.updateTable("defi_proposals").set({ owner }).where("proposal_id", "=", id).execute(),
    use: ({ defi }, proposalId) => defi.executeProposal({ proposalId }),
    refused: damaged,
    refusedOwner: damaged,
    intact: "THRESHOLD_NOT_REACHED",
  },
  "a validator": {
    make: async ({ chain }) => (await chain.registerNode({})).validatorAddress,
    give: (db, id, owner) =>
      db.updateTable("blockchain_validators").set({ owner }).where("address", "=", id).execute(),
    use: ({ chain }, validatorAddress) => chain.addBlock({ data, validatorAddress }),
    refused: damaged,
    refusedOwner: notFound("VALIDATOR_NOT_FOUND"),
  },
  "a token that is transferred": {
    make: async ({ nft }) => (await nft.mint({ name: "art" })).tokenId,
    give: (db, id, minter) =>
      db.updateTable("nft_tokens").set({ minter }).where("token_id", "=", id).execute(),
    use: ({ nft }, tokenId) => nft.transfer({ tokenId, newOwner: `0x${"ab".repeat(20)}` }),
    refused: damaged,
    refusedOwner: notFound("TOKEN_NOT_FOUND"),
  },
  "a token that is looked at": {
    make: async ({ nft }) => (await nft.mint({ name: "art" })).tokenId,
    give: (db, id, minter) =>
      db.updateTable("nft_tokens").set({ minter }).where("token_id", "=", id).execute(),
    use: ({ nft }, tokenId) => nft.getToken({ tokenId }),
    refused: damaged,
    refusedOwner: notFound("TOKEN_NOT_FOUND"),
  },
  "a token whose history is looked at": {
    make: async ({ nft }) => (await nft.mint({ name: "art" })).tokenId,
    give: (db, id, minter) =>
      db.updateTable("nft_tokens").set({ minter }).where("token_id", "=", id).execute(),
    use: ({ nft }, tokenId) => nft.getHistory({ tokenId }),
    refused: damaged,
    refusedOwner: notFound("TOKEN_NOT_FOUND"),
  },
};

describeAccess("a record whose owner was changed in the database", (shared) => {
  for (const [name, { make, give, use, refused, refusedOwner, intact = "answer" }] of Object.entries(
    stolen,
  )) {
    it(`is not the other user's, but damaged: ${name}`, async () => {
      const server = await shared();
      const [ada, bob] = await makeTwo(server);
      const id = await make(ada);
      await server.tamper((db) => give(db, id, bob.userId));
      expect(await refusal(use(bob, id))).toEqual(refused);
      expect(await refusal(use(ada, id))).toEqual(refusedOwner);
    });

    it(`leaves those of others as they were: ${name}`, async () => {
      const server = await shared();
      const [ada, bob] = await makeTwo(server);
      const [adas, bobs] = [await make(ada), await make(bob)];
      await server.tamper((db) => give(db, adas, bob.userId));
      expect(await outcomeOf(use(bob, bobs))).toBe(intact);
    });
  }

  it("is listed as a damaged device, without its key", async () => {
    const server = await shared();
    const [ada, bob] = await makeTwo(server);
    const { deviceId } = await registerDevice(ada);
    await server.tamper((db) =>
      db.updateTable("iot_devices").set({ owner: bob.userId }).where("device_id", "=", deviceId).execute(),
    );
    const { devices } = await bob.iot.listDevices({});
    expect(devices).toMatchObject([{ deviceId, registrationStatus: "DAMAGED", publicKey: new Uint8Array() }]);
  });

  it("can be got rid of by an administrator, and no list is the worse for it: a tunnel", async () => {
    const server = await shared();
    const [ada, bob] = await makeTwo(server);
    const { tunnelId } = await ada.vpn.registerPeer({});
    await server.tamper((db) =>
      db.updateTable("vpn_tunnels").set({ owner: bob.userId }).where("tunnel_id", "=", tunnelId).execute(),
    );
    await (await server.makePerson("admin")).vpn.disconnect({ tunnelId });
    expect(await bob.vpn.listTunnels({})).toMatchObject({ tunnels: [], totalSize: 0 });
    expect(await ada.vpn.listTunnels({})).toMatchObject({ tunnels: [], totalSize: 0 });
  });

  it("can be got rid of by an administrator, and no list is the worse for it: a key", async () => {
    const server = await shared();
    const [ada, bob] = await makeTwo(server);
    const { keyId } = present((await ada.kms.createKey({})).result);
    await server.tamper((db) =>
      db.updateTable("kms_keys").set({ owner: bob.userId }).where("key_id", "=", keyId).execute(),
    );
    await (await server.makePerson("admin")).kms.destroyKey({ keyId });
    expect((await ada.kms.listKeys({})).totalSize).toBe(0);
    expect((await bob.kms.listKeys({ status: "ACTIVE" })).totalSize).toBe(0);
  });
});

describeAccess("a user who was changed in the database", (shared) => {
  it.each(["role", "generation", "password_hash"] as const)(
    "is let in no more, and gets no other role: %s",
    async (column) => {
      const server = await shared();
      const [ada, bob] = await makeTwo(server);
      const value = column === "role" ? "admin" : "another";
      await server.tamper((db) =>
        db
          .updateTable("users")
          .set({ [column]: value })
          .where("name", "=", ada.name)
          .execute(),
      );
      expect(await refusal(ada.kms.listKeys({}))).toEqual(damaged);
      expect((await bob.kms.listKeys({})).keys).toEqual([]);
    },
  );

  it("is not an administrator by taking an administrator's row", async () => {
    const server = await shared();
    const [ada, admin] = [await server.makePerson(), await server.makePerson("admin")];
    await server.tamper(async (db) => {
      const row = await db.selectFrom("users").selectAll().where("name", "=", admin.name).executeTakeFirst();
      const { name: _, user_id: _unique, ...rest } = present(row);
      await db.updateTable("users").set(rest).where("name", "=", ada.name).execute();
    });
    expect(await refusal(ada.kms.listKeys({}))).toEqual(damaged);
  });
});

describeAccess("a record that its owner has just used", (shared) => {
  it("is still hidden from others: a key that is open in memory", async () => {
    const [ada, bob] = await makeTwo(await shared());
    const { keyId } = present((await ada.kms.createKey({})).result);
    await ada.kms.sign({ keyId, data });
    expect(await refusal(bob.kms.sign({ keyId, data }))).toEqual(notFound("KEY_NOT_FOUND"));
  });

  it("is still hidden from others: a device whose key is known", async () => {
    const [ada, bob] = await makeTwo(await shared());
    const device = await registerDevice(ada);
    expect(await ada.iot.sendTelemetry(readingOf(device))).toMatchObject({ verified: true });
    expect(await refusal(bob.iot.sendTelemetry(readingOf(device)))).toEqual(notFound("DEVICE_NOT_FOUND"));
  });

  it("is still hidden from others: a tunnel with a session", async () => {
    const [ada, bob] = await makeTwo(await shared());
    const { tunnelId } = await ada.vpn.registerPeer({});
    await ada.vpn.handshake({ tunnelId });
    const hidden = notFound("TUNNEL_NOT_FOUND");
    expect(await refusal(bob.vpn.sendPacket({ tunnelId, size: 1 }))).toEqual(hidden);
    expect(await refusal(bob.vpn.rekey({ tunnelId }))).toEqual(hidden);
    expect(await refusal(bob.vpn.disconnect({ tunnelId }))).toEqual(hidden);
    expect(await ada.vpn.sendPacket({ tunnelId, size: 1 })).toMatchObject({ plaintextBytes: 1 });
  });
});

describeAccess("what an administrator does with a record", (shared) => {
  it("leaves it its owner's: a key that is rotated", async () => {
    const server = await shared();
    const [ada, admin] = [await server.makePerson(), await server.makePerson("admin")];
    const { keyId } = present((await ada.kms.createKey({})).result);
    const { keyId: newKeyId } = present((await admin.kms.rotateKey({ keyId })).newKey);
    expect(await ada.kms.listKeys({ status: "ACTIVE" })).toMatchObject({
      keys: [{ keyId: newKeyId }],
      totalSize: 1,
    });
  });

  it("leaves it its owner's: a proposal for a wallet", async () => {
    const server = await shared();
    const [ada, admin] = [await server.makePerson(), await server.makePerson("admin")];
    const proposalId = await makeProposal(admin, await makeMultisig(ada));
    expect(await ada.defi.listProposals({})).toMatchObject({ proposals: [{ proposalId }], totalSize: 1 });
  });
});

describeAccess("what was made while the server was open", () => {
  it("is an administrator's to see, and no user's", async () => {
    const database = makeDatabase(onTestFinished);
    const open = await startAccessServer({ atEnd: onTestFinished, database, args: ["--auth", "open"] });
    const { keyId } = present((await open.connect().kms.createKey({})).result);
    await open.close();
    const server = await startAccessServer({ atEnd: onTestFinished, database });
    const [ada, admin] = [await server.makePerson(), await server.makePerson("admin")];
    expect(await refusal(ada.kms.getKey({ keyId }))).toEqual(notFound("KEY_NOT_FOUND"));
    expect(await ada.kms.listKeys({})).toMatchObject({ keys: [], totalSize: 0 });
    expect(await admin.kms.getKey({ keyId })).toMatchObject({ result: { keyId } });
  });
});

describe("a user who is to be added with the command", { timeout }, () => {
  // What was made while the server was open belongs to nobody, whose name is "system".
  it.each([
    ["ada", 0],
    ["system", 2],
  ])(
    "may not have the name of whom everything belongs to that was made without a token: %s",
    async (name, status) => {
      const args = ["user", "add", name, "--data-dir", await makeStoreDirectory()];
      const { code } = await runHere(args, { env: inheritedEnvironment(), stdin: `${password}\n` });
      expect(code).toBe(status);
    },
  );
});

describeAccess("blockchain.BlockchainService.AddBlock without a validator", (shared) => {
  it("takes the first of the caller's own", async () => {
    const [ada, bob] = await makeTwo(await shared());
    await ada.chain.registerNode({});
    const { validatorAddress } = await bob.chain.registerNode({});
    await bob.chain.registerNode({});
    expect(await bob.chain.addBlock({ data })).toMatchObject({ block: { validatorAddress } });
  });

  it("is refused to a caller who has none, although others do", async () => {
    const [ada, bob] = await makeTwo(await shared());
    await ada.chain.registerNode({});
    expect(await refusal(bob.chain.addBlock({ data }))).toEqual({
      code: "FailedPrecondition",
      reason: "VALIDATOR_MISSING",
    });
  });
});

describeAccess("telemetry with a device's own token", (shared) => {
  it("is taken for the device itself", async () => {
    const { device, clients } = await makeTwoDevices(await shared());
    expect(await clients.iot.sendTelemetry(readingOf(device))).toMatchObject({ verified: true, reason: "" });
  });

  it("is refused for another device, also of the same owner, and with that one's signature", async () => {
    const { other, clients } = await makeTwoDevices(await shared());
    expect(await refusal(clients.iot.sendTelemetry(readingOf(other)))).toEqual(notFound("DEVICE_NOT_FOUND"));
  });

  it("is refused for another device that the server knows from a call just before", async () => {
    const { ada, other, clients } = await makeTwoDevices(await shared());
    await ada.iot.sendTelemetry(readingOf(other));
    expect(await refusal(clients.iot.sendTelemetry(readingOf(other)))).toEqual(notFound("DEVICE_NOT_FOUND"));
  });

  it("is taken in a stream for the device itself alone, and the stream goes on", async () => {
    const { device, other, clients } = await makeTwoDevices(await shared());
    const readings = createOutgoing<{ reading: ReturnType<typeof readingOf> }>();
    for (const sender of [device, other, device]) readings.send({ reading: readingOf(sender) });
    readings.end();
    const verdicts: string[] = [];
    for await (const { verified, reason } of clients.iot.streamTelemetry(readings))
      verdicts.push(`${verified} ${reason}`);
    expect(verdicts).toEqual(["true ", "false DEVICE_NOT_FOUND", "true "]);
  });

  it("leaves the other device unseen", async () => {
    const { ada, other, clients } = await makeTwoDevices(await shared());
    await refusal(clients.iot.sendTelemetry(readingOf(other)));
    const { devices } = await ada.iot.listDevices({});
    expect(devices.find(({ deviceId }) => deviceId === other.deviceId)?.lastSeenAt).toBeUndefined();
  });
});

/** Every operation on a key that the audit log knows, and the name under which it does. */
const operations: Readonly<Record<string, (clients: Clients, keyId: string) => Promise<unknown>>> = {
  SIGN: ({ kms }, keyId) => kms.sign({ keyId, data }),
  "SIGN in a batch": ({ kms }, keyId) => kms.batchSign({ keyId, data: [data] }),
  "SIGN of a certificate request": ({ kms }, keyId) => kms.createCsr({ keyId, subject: "CN=release" }),
  "SIGN of a stream": ({ kms }, keyId) =>
    kms.signStream(
      (async function* () {
        yield { part: { case: "header" as const, value: { keyId } } };
        yield { part: { case: "chunk" as const, value: data } };
      })(),
    ),
  VERIFY: ({ kms }, keyId) => kms.verify({ keyId, data, signature: new Uint8Array(3309) }),
  ENCAPSULATE: ({ kms }, keyId) => kms.encapsulate({ keyId }),
  DECAPSULATE: ({ kms }, keyId) => kms.decapsulate({ keyId, ciphertext: new Uint8Array(1088) }),
  ROTATE: ({ kms }, keyId) => kms.rotateKey({ keyId }),
  DESTROY: ({ kms }, keyId) => kms.destroyKey({ keyId }),
};

describeAccess("the audit log", (shared) => {
  for (const [name, attempt] of Object.entries(operations)) {
    it(`names the caller who tried it on a key of another user, and the refusal: ${name}`, async () => {
      const server = await shared();
      const [ada, bob] = await makeTwo(server);
      const { keyId } = present((await ada.kms.createKey({})).result);
      expect(await refusal(attempt(bob, keyId))).toEqual(notFound("KEY_NOT_FOUND"));
      const { auditLog } = await (await server.makePerson("auditor")).kms.getAuditLog({ keyId });
      expect(auditLog.map(({ operation, user, outcome }) => [operation, user, outcome])).toEqual([
        ["CREATE", ada.name, "OK"],
        [name.split(" ")[0], bob.name, "REFUSED"],
      ]);
      expect(auditLog[1]?.details).toContain("KEY_NOT_FOUND");
    });
  }

  it("has the subject of each call on a key: its owner's, and an administrator's", async () => {
    const server = await shared();
    const [ada, admin] = [await server.makePerson(), await server.makePerson("admin")];
    const { keyId } = present((await ada.kms.createKey({})).result);
    await ada.kms.sign({ keyId, data });
    await admin.kms.sign({ keyId, data });
    await admin.kms.destroyKey({ keyId });
    const { auditLog } = await admin.kms.getAuditLog({ keyId });
    expect(auditLog.map(({ operation, user }) => [operation, user])).toEqual([
      ["CREATE", ada.name],
      ["SIGN", ada.name],
      ["SIGN", admin.name],
      ["DESTROY", admin.name],
    ]);
  });
});

/** Every call that makes something, under an Idempotency-Key; gives the name of what it made. */
const creations: Readonly<
  Record<string, (clients: Clients, options: { headers: Record<string, string> }) => Promise<string>>
> = {
  "kms.KmsService.CreateKey": async ({ kms }, options) =>
    present((await kms.createKey({}, options)).result).keyId,
  "iot.IotService.RegisterDevice": async ({ iot }, options) =>
    (await iot.registerDevice({}, options)).deviceId,
  "vpn.VpnService.RegisterPeer": async ({ vpn }, options) => (await vpn.registerPeer({}, options)).tunnelId,
  "dapp.DappService.DeployContract": async ({ dapp }, options) =>
    (await dapp.deployContract({ code: "contract" }, options)).contractId,
  "wallet.WalletService.CreateWallet": async ({ wallet }, options) =>
    (await wallet.createWallet({}, options)).walletId,
  "defi.DefiService.CreateMultisig": async ({ defi }, options) =>
    (await defi.createMultisig({ signerCount: 1, threshold: 1 }, options)).walletId,
  "blockchain.BlockchainService.RegisterNode": async ({ chain }, options) =>
    (await chain.registerNode({}, options)).validatorAddress,
  "nft.NftService.Mint": async ({ nft }, options) => (await nft.mint({ name: "art" }, options)).tokenId,
};

describeAccess("an Idempotency-Key of one user", (shared) => {
  const order = { headers: { "idempotency-key": "the first order" } };

  for (const [name, create] of Object.entries(creations)) {
    it(`is nothing to another user: ${name}`, async () => {
      const [ada, bob] = await makeTwo(await shared());
      const [adas, bobs] = [await create(ada, order), await create(bob, order)];
      expect(bobs).not.toBe(adas);
      expect([await create(ada, order), await create(bob, order)]).toEqual([adas, bobs]);
    });
  }

  it("is nothing to another user who asks for something else under it", async () => {
    const [ada, bob] = await makeTwo(await shared());
    await ada.kms.createKey({ alias: "ada's" }, order);
    expect(await bob.kms.createKey({ alias: "bob's" }, order)).toMatchObject({ result: { alias: "bob's" } });
    expect(await refusal(ada.kms.createKey({ alias: "other" }, order))).toEqual({
      code: "AlreadyExists",
      reason: "IDEMPOTENCY_KEY_REUSED",
    });
  });

  it("is nothing to an administrator", async () => {
    const server = await shared();
    const [ada, admin] = [await server.makePerson(), await server.makePerson("admin")];
    const { walletId } = await ada.wallet.createWallet({}, order);
    expect((await admin.wallet.createWallet({}, order)).walletId).not.toBe(walletId);
  });
});

async function makeTwo(server: AccessServer): Promise<[ada: Person, bob: Person]> {
  return [await server.makePerson(), await server.makePerson()];
}

/** Two devices of one owner, and clients of the first with its own token. */
async function makeTwoDevices(
  server: AccessServer,
): Promise<{ ada: Person; device: OwnDevice; other: OwnDevice; clients: Clients }> {
  const ada = await server.makePerson();
  const [device, other] = [await registerDevice(ada), await registerDevice(ada)];
  const { token } = await ada.iot.authenticate(await answerChallenge(ada, device));
  return { ada, device, other, clients: server.connect(`Bearer ${present(token)}`) };
}

async function makeMultisig({ defi }: Clients): Promise<string> {
  return (await defi.createMultisig({ signerCount: 1, threshold: 1 })).walletId;
}

async function makeProposal({ defi }: Clients, walletId: string): Promise<string> {
  return present((await defi.createProposal({ walletId, data })).proposal).proposalId;
}

function readAll(read: OwnedList["read"], clients: Clients, pageSize = 2) {
  return readPages(
    (pageToken) => read(clients, { pageSize, pageToken }),
    ({ ids }) => ids,
  );
}
