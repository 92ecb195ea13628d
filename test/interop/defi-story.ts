/** What one client of the governance service lives through, from its first wallet to the counts at the end. */
import { randomUUID } from "node:crypto";
import { beforeAll, describe, expect, it } from "vitest";
import type { CreateMultisigResponse, Proposal } from "#gen/defi/defi_service_pb.ts";
import { present } from "../services/answers.ts";
import type { DefiClient } from "../services/proposals.ts";
import { tellOfExecuting } from "./defi-story-executing.ts";
import { tellOfLists } from "./defi-story-lists.ts";
import { tellOfProposing } from "./defi-story-proposing.ts";
import { tellOfRefusals } from "./defi-story-refusals.ts";
import { tellOfSigning } from "./defi-story-signing.ts";
import { tellOfWallets } from "./defi-story-wallets.ts";

/** What a service holds when a story begins: other stories may have been told to it. */
export interface Past {
  readonly wallets: number;
  readonly pending: number;
  readonly executed: number;
  /** As GetHealth counts them. */
  readonly walletCount: number | undefined;
  readonly proposalCount: number | undefined;
}

/** Signs with the key that a signer keeps to itself. */
export type SignAsOwner = (message: Uint8Array) => Uint8Array;

/** What the chapters of a story share. */
export interface Stage {
  readonly defi: DefiClient;
  past(): Past;
  /** Call options with the Idempotency-Key that has this name in the story. */
  once(name: string): { readonly headers: Record<string, string> };
  /** The wallets of the story by their names, in the order of their creation. */
  readonly wallets: Shelf<CreateMultisigResponse>;
  /** The proposals of the story as they are by now, by their names, in the order of their creation. */
  readonly proposals: Shelf<Proposal>;
  /** Those who keep their own keys, by their addresses. */
  readonly owners: Map<string, SignAsOwner>;
}

/** Keeps something under names, for the tests that come after. */
export interface Shelf<T> {
  /** Keeps it, in the place of what had the name before. */
  keep(name: string, one: T): void;
  get(name: string): T;
  all(): readonly T[];
}

/** Tells the story as consecutive tests. No other test uses the service at the same time. */
export function tellStory(defi: DefiClient): void {
  const stage = createStage(defi);
  tellOfWallets(stage);
  tellOfProposing(stage);
  tellOfSigning(stage);
  tellOfExecuting(stage);
  tellOfLists(stage);
  tellOfRefusals(stage);
  tellOfHealth(stage);
}

function createStage(defi: DefiClient): Stage {
  let past: Past | undefined;
  beforeAll(async () => {
    const { totalSize: wallets } = await defi.listWallets({ pageSize: 1 });
    const count = async (proposalStatus: string) =>
      (await defi.listProposals({ proposalStatus, pageSize: 1 })).totalSize;
    const [pending, executed] = [await count("PENDING"), await count("EXECUTED")];
    const { walletCount, proposalCount } = await defi.getHealth({});
    past = { wallets, pending, executed, walletCount, proposalCount };
  });
  const story = randomUUID();
  return {
    defi,
    past: () => present(past),
    once: (name) => ({ headers: { "Idempotency-Key": `${story} ${name}` } }),
    wallets: makeShelf(),
    proposals: makeShelf(),
    owners: new Map(),
  };
}

function makeShelf<T>(): Shelf<T> {
  const kept = new Map<string, T>();
  return {
    keep: (name, one) => void kept.set(name, one),
    get: (name) => {
      const found = kept.get(name);
      if (found === undefined) throw new Error(`no test before this one kept ${name}`);
      return found;
    },
    all: () => [...kept.values()],
  };
}

function tellOfHealth({ defi, past, wallets, proposals }: Stage): void {
  describe("GetHealth", () => {
    it("tells that the service is up, and how many wallets and proposals it holds", async () => {
      const { pending, executed, walletCount, proposalCount } = past();
      expect([walletCount, proposalCount]).toEqual([past().wallets, pending + executed]);
      expect(await defi.getHealth({})).toEqual({
        $typeName: "defi.DefiServiceGetHealthResponse",
        status: "success",
        serviceStatus: "UP",
        walletCount: past().wallets + wallets.all().length,
        proposalCount: pending + executed + proposals.all().length,
      });
    });
  });
}
