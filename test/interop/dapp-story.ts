/** What one client of the contract service lives through: contracts it deploys, and data it signs twice over. */
import { hash, randomUUID } from "node:crypto";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import { beforeAll, describe, expect, it } from "vitest";
import type { Contract, DappService, DeployContractResponse } from "#gen/dapp/dapp_service_pb.ts";
import { refusal } from "../support/refusal.ts";
import { tellOfDualSigning, tellOfDualVerifying } from "./dapp-story-dual.ts";
import { tellOfRefusals } from "./dapp-story-refusals.ts";
import { isSignatureOf, rawKeyOf } from "./outside.ts";

/** A client of the contract service. */
export type DappClient = Client<typeof DappService>;

/** What the chapters about contracts share. */
interface Stage {
  readonly service: DappClient;
  /** What the service held when the story began: other stories may have been told to it. */
  past(): readonly Contract[];
  /** Keeps a contract of an answer, for the tests that come after. */
  keep(contract: DeployContractResponse): void;
  /** All that were kept, in the order of their deployment. */
  kept(): readonly DeployContractResponse[];
}

/** Every character counts: line ends, invisible characters, and a letter in two parts. */
const contracts = {
  adder: "return a + b",
  "größer 😀": '\ufeffжé e\u0301 😀 "\\/\r\n\t\0 ',
  escrow: "return 1",
  twin: "return 1",
};

/** Tells the story as consecutive tests. No other test uses the service at the same time. */
export function tellStory(service: DappClient): void {
  const stage = createStage(service);
  tellOfDeploying(stage);
  tellOfRetries(stage);
  tellOfDualSigning(service);
  tellOfDualVerifying(service);
  tellOfLists(stage);
  tellOfRefusals(service);
  tellOfHealth(service);
}

function createStage(service: DappClient): Stage {
  let past: readonly Contract[] = [];
  beforeAll(async () => {
    ({ contracts: past } = await service.listContracts({}));
  });
  const kept: DeployContractResponse[] = [];
  return { service, past: () => past, keep: (contract) => void kept.push(contract), kept: () => kept };
}

function tellOfDeploying({ service, keep }: Stage): void {
  describe("DeployContract", () => {
    it.each([
      ["without a name", contracts.adder, {}],
      ["of characters of all kinds", contracts["größer 😀"], { name: "größer 😀" }],
    ])("signs the hash of a contract %s with a key that verifies outside", async (_title, code, given) => {
      const before = Date.now();
      const answer = await service.deployContract({ code, ...given });
      keep(answer);
      const codeHash = hash("sha256", code);
      const { signature, publicKeyPem } = answer;
      expect(answer).toEqual({
        $typeName: "dapp.DeployContractResponse",
        status: "success",
        contractId: expect.stringMatching(/^contract-[0-9a-f-]{36}$/),
        codeHash,
        signature,
        publicKey: rawKeyOf(publicKeyPem),
        deployedAt: expect.anything(),
        publicKeyPem: expect.stringMatching(/^-----BEGIN PUBLIC KEY-----\n/),
        name: "",
        ...given,
      });
      expect([answer.publicKey.length, signature.length]).toEqual([1952, 3309]);
      expect(isSignatureOf(publicKeyPem, signature, Buffer.from(codeHash, "hex"))).toBe(true);
      expect(isSignatureOf(publicKeyPem, signature, Buffer.from(codeHash))).toBe(false);
      expect(answer.deployedAt && timestampDate(answer.deployedAt).getTime()).toSatisfy(
        (deployedAtMs: number) => deployedAtMs >= before && deployedAtMs <= Date.now(),
      );
    });
  });
}

function tellOfRetries({ service, keep, kept }: Stage): void {
  describe("DeployContract with an Idempotency-Key", () => {
    const story = randomUUID();
    const once = (name: string) => ({ headers: { "Idempotency-Key": `${story} ${name}` } });
    const escrow = { code: contracts.escrow, name: "escrow" };

    it("deploys one contract, however often it is made", async () => {
      const first = await service.deployContract(escrow, once("order 1"));
      keep(first);
      expect(await service.deployContract(escrow, once("order 1"))).toEqual(first);
    });

    it("deploys one contract if it is made twice at one moment", async () => {
      const deploy = () => service.deployContract({ code: contracts.twin, name: "twin" }, once("order 2"));
      const [one, other] = await Promise.all([deploy(), deploy()]);
      keep(one);
      expect(other).toEqual(one);
    });

    it("is refused if another request had the same key", async () => {
      expect(await refusal(service.deployContract({ code: contracts.escrow }, once("order 1")))).toEqual({
        code: "AlreadyExists",
        reason: "IDEMPOTENCY_KEY_REUSED",
      });
    });

    it("deploys the same code again if it has another key, as a contract with a key pair of its own", () => {
      const [first, second] = kept().slice(2);
      expect(second?.codeHash).toBe(first?.codeHash);
      expect(second?.contractId).not.toBe(first?.contractId);
      expect(second?.publicKey).not.toEqual(first?.publicKey);
    });
  });
}

function tellOfLists({ service, past, kept }: Stage): void {
  describe("ListContracts", () => {
    it("lists all contracts in the order of their deployment, as DeployContract answered", async () => {
      expect(kept()).toHaveLength(Object.keys(contracts).length);
      const all = [...past(), ...kept().map(toListed)];
      expect(await service.listContracts({})).toEqual({
        $typeName: "dapp.ListContractsResponse",
        status: "success",
        contracts: all,
        nextPageToken: "",
        totalSize: all.length,
      });
    });

    it("lists them in pages", async () => {
      const before = past().length;
      const pageSize = before + 3;
      const page = await service.listContracts({ pageSize });
      const rest = await service.listContracts({ pageSize, pageToken: page.nextPageToken });
      expect(page.contracts.slice(before)).toEqual(kept().slice(0, 3).map(toListed));
      expect(rest.contracts).toEqual(kept().slice(3).map(toListed));
      expect([page.totalSize, rest.totalSize, rest.nextPageToken]).toEqual([before + 4, before + 4, ""]);
    });
  });
}

/** A contract as lists have it. */
function toListed({ status: _, publicKeyPem: __, ...contract }: DeployContractResponse): object {
  return { ...contract, $typeName: "dapp.Contract" };
}

function tellOfHealth(service: DappClient): void {
  describe("GetHealth", () => {
    it("tells that the service is up and both algorithms work", async () => {
      expect(await service.getHealth({})).toEqual({
        $typeName: "dapp.DappServiceGetHealthResponse",
        status: "success",
        serviceStatus: "UP",
        ecdsaAvailable: true,
        mlDsa65Available: true,
      });
    });
  });
}
