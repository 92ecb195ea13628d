/** What one client of the token service lives through, from its first mint to the count at the end. */
import { hash, randomBytes, randomUUID } from "node:crypto";
import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import { beforeAll, describe, expect, it } from "vitest";
import type { ListedToken, MintResponse, NftService } from "#gen/nft/nft_service_pb.ts";
import { refusal } from "../support/refusal.ts";
import { tellOfLists } from "./nft-story-lists.ts";
import { tellOfRefusals } from "./nft-story-refusals.ts";
import { tellOfHistory, tellOfTransferring } from "./nft-story-transfers.ts";
import { tellOfVerifying } from "./nft-story-verifying.ts";
import { isSignatureOf, rawKeyOf, toCanonicalJson } from "./outside.ts";

/** A client of the token service. */
export type NftClient = Client<typeof NftService>;

/** What a service holds when a story begins: other stories may have been told to it. */
export interface Past {
  readonly tokens: readonly ListedToken[];
  /** As GetHealth counts them. */
  readonly tokenCount: number | undefined;
}

/** What the chapters of a story share. */
export interface Stage {
  readonly service: NftClient;
  /** Addresses that no other story has. */
  readonly alice: string;
  readonly bob: string;
  past(): Past;
  /** Keeps a token of an answer under its name, for the tests that come after. */
  keep(name: TokenName, token: MintResponse): void;
  /** The token that was kept under a name. */
  token(name: TokenName): MintResponse;
}

/** What the tokens of the story are about. */
const metadata = {
  Dawn: { name: "Dawn", description: "oil on canvas", artworkUri: "ipfs://bafy" },
  Ω: { name: 'Ω "é" e\u0301 \\ /', description: "\b\t\n\f\r\u0001\u001f\u007f \u2028 😀", artworkUri: "" },
  Dusk: { name: "Dusk", description: "", artworkUri: "" },
  Noon: { name: "Noon", description: "", artworkUri: "" },
};

/** Names a token of the story. */
export type TokenName = keyof typeof metadata;

/** The names of its tokens, in the order in which they are minted. */
export const tokenNames = Object.keys(metadata) as TokenName[];

/** Tells the story as consecutive tests. No other test uses the service at the same time. */
export function tellStory(service: NftClient): void {
  const stage = createStage(service);
  tellOfMinting(stage);
  tellOfRetries(stage);
  tellOfTransferring(stage);
  tellOfHistory(stage);
  tellOfVerifying(stage);
  tellOfLists(stage);
  tellOfRefusals(stage);
  tellOfHealth(stage);
}

function createStage(service: NftClient): Stage {
  let past: Past = { tokens: [], tokenCount: undefined };
  beforeAll(async () => {
    const { tokens } = await service.listTokens({});
    const { tokenCount } = await service.getHealth({});
    past = { tokens, tokenCount };
  });
  const kept = new Map<TokenName, MintResponse>();
  const token = (name: TokenName): MintResponse => {
    const found = kept.get(name);
    if (found === undefined) throw new Error(`no test before this one kept a token ${name}`);
    return found;
  };
  const keep = (name: TokenName, minted: MintResponse): void => void kept.set(name, minted);
  return { service, alice: makeAddress(), bob: makeAddress(), past: () => past, keep, token };
}

function makeAddress(): string {
  return `0x${randomBytes(20).toString("hex")}`;
}

function tellOfMinting({ service, keep, token }: Stage): void {
  describe("Mint and GetToken", () => {
    let earliestMs: number;

    it.each([
      ["plain text", "Dawn"],
      ["characters of all kinds", "Ω"],
    ] as const)("sign the hash of %s with a key that verifies outside", async (_title, name) => {
      earliestMs ??= Date.now();
      const minted = await service.mint(metadata[name]);
      keep(name, minted);
      const { signature, creatorPublicKey, creatorPublicKeyPem, creatorAddress } = minted;
      const metadataHash = hash("sha256", toCanonicalJson(metadata[name]));
      expect(minted).toEqual({
        $typeName: "nft.MintResponse",
        status: "success",
        tokenId: expect.stringMatching(/^token-[0-9a-f-]{36}$/),
        creatorAddress: `0x${hash("sha256", creatorPublicKey).slice(0, 40)}`,
        signature,
        creatorPublicKey: rawKeyOf(creatorPublicKeyPem),
        creatorPublicKeyPem: expect.stringMatching(/^-----BEGIN PUBLIC KEY-----\n/),
        metadataHash,
        owner: creatorAddress,
      });
      expect([creatorPublicKey.length, signature.length]).toEqual([1952, 3309]);
      expect(isSignatureOf(creatorPublicKeyPem, signature, Buffer.from(metadataHash, "hex"))).toBe(true);
      expect(isSignatureOf(creatorPublicKeyPem, signature, Buffer.from(metadataHash))).toBe(false);
    });

    it.each(["Dawn", "Ω"] as const)("describe the token %s as it was minted", async (name) => {
      const { tokenId, owner, signature, ...minted } = token(name);
      const described = await service.getToken({ tokenId });
      expect(described).toEqual({
        ...minted,
        $typeName: "nft.GetTokenResponse",
        status: "success",
        tokenId,
        metadata: { $typeName: "nft.TokenMetadata", ...metadata[name] },
        currentOwner: owner,
        creatorSignature: signature,
        algorithm: "ML-DSA-65",
        mintedAt: expect.anything(),
      });
      expect(described.mintedAt).toSatisfy(isSince(earliestMs));
    });
  });
}

/** Tells whether something happened after a moment, and has happened already. */
export function isSince(earliestMs: number): (timestamp: Timestamp | undefined) => boolean {
  return (timestamp) => {
    if (timestamp === undefined) return false;
    const ms = timestampDate(timestamp).getTime();
    return ms >= earliestMs && ms <= Date.now();
  };
}

function tellOfRetries({ service, keep, token }: Stage): void {
  describe("Mint with an Idempotency-Key", () => {
    const story = randomUUID();
    const once = (name: string) => ({ headers: { "Idempotency-Key": `${story} ${name}` } });

    it("mints one token, however often it is made", async () => {
      const first = await service.mint(metadata.Dusk, once("order 1"));
      keep("Dusk", first);
      expect(await service.mint(metadata.Dusk, once("order 1"))).toEqual(first);
    });

    it("mints one token if it is made twice at one moment", async () => {
      const mint = () => service.mint(metadata.Noon, once("order 2"));
      const [one, other] = await Promise.all([mint(), mint()]);
      keep("Noon", one);
      expect(other).toEqual(one);
    });

    it("mints each token with an id and a creator of its own", () => {
      expect(new Set(tokenNames.map((name) => token(name).tokenId)).size).toBe(tokenNames.length);
      expect(new Set(tokenNames.map((name) => token(name).creatorAddress)).size).toBe(tokenNames.length);
    });

    it("is refused if another request had the same key", async () => {
      expect(await refusal(service.mint(metadata.Noon, once("order 1")))).toEqual({
        code: "AlreadyExists",
        reason: "IDEMPOTENCY_KEY_REUSED",
      });
    });
  });
}

function tellOfHealth({ service, past }: Stage): void {
  describe("GetHealth", () => {
    it("tells that the service is up, and how many tokens it holds", async () => {
      const before = past().tokens.length;
      expect(past().tokenCount).toBe(before);
      expect(await service.getHealth({})).toEqual({
        $typeName: "nft.NftServiceGetHealthResponse",
        status: "success",
        serviceStatus: "UP",
        tokenCount: before + tokenNames.length,
      });
    });
  });
}
