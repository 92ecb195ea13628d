import { expect, it } from "vitest";
import { present } from "../services/answers.ts";
import { bytesOf } from "../support/bytes.ts";
import { refusal } from "../support/refusal.ts";
import { type AccessServer, describeAccess, type Person } from "./access-server.ts";

const data = bytesOf("hello");

/** Removes a user, and adds one of the same name. */
async function replace(server: AccessServer, { name }: Pick<Person, "name">): Promise<Person> {
  await server.office.users.remove(name);
  return server.makePerson("user", name);
}

/** One record of each kind. */
async function makeAll({ kms, iot, vpn, dapp, wallet, defi, chain, nft }: Person) {
  const { walletId: multisigId } = await defi.createMultisig({ signerCount: 1, threshold: 1 });
  return {
    keyId: present((await kms.createKey({})).result).keyId,
    deviceId: (await iot.registerDevice({ simulated: true })).deviceId,
    tunnelId: (await vpn.registerPeer({})).tunnelId,
    contractId: (await dapp.deployContract({ code: "contract" })).contractId,
    walletId: (await wallet.createWallet({})).walletId,
    multisigId,
    proposalId: present((await defi.createProposal({ walletId: multisigId, data })).proposal).proposalId,
    validatorAddress: (await chain.registerNode({})).validatorAddress,
    tokenId: (await nft.mint({ name: "art" })).tokenId,
  };
}

/** Under which reasons records are refused to a caller. */
async function readReasons(
  { kms, iot, vpn, wallet, defi, chain, nft }: Person,
  ids: Awaited<ReturnType<typeof makeAll>>,
) {
  const { keyId, deviceId, tunnelId, walletId, multisigId, proposalId, validatorAddress, tokenId } = ids;
  const calls = [
    kms.getKey({ keyId }),
    kms.sign({ keyId, data }),
    kms.destroyKey({ keyId }),
    iot.simulatedSign({ deviceId, data }),
    vpn.handshake({ tunnelId }),
    wallet.signTransaction({ walletId, data }),
    defi.createProposal({ walletId: multisigId, data }),
    defi.executeProposal({ proposalId }),
    chain.addBlock({ validatorAddress, data }),
    nft.getToken({ tokenId }),
  ];
  return Promise.all(calls.map(async (call) => (await refusal(call)).reason));
}

/** How many records of each kind a caller sees. */
async function countAll({ kms, iot, vpn, dapp, wallet, defi, nft }: Person): Promise<number[]> {
  const lists = await Promise.all([
    kms.listKeys({}),
    iot.listDevices({}),
    vpn.listTunnels({}),
    dapp.listContracts({}),
    wallet.listWallets({}),
    defi.listWallets({}),
    defi.listProposals({}),
    nft.listTokens({}),
  ]);
  return lists.map(({ totalSize }) => totalSize);
}

describeAccess("a user who is removed and added again", (shared) => {
  it("sees, counts and uses none of the former user's records", async () => {
    const server = await shared();
    const former = await server.makePerson();
    const ids = await makeAll(former);
    expect(await countAll(former)).toEqual([1, 1, 1, 1, 1, 1, 1, 1]);
    const again = await replace(server, former);
    expect(await countAll(again)).toEqual([0, 0, 0, 0, 0, 0, 0, 0]);
    expect(await readReasons(again, ids)).toEqual([
      ...Array(3).fill("KEY_NOT_FOUND"),
      "DEVICE_NOT_FOUND",
      "TUNNEL_NOT_FOUND",
      "WALLET_NOT_FOUND",
      "WALLET_NOT_FOUND",
      "PROPOSAL_NOT_FOUND",
      "VALIDATOR_NOT_FOUND",
      "TOKEN_NOT_FOUND",
    ]);
  });

  it("gets none of the responses that the former user's idempotency keys stand for", async () => {
    const server = await shared();
    const former = await server.makePerson();
    const order = { headers: { "idempotency-key": "the first order" } };
    const { deviceId, privateKey } = await former.iot.registerDevice({}, order);
    const again = await replace(server, former);
    const registered = await again.iot.registerDevice({}, order);
    expect(registered.deviceId).not.toBe(deviceId);
    expect(registered.privateKey).not.toEqual(privateKey);
    const { keyId } = present(
      (await again.kms.createKey({ alias: "another" }, { headers: { "idempotency-key": "second" } })).result,
    );
    expect(keyId).toMatch(/^key-/);
  });

  it("reads no audit entries, and the audit log shows the name of both", async () => {
    const server = await shared();
    const former = await server.makePerson();
    const { keyId } = present((await former.kms.createKey({})).result);
    const again = await replace(server, former);
    expect((await again.kms.getAuditLog({ keyId })).auditLog).toEqual([]);
    await refusal(again.kms.sign({ keyId, data }));
    const { auditLog } = await (await server.makePerson("auditor")).kms.getAuditLog({ keyId });
    expect(auditLog.map(({ user, operation, outcome }) => [user, operation, outcome])).toEqual([
      [former.name, "CREATE", "OK"],
      [former.name, "SIGN", "REFUSED"],
    ]);
  });

  it("leaves the former user's records to administrators", async () => {
    const server = await shared();
    const former = await server.makePerson();
    const { keyId, tunnelId } = await makeAll(former);
    await replace(server, former);
    const admin = await server.makePerson("admin");
    expect(await admin.kms.getKey({ keyId })).toMatchObject({ result: { keyId } });
    expect(await admin.vpn.disconnect({ tunnelId })).toMatchObject({ tunnelId });
  });

  it("keeps the records after a new password, which changes no identity", async () => {
    const server = await shared();
    const person = await server.makePerson();
    const { keyId } = present((await person.kms.createKey({})).result);
    await server.office.users.setPassword(person.name, "none");
    const { generation } = present(await server.office.users.find(person.name));
    const { token } = await server.office.issuer.issue(person.name, { generation });
    const { kms } = server.connect(`Bearer ${token}`);
    expect(await kms.getKey({ keyId })).toMatchObject({ result: { keyId } });
  });

  it("cannot become the former user by a change of the ID in the database", async () => {
    const server = await shared();
    const former = await server.makePerson();
    const { userId } = former;
    const again = await replace(server, former);
    await server.tamper((db) =>
      db.updateTable("users").set({ user_id: userId }).where("name", "=", former.name).execute(),
    );
    expect(await refusal(again.kms.listKeys({}))).toEqual({ code: "DataLoss", reason: "RECORD_DAMAGED" });
  });
});
