/** A valid call of every RPC, on records created by one user. */
import { generateKeyPairSync, sign } from "node:crypto";
import type { DescMessage, DescMethod, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { services } from "../../src/client/services.ts";
import { present } from "../services/answers.ts";
import { makeSigner, type Signer } from "../services/node-crypto.ts";
import { type Connected, connectPeer, sealAsPeer } from "../services/vpn-peer.ts";
import { bytesOf } from "../support/bytes.ts";
import { describeClient, secret } from "../support/clients.ts";
import { loadFromExtensions } from "../support/extension-tests.ts";
import { hashCheaply } from "../support/passwords.ts";
import { wrapKeyFile } from "../support/wrap-key.ts";
import type { AccessServer, Clients, Person } from "./access-server.ts";

const data = bytesOf("hello");
const address = `0x${"ab".repeat(20)}`;

/** A device with its signing key. */
export interface OwnDevice extends Signer {
  readonly deviceId: string;
}

/** One user's records, for calls that do not change them. */
export type Records = Awaited<ReturnType<typeof makeRecords>>;

/** Creates the records and their owner. */
export async function makeRecords(server: AccessServer, ownerName?: string) {
  const { users, clients } = server.office;
  const guest = { username: "guest", password: "a password that is long enough" };
  const passwordHash = hashCheaply(guest.password);
  await users.add({ name: guest.username, role: "user", passwordHash }, new Date());
  await clients.add(describeClient("client"), new Date());
  const owner = await server.makePerson("user", ownerName);
  const admin = await server.makePerson("admin");
  const { kms, iot, vpn, wallet, defi, chain, nft } = owner;
  const { keyId } = present((await kms.createKey({})).result);
  const { signature } = present((await kms.sign({ keyId, data })).result);
  const { keyId: kemKeyId } = present((await kms.createKey({ usage: "KEM" })).result);
  const { ciphertext } = present((await kms.encapsulate({ keyId: kemKeyId })).result);
  const { keyId: encryptKeyId } = present((await kms.createKey({ usage: "ENCRYPT" })).result);
  const { ciphertext: encrypted } = present((await kms.encrypt({ keyId: encryptKeyId })).result);
  const { walletId: multisigId, signers } = await defi.createMultisig({ signerCount: 1, threshold: 1 });
  const { tunnelId: otherTunnelId } = await vpn.registerPeer({});
  await vpn.handshake({ tunnelId: otherTunnelId });
  return {
    owner,
    /** For what calls need beside their records. */
    admin,
    /** The server's "127.0.0.1:port". */
    authority: new URL(server.url).host,
    /** A user who may log in. */
    guest,
    /** An OAuth 2 client. */
    client: { clientId: "client", clientSecret: secret },
    keyId,
    signature,
    grantId: await makeGrant(owner, keyId, guest.username),
    kemKeyId,
    ciphertext,
    encryptKeyId,
    encrypted,
    device: await registerDevice(owner),
    simulatedId: (await iot.registerDevice({ simulated: true })).deviceId,
    vendor: makeSigner("ml-dsa-87"),
    tunnel: await connectPeer(vpn),
    /** For calls that change the session. */
    otherTunnelId,
    walletId: (await wallet.createWallet({})).walletId,
    multisigId,
    signer: present(signers[0]),
    validatorAddress: (await chain.registerNode({})).validatorAddress,
    tokenId: (await nft.mint({ name: "art" })).tokenId,
  };
}

/** Registers a device that keeps its own key. */
export async function registerDevice({ iot }: Pick<Clients, "iot">): Promise<OwnDevice> {
  const signer = makeSigner("ml-dsa-44");
  const { deviceId } = await iot.registerDevice({ publicKey: signer.publicKey });
  return { ...signer, deviceId };
}

/** A device's answer to its own challenge. */
export async function answerChallenge({ iot }: Pick<Clients, "iot">, device: OwnDevice) {
  const { deviceId } = device;
  const { challenge } = await iot.issueChallenge({ deviceId });
  return { deviceId, challenge, signature: device.sign(challenge) };
}

/** A device's reading. */
export function readingOf({ deviceId, sign }: OwnDevice) {
  return { deviceId, telemetry: data, signature: sign(data) };
}

/** How to call an RPC. */
export interface Row {
  readonly method: DescMethod;
  /** The call's messages; a single one, unless the caller streams. */
  readonly messages: (made: Records) => Promise<unknown[]>;
  /** The refusal reason for callers who cannot see the named record; undefined if the call names none. */
  readonly hidden: string | undefined;
  /** Whether the record is hidden even from administrators, because its name belongs to its owner. */
  readonly isHiddenFromAdmins: boolean;
  /** Whether the messages contain client credentials, with which HTTP Basic cannot be combined. */
  readonly authenticatesClient: boolean;
  /** Whether the messages have the effect of a different call, whose scope is required too. */
  readonly needsMoreScopes: boolean;
  /** Returns the reason in a stream's answer for rejecting one of its messages. */
  readonly reasonIn: (answer: unknown) => string | undefined;
}

type Messages<Input extends DescMessage> = MessageInitShape<Input> | MessageInitShape<Input>[];

interface RowOptions<Answer> {
  readonly hidden?: string;
  readonly isHiddenFromAdmins?: boolean;
  readonly authenticatesClient?: boolean;
  readonly needsMoreScopes?: boolean;
  readonly reasonIn?: (answer: Answer) => string | undefined;
}

/** Creates a table row. */
export function row<Input extends DescMessage, Output extends DescMessage>(
  method: DescMethod & { readonly input: Input; readonly output: Output },
  request: (made: Records) => Messages<Input> | Promise<Messages<Input>>,
  { reasonIn = () => undefined, ...options }: RowOptions<MessageShape<Output>> = {},
): Row {
  return {
    ...{ method, hidden: undefined, isHiddenFromAdmins: false, authenticatesClient: false },
    ...{ needsMoreScopes: false, ...options },
    messages: async (made) => [await request(made)].flat(),
    // The call's answers have its output type.
    reasonIn: (answer) => reasonIn(answer as MessageShape<Output>),
  };
}

/** A row for a call that is always rejected. */
export function emptyRow(method: DescMethod): Row {
  return row(method, () => ({}));
}

const keyHidden = { hidden: "KEY_NOT_FOUND" } as const;
const deviceHidden = { hidden: "DEVICE_NOT_FOUND" } as const;
const tunnelHidden = { hidden: "TUNNEL_NOT_FOUND" } as const;
const walletHidden = { hidden: "WALLET_NOT_FOUND" } as const;
const proposalHidden = { hidden: "PROPOSAL_NOT_FOUND" } as const;
const tokenHidden = { hidden: "TOKEN_NOT_FOUND" } as const;

const { publicKey: someKey, privateKey } = generateKeyPairSync("ml-dsa-65");
const signed = {
  data,
  signature: Uint8Array.from(sign(null, data, privateKey)),
  publicKeyPem: someKey.export({ format: "pem", type: "spki" }).toString(),
};

const pqc = services.pqc.method;
const tokens = services.token.method;
const identities = services.identityLog.method;
const kms = services.kms.method;
const iot = services.iot.method;
const vpn = services.vpn.method;
const dapp = services.dapp.method;
const wallet = services.wallet.method;
const defi = services.defi.method;
const chain = services.blockchain.method;
const nft = services.nft.method;

/** One row for every core RPC. */
const rows: readonly Row[] = [
  row(pqc.signData, () => ({ data })),
  row(pqc.verifySignature, () => signed),
  row(pqc.exchangeKeys, () => ({})),
  row(pqc.getAlgorithmInfo, () => ({})),
  row(pqc.getConnection, () => ({})),
  row(pqc.recordHandshake, () => ({})),
  row(pqc.issueToken, ({ guest }) => guest),
  row(pqc.getJwks, () => ({})),
  row(pqc.getHealth, () => ({})),

  row(tokens.hello, () => ({})),
  row(tokens.getHealth, () => ({})),
  row(tokens.issueToken, ({ guest }) => guest),
  row(tokens.verifyToken, ({ owner }) => ({ token: owner.token })),
  row(tokens.getJwks, () => ({})),
  row(tokens.getSecureData, () => ({})),
  row(tokens.getCryptoInfo, () => ({})),

  row(kms.createKey, () => ({})),
  row(kms.getKey, ({ keyId }) => ({ keyId }), keyHidden),
  row(kms.listKeys, () => ({})),
  row(kms.rotateKey, async ({ owner }) => ({ keyId: await makeKey(owner) }), keyHidden),
  row(kms.destroyKey, async ({ owner }) => ({ keyId: await makeKey(owner) }), keyHidden),
  row(kms.disableKey, async ({ owner }) => ({ keyId: await makeKey(owner) }), keyHidden),
  row(kms.enableKey, async ({ owner }) => ({ keyId: await makeDisabledKey(owner) }), keyHidden),
  row(kms.restoreKey, async ({ owner }) => ({ keyId: await makeScheduledKey(owner) }), keyHidden),
  row(kms.getImportParameters, () => ({})),
  row(kms.importKey, ({ owner }) => wrapFresh(owner), { hidden: "IMPORT_TOKEN_INVALID" }),
  row(kms.exportPublicKeys, () => ({})),
  row(kms.getCbom, () => ({})),
  row(kms.createGrant, ({ keyId, guest }) => grantOf(keyId, guest.username), keyHidden),
  row(kms.listGrants, () => ({})),
  row(
    kms.revokeGrant,
    async ({ owner, keyId, guest }) => ({ grantId: await makeGrant(owner, keyId, guest.username) }),
    { hidden: "GRANT_NOT_FOUND" },
  ),
  row(kms.sign, ({ keyId }) => ({ keyId, data }), keyHidden),
  row(
    kms.signStream,
    ({ keyId }) => [
      { part: { case: "header" as const, value: { keyId } } },
      { part: { case: "chunk" as const, value: data } },
    ],
    keyHidden,
  ),
  row(kms.batchSign, ({ keyId }) => ({ keyId, data: [data] }), keyHidden),
  row(kms.createCsr, ({ keyId }) => ({ keyId, subject: "CN=release" }), keyHidden),
  row(kms.verify, ({ keyId, signature }) => ({ keyId, data, signature }), keyHidden),
  row(kms.encapsulate, ({ kemKeyId: keyId }) => ({ keyId }), keyHidden),
  row(kms.decapsulate, ({ kemKeyId: keyId, ciphertext }) => ({ keyId, ciphertext }), keyHidden),
  row(kms.encrypt, ({ encryptKeyId: keyId }) => ({ keyId, plaintext: data }), keyHidden),
  row(kms.decrypt, ({ encrypted: ciphertext }) => ({ ciphertext }), keyHidden),
  row(kms.reEncrypt, ({ encryptKeyId: keyId, encrypted: ciphertext }) => ({ keyId, ciphertext }), keyHidden),
  row(kms.getAuditLog, () => ({})),
  row(kms.watchAuditLog, () => ({ afterSequence: 0 })),
  row(kms.verifyAuditLog, () => ({})),
  row(kms.watchAuditVerification, () => ({})),
  row(kms.getHealth, () => ({})),

  row(identities.getIdentityLog, () => ({})),
  row(identities.watchIdentityLog, () => ({ subject: "", afterSequence: 0 })),
  row(identities.verifyIdentityLog, () => ({})),

  row(iot.registerDevice, () => ({})),
  row(iot.issueChallenge, ({ device: { deviceId } }) => ({ deviceId })),
  row(iot.authenticate, ({ owner, device }) => answerChallenge(owner, device)),
  row(iot.sendTelemetry, ({ device }) => readingOf(device), deviceHidden),
  row(iot.streamTelemetry, ({ device }) => ({ reading: readingOf(device) }), {
    ...deviceHidden,
    reasonIn: ({ reason }) => reason,
  }),
  row(iot.updateFirmware, (made) => ({ ...firmwareHeader(made), firmware: data }), deviceHidden),
  row(
    iot.updateFirmwareStream,
    (made) => [
      { part: { case: "header" as const, value: firmwareHeader(made) } },
      { part: { case: "chunk" as const, value: data } },
    ],
    deviceHidden,
  ),
  row(iot.reportFirmware, () => ({ targetPath: "sensor/image", firmwareHash: "0".repeat(64) })),
  row(iot.listDevices, () => ({})),
  row(
    iot.removeDevice,
    async ({ owner }) => ({ deviceId: (await owner.iot.registerDevice({})).deviceId }),
    deviceHidden,
  ),
  row(iot.simulatedSign, ({ simulatedId: deviceId }) => ({ deviceId, data }), deviceHidden),
  row(iot.getHealth, () => ({})),

  row(vpn.getGatewayInfo, () => ({})),
  row(vpn.registerPeer, () => ({})),
  row(vpn.handshake, ({ otherTunnelId: tunnelId }) => ({ tunnelId }), tunnelHidden),
  row(vpn.verifyHandshake, () => ({ signature: signed.signature, transcript: "hello" })),
  row(vpn.sendPacket, ({ tunnel: { tunnelId } }) => ({ tunnelId, data }), tunnelHidden),
  row(vpn.receivePacket, ({ tunnel }) => packetOf(tunnel), tunnelHidden),
  row(vpn.rekey, ({ otherTunnelId: tunnelId }) => ({ tunnelId }), tunnelHidden),
  row(vpn.disconnect, async ({ owner }) => ({ tunnelId: await makeTunnel(owner) }), tunnelHidden),
  row(vpn.listTunnels, () => ({})),
  row(vpn.getHealth, () => ({})),
  row(vpn.tunnel, ({ tunnel }) => ({ packet: { case: "receive" as const, value: packetOf(tunnel) } }), {
    ...tunnelHidden,
    reasonIn: ({ result }) => (result.case === "error" ? result.value.reason : undefined),
  }),

  row(dapp.deployContract, () => ({ code: "contract" })),
  row(dapp.dualSign, () => ({ data })),
  row(dapp.dualVerify, ({ owner }) => dualSigned(owner)),
  row(dapp.listContracts, () => ({})),
  row(dapp.getHealth, () => ({})),

  row(wallet.createWallet, () => ({})),
  row(wallet.signTransaction, ({ walletId }) => ({ walletId, data }), walletHidden),
  row(wallet.verifyTransaction, () => signed),
  row(wallet.listWallets, () => ({})),
  row(wallet.getHealth, () => ({})),

  row(defi.createMultisig, () => ({ signerCount: 1, threshold: 1 })),
  row(defi.createProposal, ({ multisigId: walletId }) => ({ walletId, data }), walletHidden),
  row(
    defi.signProposal,
    async (made) => ({ proposalId: await makeProposal(made), signer: made.signer }),
    proposalHidden,
  ),
  row(defi.executeProposal, async (made) => ({ proposalId: await makeSignedProposal(made) }), proposalHidden),
  row(defi.listWallets, () => ({})),
  row(defi.listProposals, () => ({})),
  row(defi.getHealth, () => ({})),

  row(chain.registerNode, () => ({})),
  row(chain.addBlock, ({ validatorAddress }) => ({ data, validatorAddress }), {
    hidden: "VALIDATOR_NOT_FOUND",
  }),
  row(chain.getChain, () => ({})),
  row(chain.verifyChain, () => ({})),
  row(chain.listValidators, () => ({})),
  row(chain.connectPeer, ({ authority }) => ({ address: authority })),
  row(chain.listPeers, () => ({})),
  row(chain.getHealth, () => ({})),
  row(chain.watchBlocks, () => ({})),

  row(nft.mint, () => ({ name: "art" })),
  row(nft.transfer, ({ tokenId }) => ({ tokenId, newOwner: address }), tokenHidden),
  row(nft.verify, ({ tokenId }) => ({ tokenId }), tokenHidden),
  row(nft.listTokens, () => ({})),
  row(nft.getHealth, () => ({})),
  row(nft.getToken, ({ tokenId }) => ({ tokenId }), tokenHidden),
  row(nft.getHistory, ({ tokenId }) => ({ tokenId }), tokenHidden),
];

/** Loads the rows of every RPC, including extensions. */
export async function loadRows(): Promise<readonly Row[]> {
  const modules = await loadFromExtensions<{ readonly rows: readonly Row[] }>("access-rows");
  return [...rows, ...modules.flatMap((module) => module.rows)];
}

/** "kms.KmsService.Sign". */
export function nameOf({ parent, name }: DescMethod): string {
  return `${parent.typeName}.${name}`;
}

/** Wraps a new key for import by the owner. */
async function wrapFresh({ kms }: Person) {
  const file = generateKeyPairSync("ml-dsa-44").privateKey.export({ format: "der", type: "pkcs8" });
  const wrapped = await wrapKeyFile(await kms.getImportParameters({}), file);
  return { ...wrapped, algorithm: "ML-DSA-44" };
}

const grantOf = (keyId: string, grantee: string) => ({ keyId, grantee, operations: ["SIGN"] });

async function makeGrant({ kms }: Person, keyId: string, grantee: string): Promise<string> {
  return present((await kms.createGrant(grantOf(keyId, grantee))).grant).grantId;
}

async function makeDisabledKey(owner: Person): Promise<string> {
  const keyId = await makeKey(owner);
  await owner.kms.disableKey({ keyId });
  return keyId;
}

async function makeScheduledKey(owner: Person): Promise<string> {
  const keyId = await makeKey(owner);
  await owner.kms.destroyKey({ keyId, afterSeconds: 3600 });
  return keyId;
}

async function makeKey({ kms }: Person): Promise<string> {
  return present((await kms.createKey({})).result).keyId;
}

async function makeTunnel({ vpn }: Person): Promise<string> {
  return (await vpn.registerPeer({})).tunnelId;
}

function firmwareHeader({ device: { deviceId }, vendor }: Records) {
  // It signs something other than the image's hash: the negative result is an answer, not a refusal.
  return { deviceId, vendorPublicKey: vendor.publicKey, signature: vendor.sign(data) };
}

function packetOf({ tunnelId, sessionKey }: Connected) {
  return { tunnelId, packet: sealAsPeer(sessionKey, data) };
}

async function dualSigned({ dapp }: Person) {
  const { compositeSignature, compositePublicKey } = await dapp.dualSign({ data });
  return { data, compositeSignature, compositePublicKey };
}

async function makeProposal({ owner, multisigId: walletId }: Records): Promise<string> {
  return present((await owner.defi.createProposal({ walletId, data })).proposal).proposalId;
}

async function makeSignedProposal(made: Records): Promise<string> {
  const proposalId = await makeProposal(made);
  await made.owner.defi.signProposal({ proposalId, signer: made.signer });
  return proposalId;
}
