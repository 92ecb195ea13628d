/** What one client of the wallet service lives through, from its first wallet to their count at the end. */
import { generateKeyPairSync, hash, randomUUID, sign } from "node:crypto";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import { beforeAll, describe, expect, it } from "vitest";
import type { CreateWalletResponse, Wallet, WalletService } from "#gen/wallet/wallet_service_pb.ts";
import { flipBit } from "../support/bytes.ts";
import { refusal } from "../support/refusal.ts";
import { isSignatureOf, rawKeyOf } from "./outside.ts";
import { tellOfRefusals } from "./wallet-story-refusals.ts";

/** A client of the wallet service. */
export type WalletClient = Client<typeof WalletService>;

/** What a service holds when a story begins: other stories may have been told to it. */
export interface Past {
  readonly wallets: readonly Wallet[];
  /** As GetHealth counts them. */
  readonly walletCount: number | undefined;
}

/** What the chapters of a story share. */
export interface Stage {
  readonly service: WalletClient;
  past(): Past;
  /** Keeps a wallet of an answer under its label, for the tests that come after. */
  keep(wallet: CreateWalletResponse): void;
  /** The wallet that was kept under a label. */
  wallet(label: string): CreateWalletResponse;
  /** All that were kept, in the order of their creation. */
  kept(): readonly CreateWalletResponse[];
}

const data = Buffer.from("pay 5 to bob");
const otherData = Buffer.from("pay 6 to bob");
const labels = ["", "till 7 – Zürich 😀", "safe", "spare"] as const;
const [unnamed, till] = labels;

/** Tells the story as consecutive tests. No other test uses the service at the same time. */
export function tellStory(service: WalletClient): void {
  const stage = createStage(service);
  tellOfMaking(stage);
  tellOfRetries(stage);
  tellOfSigning(stage);
  tellOfVerifying(stage);
  tellOfLists(stage);
  tellOfRefusals(stage);
  tellOfHealth(stage);
}

function createStage(service: WalletClient): Stage {
  let past: Past = { wallets: [], walletCount: undefined };
  beforeAll(async () => {
    const { wallets } = await service.listWallets({});
    const { walletCount } = await service.getHealth({});
    past = { wallets, walletCount };
  });
  const kept = new Map<string, CreateWalletResponse>();
  const wallet = (label: string): CreateWalletResponse => {
    const found = kept.get(label);
    if (found === undefined) throw new Error(`no test before this one kept a wallet ${label}`);
    return found;
  };
  const keep = (made: CreateWalletResponse): void => void kept.set(made.label, made);
  return { service, past: () => past, keep, wallet, kept: () => [...kept.values()] };
}

function tellOfMaking({ service, keep, wallet }: Stage): void {
  describe("CreateWallet", () => {
    it.each([
      ["of an empty request", {}],
      ["with a label of any script", { label: till }],
    ])("makes a wallet %s, whose address is of its public key", async (_title, request) => {
      const before = Date.now();
      const made = await service.createWallet(request);
      keep(made);
      expect(made).toEqual({
        $typeName: "wallet.CreateWalletResponse",
        status: "success",
        walletId: expect.stringMatching(/^wallet-[0-9a-f-]{36}$/),
        address: addressOf(made.publicKey),
        publicKey: rawKeyOf(made.publicKeyPem),
        publicKeyPem: expect.stringMatching(/^-----BEGIN PUBLIC KEY-----\n/),
        algorithm: "ML-DSA-65",
        createdAt: expect.anything(),
        label: "",
        ...request,
      });
      expect(made.publicKey).toHaveLength(1952);
      expect(made.createdAt && timestampDate(made.createdAt).getTime()).toSatisfy(
        (createdAtMs: number) => createdAtMs >= before && createdAtMs <= Date.now(),
      );
    });

    it("makes each wallet with an id and a key of its own", () => {
      const [one, other] = [wallet(unnamed), wallet(till)];
      expect(one.walletId).not.toBe(other.walletId);
      expect(one.address).not.toBe(other.address);
    });
  });
}

function tellOfRetries({ service, keep }: Stage): void {
  describe("CreateWallet with an Idempotency-Key", () => {
    const story = randomUUID();
    const once = (name: string) => ({ headers: { "Idempotency-Key": `${story} ${name}` } });

    it("makes one wallet, however often it is made", async () => {
      const first = await service.createWallet({ label: "safe" }, once("order 1"));
      keep(first);
      expect(await service.createWallet({ label: "safe" }, once("order 1"))).toEqual(first);
    });

    it("makes one wallet if it is made twice at one moment", async () => {
      const make = () => service.createWallet({ label: "spare" }, once("order 2"));
      const [one, other] = await Promise.all([make(), make()]);
      keep(one);
      expect(other).toEqual(one);
    });

    it("is refused if another request had the same key", async () => {
      expect(await refusal(service.createWallet({ label: "other" }, once("order 1")))).toEqual({
        code: "AlreadyExists",
        reason: "IDEMPOTENCY_KEY_REUSED",
      });
    });
  });
}

function tellOfSigning({ service, wallet }: Stage): void {
  describe("SignTransaction", () => {
    it.each([
      ["an unnamed wallet", unnamed, data],
      ["a named wallet, of every byte that there is,", till, Uint8Array.from({ length: 256 }, (_, i) => i)],
    ])("makes a signature with %s that node:crypto verifies", async (_title, label, transaction) => {
      const { walletId, address, publicKey, publicKeyPem } = wallet(label);
      const answer = await service.signTransaction({ walletId, data: transaction });
      const { signature } = answer;
      expect(answer).toEqual({
        $typeName: "wallet.SignTransactionResponse",
        status: "success",
        ...{ signature, publicKey, publicKeyPem, address },
      });
      expect(signature).toHaveLength(3309);
      expect(isSignatureOf(publicKeyPem, signature, transaction)).toBe(true);
      expect(isSignatureOf(publicKeyPem, signature, otherData)).toBe(false);
    });
  });
}

function tellOfVerifying({ service, wallet }: Stage): void {
  describe("VerifyTransaction", () => {
    let signature: Uint8Array;

    it.each(["publicKey", "publicKeyPem"] as const)(
      "answers valid to a signature of the service with its %s, and tells whose it is",
      async (field) => {
        const { walletId, address, ...keys } = wallet(till);
        ({ signature } = await service.signTransaction({ walletId, data }));
        expect(await service.verifyTransaction({ data, signature, [field]: keys[field] })).toEqual({
          $typeName: "wallet.VerifyTransactionResponse",
          status: "success",
          valid: true,
          address,
        });
      },
    );

    it("answers valid to a signature that node:crypto made with a key of its own", async () => {
      const { publicKey: key, privateKey } = generateKeyPairSync("ml-dsa-65");
      const publicKey = new Uint8Array(key.export({ format: "raw-public" }));
      const answer = await service.verifyTransaction({
        data,
        signature: sign(null, data, privateKey),
        publicKey,
      });
      expect(answer).toMatchObject({ valid: true, address: addressOf(publicKey) });
    });

    const changes = [
      ["other data", till, () => ({ data: otherData })],
      ["one bit of the signature changed", till, () => ({ signature: flipBit(signature) })],
      ["the key of another wallet", unnamed, () => ({})],
    ] as const;
    it.each(changes)(
      "answers not valid with %s, and tells whose the key is",
      async (_title, label, change) => {
        const { publicKey, address } = wallet(label);
        const answer = await service.verifyTransaction({ data, signature, publicKey, ...change() });
        expect(answer).toMatchObject({ valid: false, address });
      },
    );
  });
}

function tellOfLists({ service, past, wallet, kept }: Stage): void {
  describe("ListWallets", () => {
    it("lists all wallets in the order of their creation, as CreateWallet answered", async () => {
      expect(kept()).toHaveLength(labels.length);
      const wallets = [...past().wallets, ...kept().map(toListed)];
      expect(await service.listWallets({})).toEqual({
        $typeName: "wallet.ListWalletsResponse",
        status: "success",
        wallets,
        nextPageToken: "",
        totalSize: wallets.length,
      });
    });

    it("lists them in pages", async () => {
      const before = past().wallets.length;
      const pageSize = before + 3;
      const page = await service.listWallets({ pageSize });
      const rest = await service.listWallets({ pageSize, pageToken: page.nextPageToken });
      expect(page.wallets.slice(before).map(({ label }) => label)).toEqual([unnamed, till, "safe"]);
      expect(rest.wallets.map(({ walletId }) => walletId)).toEqual([wallet("spare").walletId]);
      expect([page.totalSize, rest.totalSize, rest.nextPageToken]).toEqual([before + 4, before + 4, ""]);
    });
  });
}

/** A wallet as lists have it. */
function toListed({ status: _, publicKeyPem: __, ...wallet }: CreateWalletResponse): object {
  return { ...wallet, $typeName: "wallet.Wallet" };
}

function tellOfHealth({ service, past, kept }: Stage): void {
  describe("GetHealth", () => {
    it("tells that the service is up, and how many wallets it holds", async () => {
      const before = past().wallets.length;
      expect(past().walletCount).toBe(before);
      expect(await service.getHealth({})).toEqual({
        $typeName: "wallet.WalletServiceGetHealthResponse",
        status: "success",
        serviceStatus: "UP",
        walletCount: before + kept().length,
      });
    });
  });
}

function addressOf(publicKey: Uint8Array): string {
  return `0x${hash("sha256", publicKey).slice(0, 40)}`;
}
