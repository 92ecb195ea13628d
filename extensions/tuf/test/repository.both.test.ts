/** Repositories: who decides about roots, what a publication changes, and what stays readable. */
import { generateKeyPairSync, sign } from "node:crypto";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "vitest";
import { anyTable } from "../../../src/database/schema.ts";
import { present } from "../../../test/services/answers.ts";
import { freshOrder } from "../../../test/services/service-server.ts";
import { describeStores, type Place } from "../../../test/support/on-both.ts";
import { failureOf, outcomeOf, outcomesOf, refusal } from "../../../test/support/refusal.ts";
import { findFile } from "../get-file.ts";
import { type Clock, type Domain, openDomain, targetPath } from "./open-domain.ts";
import {
  createSigners,
  openRepository,
  proposeRoot,
  publishRoot,
  type RootSigner,
  repository,
  signMetadata,
  toSignRequest,
} from "./tuf-server.ts";

const hour = 3600 * 1000;
const day = 24 * hour;

describeStores("a repository", (makePlace) => {
  async function open(clock: Clock = { now: new Date() }, place?: Place) {
    const domain = await openDomain(await (place ?? (await makePlace())).open(), clock);
    return {
      ...domain,
      /** How signing a root ends. */
      sign: (...request: Parameters<typeof toSignRequest>) =>
        outcomeOf(domain.tuf.signRoot(toSignRequest(...request))),
      findProposal: async (proposalId: string) =>
        present((await domain.tuf.getRootProposal({ repository, proposalId })).proposal),
      publish: () => domain.tuf.publish({ repository }),
    };
  }
  /** With a published root. */
  async function openPublished(clock?: Clock) {
    const domain = await open(clock);
    return { ...domain, ...(await openRepository(domain)) };
  }
  const addressesOf = (signers: readonly { signer: string }[]) => signers.map(({ signer }) => signer).sort();
  const readVersion = async ({ read }: Pick<Domain, "read">, path = "metadata/timestamp.json") =>
    (await read(path)).signed.version;
  const readTargets = async ({ read }: Pick<Domain, "read">, path: string) =>
    Object.keys((await read(path)).signed.targets);
  const listStates = async ({ tuf }: Pick<Domain, "tuf">) =>
    (await tuf.listTargets({ repository })).targets.map(
      ({ path, targetStatus }) => `${path} ${targetStatus}`,
    );

  describe("a root", () => {
    it("is proposed in the current wallet, as the canonical JSON to sign, and expires with its proposal", async () => {
      const domain = await open();
      const { walletId, signers } = await createSigners(domain, 3, 2);
      await domain.tuf.createRepository({ repository, walletId, validity: { rootSeconds: 86_400 } });
      expect(await outcomeOf(domain.publish())).toBe("ROOT_MISSING");
      const proposal = await proposeRoot(domain);
      const { metadata, proposalId, expiresAt } = proposal;
      const title = "TUF root 1 of firmware";
      expect((await domain.defi.listProposals({})).proposals).toMatchObject([
        { proposalId, walletId, data: metadata, expiresAt, title },
      ]);
      expect(Buffer.from(metadata).toString()).toMatch(
        /^\{"_type":"root","consistent_snapshot":true,"expires":"/,
      );
      expect(proposal).toMatchObject({ currentThreshold: 2, newThreshold: 2, proposalStatus: "PENDING" });
      expect(addressesOf(proposal.signers)).toEqual(addressesOf(signers));
      const { repository: described } = await domain.tuf.getRepository({ repository });
      expect(described).toMatchObject({ rootProposalIds: [proposalId], rootVersion: 0 });
    });

    it("gets a signer's vote and signature together, or neither", async () => {
      const domain = await open();
      const { walletId, signers } = await createSigners(domain, 2, 2);
      await domain.tuf.createRepository({ repository, walletId });
      const proposal = await proposeRoot(domain);
      const [ada, bob] = signers as [RootSigner, RootSigner];
      const right = toSignRequest(ada, proposal);
      const signWith = (request: { vote?: Uint8Array; rootSignature?: Uint8Array }) =>
        outcomeOf(domain.tuf.signRoot({ ...right, ...request }));
      expect(await signWith({ vote: new Uint8Array() })).toBe("SIGNATURE_MISSING");
      const wrongVote = await failureOf(domain.tuf.signRoot({ ...right, vote: right.rootSignature }));
      expect(wrongVote.message).toMatch(/vote: is not the signature/);
      for (const rootSignature of [present(right.vote), signMetadata(bob, proposal.metadata)])
        expect(await signWith({ rootSignature })).toBe("SIGNATURE_INVALID");
      const nothing = { hasVoted: false, hasSigned: false };
      expect((await domain.findProposal(proposal.proposalId)).signers).toMatchObject([nothing, nothing]);
      const { proposal: signed } = await domain.tuf.signRoot(right);
      const own = present(signed).signers.find(({ signer }) => signer === ada.signer);
      expect(own).toMatchObject({ hasVoted: true, hasSigned: true, isCurrent: true, isNew: true });
      expect(await signWith({})).toBe("ALREADY_SIGNED");
      const { privateKey } = generateKeyPairSync("ml-dsa-65");
      expect(await domain.sign({ signer: `0x${"00".repeat(20)}`, privateKey }, proposal)).toBe(
        "SIGNER_UNKNOWN",
      );
    });

    it("can be published once its proposal is executed and both thresholds have signed", async () => {
      const domain = await openPublished();
      const { tuf, defi, sign: signRoot } = domain;
      const next = await createSigners(domain, 2, 2);
      const proposal = await proposeRoot(domain, { walletId: next.walletId });
      const { proposalId } = proposal;
      const publish = () => outcomeOf(tuf.publishRoot({ repository, proposalId }));
      expect(await publish()).toBe("PROPOSAL_NOT_EXECUTED");
      const [ada, bob, cid] = domain.signers as [RootSigner, RootSigner, RootSigner];
      // Votes alone execute the proposal, but do not sign the root.
      for (const { signer, privateKey } of [ada, bob]) {
        const signature = sign(null, proposal.signingHash, privateKey);
        await defi.signProposal({ proposalId, signer, signature });
      }
      await defi.executeProposal({ proposalId });
      expect(await publish()).toBe("THRESHOLD_NOT_REACHED");
      expect(await signRoot(ada, proposal, false)).toBe("answer");
      // The proposal is decided, so a late vote is ignored.
      expect(await signRoot(cid, proposal)).toBe("answer");
      expect(await publish()).toBe("THRESHOLD_NOT_REACHED");
      const [dan, eve] = next.signers as [RootSigner, RootSigner];
      expect(await refusal(tuf.signRoot(toSignRequest(dan, proposal)))).toMatchObject({ fields: ["vote"] });
      expect(await signRoot(dan, proposal, false)).toBe("answer");
      expect(await publish()).toBe("THRESHOLD_NOT_REACHED");
      expect(await signRoot(eve, proposal, false)).toBe("answer");
      expect(await publish()).toBe("answer");
      const root = await domain.read("metadata/2.root.json");
      expect(root.signatures).toHaveLength(4);
      expect(root.signed.roles.root).toMatchObject({ threshold: 2, keyids: { length: 2 } });
      expect((await domain.findProposal(proposalId)).proposalStatus).toBe("PUBLISHED");
      // The keys of the other roles are the same, so their metadata are too.
      for (const path of ["metadata/1.root.json", "metadata/timestamp.json"])
        expect(await domain.read(path)).toMatchObject({ signed: { version: 1 } });
      // Now the new signers decide.
      expect(addressesOf((await proposeRoot(domain)).signers)).toEqual(addressesOf(next.signers));
    });

    it("is published once, even if callers race for one version", async () => {
      const domain = await openPublished();
      const proposals: string[] = [];
      for (const days of [40, 50]) {
        const expiresAt = timestampFromDate(new Date(Date.now() + days * day));
        const proposal = await proposeRoot(domain, { expiresAt });
        for (const signer of domain.signers.slice(1)) await domain.sign(signer, proposal);
        await domain.defi.executeProposal({ proposalId: proposal.proposalId });
        proposals.push(proposal.proposalId);
      }
      const calls = [...proposals, ...proposals].map((proposalId) =>
        domain.tuf.publishRoot({ repository, proposalId }),
      );
      const { answered, refusals } = await outcomesOf(calls);
      expect([answered, ...refusals.map(({ reason }) => reason)]).toEqual([
        1,
        ...Array(3).fill("ROOT_OUTDATED"),
      ]);
      const states = (await Promise.all(proposals.map(domain.findProposal))).map((one) => one.proposalStatus);
      expect(states.sort()).toEqual(["OUTDATED", "PUBLISHED"]);
      expect(await domain.has("metadata/3.root.json")).toBe(false);
    });

    it("with a new role key comes with metadata signed by it, and by rotation in kms or newKeys", async () => {
      const domain = await openPublished();
      await domain.upload("esp32/draft.bin", "not to be published yet");
      const before = present((await domain.tuf.getRepository({ repository })).repository);
      const keyOf = (role: string, { roles } = before) =>
        present(roles.find((one) => one.role === role)).keyId;
      await domain.kms.rotateKey({ keyId: keyOf("snapshot") });
      const proposal = await proposeRoot(domain, { newKeys: ["targets"] });
      const after = await publishRoot(domain, proposal, domain.signers.slice(0, 2));
      const isSame = ["targets", "snapshot", "timestamp"].map((role) => keyOf(role, after) === keyOf(role));
      expect(isSame).toEqual([false, false, true]);
      const { roles } = (await domain.read("metadata/2.root.json")).signed;
      for (const name of ["2.targets", "2.snapshot", "timestamp"]) {
        const { signatures, signed } = await domain.read(`metadata/${name}.json`);
        expect(signed.version).toBe(2);
        expect(signatures.map(({ keyid }) => keyid)).toEqual(roles[name.replace("2.", "")]?.keyids);
      }
      expect((await domain.read("metadata/2.targets.json")).signed.targets).toEqual({});
    });

    it("is not published if a key that it needs is disabled, and nothing of it is visible", async () => {
      const domain = await openPublished();
      const proposal = await proposeRoot(domain, { newKeys: ["timestamp"] });
      const { keys } = await domain.kms.listKeys({});
      const { keyId } = present(keys.findLast(({ alias }) => alias === "TUF firmware timestamp"));
      await domain.kms.disableKey({ keyId });
      const publishing = publishRoot(domain, proposal, domain.signers.slice(0, 2));
      expect(await outcomeOf(publishing)).toBe("KEY_STATE_INVALID");
      expect(await domain.has("metadata/2.root.json")).toBe(false);
      await domain.kms.enableKey({ keyId });
      await domain.tuf.publishRoot({ repository, proposalId: proposal.proposalId });
      expect((await domain.read("metadata/timestamp.json")).signed.version).toBe(2);
    });

    it("must fit into a proposal, and belong to signers who keep their own keys", async () => {
      const { tuf, defi, kms } = await open();
      const { walletId: tooMany } = await createSigners({ defi }, 20, 2);
      expect(await outcomeOf(tuf.createRepository({ repository, walletId: tooMany }))).toBe("ROOT_TOO_LARGE");
      expect((await kms.listKeys({})).keys).toEqual([]);
      const { walletId } = await createSigners({ defi }, 2, 2);
      await tuf.createRepository({ repository, walletId });
      const { walletId: fitting } = await createSigners({ defi }, 19, 2);
      const { walletId: serverHeld } = await defi.createMultisig({ signerCount: 2, threshold: 2 });
      const outcomes = [];
      for (const next of [tooMany, fitting, serverHeld])
        outcomes.push(await outcomeOf(proposeRoot({ tuf }, { walletId: next })));
      expect(outcomes).toEqual(["ROOT_TOO_LARGE", "answer", "WALLET_UNSUITABLE"]);
    });

    it("is returned to a retry of its proposal, even after it expired", async () => {
      const clock = { now: new Date() };
      const { tuf } = await openPublished(clock);
      const expiresAt = timestampFromDate(new Date(clock.now.getTime() + day / 24));
      const retried = freshOrder();
      const propose = () => tuf.proposeRoot({ repository, expiresAt }, retried);
      const { proposal } = await propose();
      clock.now = new Date(clock.now.getTime() + day / 12);
      expect((await propose()).proposal).toEqual(proposal);
      expect(await refusal(tuf.proposeRoot({ repository, expiresAt }))).toMatchObject({
        fields: ["expiresAt"],
      });
    });

    it("cannot be signed or published after it expired", async () => {
      const clock = { now: new Date() };
      const domain = await openPublished(clock);
      const expiresAt = timestampFromDate(new Date(clock.now.getTime() + day));
      const [one, two] = [await proposeRoot(domain, { expiresAt }), await proposeRoot(domain, { expiresAt })];
      const { proposalId } = one;
      for (const signer of domain.signers.slice(1)) await domain.sign(signer, one);
      await domain.defi.executeProposal({ proposalId });
      clock.now = new Date(clock.now.getTime() + 2 * day);
      expect(await outcomeOf(domain.tuf.publishRoot({ repository, proposalId }))).toBe("PROPOSAL_EXPIRED");
      expect(await domain.sign(present(domain.signers[0]), two)).toBe("PROPOSAL_EXPIRED");
    });
  });

  describe("a publication", () => {
    it("publishes drafts, replacements and removals together, and nothing before", async () => {
      const domain = await openPublished();
      const { tuf, upload, has, publish } = domain;
      await upload("a.bin", "first");
      await upload("a.bin", "second");
      await upload("b.bin", "b");
      expect(domain.removed).toEqual(["a.bin 1 first"]);
      expect(await has(targetPath("b.bin", "b"))).toBe(false);
      expect(await publish()).toMatchObject({ added: 2, removed: 0 });
      expect(await readTargets(domain, "metadata/2.targets.json")).toEqual(["a.bin", "b.bin"]);
      expect(await has(targetPath("b.bin", "b"))).toBe(true);
      expect(await has(targetPath("b.bin", "b", "sha512"))).toBe(true);
      expect(await has(targetPath("a.bin", "first"))).toBe(false);

      await upload("a.bin", "third");
      await tuf.removeTarget({ repository, path: "b.bin" });
      expect(await outcomeOf(tuf.removeTarget({ repository, path: "b.bin" }))).toBe("TARGET_NOT_FOUND");
      expect(await listStates(domain)).toEqual(["a.bin REMOVING", "b.bin REMOVING", "a.bin DRAFT"]);
      const { repository: described } = await tuf.getRepository({ repository });
      expect(described).toMatchObject({ targetCount: 2, changeCount: 2 });
      expect(await publish()).toMatchObject({ added: 1, removed: 1 });
      const { hashes } = present((await domain.read("metadata/3.targets.json")).signed.targets["a.bin"]);
      expect(targetPath("a.bin", "third")).toContain(hashes.sha256);
      expect(await listStates(domain)).toEqual(["a.bin PUBLISHED"]);
      // A client with the former snapshot can still read what it names.
      expect(await has(targetPath("b.bin", "b"))).toBe(true);

      await upload("a.bin", "withdrawn");
      await tuf.removeTarget({ repository, path: "a.bin" });
      expect(await listStates(domain)).toEqual(["a.bin PUBLISHED"]);
      await publish();
      expect(await has(targetPath("a.bin", "third"))).toBe(true);
      expect(domain.removed).toEqual(["a.bin 1 first", "a.bin 5 withdrawn"]);
    });

    it("leaves nothing behind if it fails at its end, and can be repeated", async () => {
      const domain = await openPublished();
      await domain.upload("a.bin", "a");
      const { tuf } = domain.deps;
      const { readNewest } = tuf;
      // The transaction reads what it has written, for the answer.
      tuf.readNewest = async (name, db) => {
        if (db !== undefined) throw new Error("the database has left");
        return readNewest(name, db);
      };
      await expect(domain.publish()).rejects.toThrow("internal error");
      tuf.readNewest = readNewest;
      expect(await readVersion(domain)).toBe(1);
      expect(await domain.has("metadata/2.targets.json")).toBe(false);
      expect(await domain.has(targetPath("a.bin", "a"))).toBe(false);
      expect(await domain.publish()).toMatchObject({ added: 1 });
      expect(await readTargets(domain, "metadata/2.targets.json")).toEqual(["a.bin"]);
    });

    it("counts only what it published, even if a draft arrives meanwhile", async () => {
      const domain = await openPublished();
      await domain.upload("a.bin", "a");
      const { tuf } = domain.deps;
      const { findRepository } = tuf;
      let isFirst = true;
      tuf.findRepository = async (name, options) => {
        const found = await findRepository(name, options);
        if (options === undefined && isFirst) {
          isFirst = false;
          await domain.upload("late.bin", "late");
        }
        return found;
      };
      expect(await domain.publish()).toMatchObject({ added: 1, removed: 0 });
      expect(await readTargets(domain, "metadata/2.targets.json")).toEqual(["a.bin"]);
      expect(await domain.publish()).toMatchObject({ added: 1, removed: 0 });
    });

    it("moves a device type's targets to its role and back, and never forgets a role in snapshots", async () => {
      const domain = await openPublished();
      const { tuf, read, publish } = domain;
      const delegate = () => tuf.setDelegation({ repository, role: "esp32" });
      const readDelegated = async (version: number) =>
        present((await read(`metadata/${version}.targets.json`)).signed.delegations).roles[0]?.keyids;
      const readSigners = async (version: number) =>
        (await read(`metadata/${version}.esp32.json`)).signatures.map(({ keyid }) => keyid);
      for (const path of ["esp32/app.bin", "esp32/boot/loader.bin", "other.bin"])
        await domain.upload(path, path);
      expect((await delegate()).role).toMatchObject({ version: 0, keyState: "ACTIVE", hasChanged: true });
      await publish();
      expect(await readTargets(domain, "metadata/1.esp32.json")).toEqual(["esp32/app.bin"]);
      const others = ["esp32/boot/loader.bin", "other.bin"];
      expect(await readTargets(domain, "metadata/2.targets.json")).toEqual(others);
      const first = await readDelegated(2);
      expect(await readSigners(1)).toEqual(first);
      const readSnapshot = async (version: number) =>
        (await read(`metadata/${version}.snapshot.json`)).signed.meta;
      expect(await readSnapshot(2)).toMatchObject({
        "targets.json": { version: 2 },
        "esp32.json": { version: 1 },
      });
      expect((await read("metadata/timestamp.json")).signed.meta).toMatchObject({
        "snapshot.json": { version: 2, hashes: {}, length: expect.any(Number) },
      });

      // Another key, by the targets role alone.
      await delegate();
      const { repository: described } = await tuf.getRepository({ repository });
      const changed = described?.roles.find(({ role }) => role === "esp32");
      expect(changed).toMatchObject({ hasChanged: true, version: 1 });
      await publish();
      const second = await readDelegated(3);
      expect(await readSigners(2)).toEqual(second);
      expect(second).not.toEqual(first);

      const remove = () => tuf.removeDelegation({ repository, role: "esp32" });
      await remove();
      expect(await outcomeOf(remove())).toBe("DELEGATION_NOT_FOUND");
      await publish();
      expect(await readTargets(domain, "metadata/4.targets.json")).toContain("esp32/app.bin");
      expect(await readSnapshot(4)).toMatchObject({ "esp32.json": { version: 2 } });
      await delegate();
      await publish();
      expect(await readSnapshot(5)).toMatchObject({ "esp32.json": { version: 3 } });
    });

    it("accepts 31 delegations, as many as clients visit", async () => {
      const domain = await openPublished();
      const { tuf, kms } = domain;
      const key = present((await kms.listKeys({})).keys[0]).keyId;
      for (let i = 0; i < 31; i++) await tuf.setDelegation({ repository, role: `type-${i}`, key });
      expect(await outcomeOf(tuf.setDelegation({ repository, role: "more", key }))).toBe("FIELD_INVALID");
      await domain.publish();
      expect(await readTargets(domain, "metadata/1.type-30.json")).toEqual([]);
    });

    it("is complete when callers race, and each call is answered", async () => {
      const domain = await openPublished();
      const uploads = Array.from({ length: 5 }, (_, i) => domain.upload(`${i}.bin`, String(i)));
      const calls = Array.from({ length: 5 }, domain.publish);
      expect(await outcomesOf([...uploads, ...calls])).toEqual({ answered: 10, refusals: [] });
      await domain.publish();
      expect(await readVersion(domain)).toBe(7);
      const paths = ["0.bin", "1.bin", "2.bin", "3.bin", "4.bin"];
      expect(await readTargets(domain, "metadata/7.targets.json")).toEqual(paths);
    });

    it("records each use of a key, and none of metadata that were not published", async () => {
      const { kms, publish } = await openPublished();
      await Promise.all([publish(), publish(), publish()]);
      const { auditLog } = await kms.getAuditLog({ operation: "SIGN" });
      const signed = auditLog.map(({ details }) => details.replace("input=tuf, repository=firmware, ", ""));
      const expected = [1, 2, 3, 4].flatMap((version) =>
        ["targets", "snapshot", "timestamp"].map((role) => `role=${role}, version=${version}`),
      );
      expect(signed.sort()).toEqual(expected.sort());
    });

    it("is renewed by one of all replicas when a third of the validity is left", async () => {
      const place = await makePlace();
      const clock = { now: new Date() };
      const [one, two] = [await open(clock, place), await open(clock, place)];
      await openRepository(one);
      const pass = async (ms: number) => {
        clock.now = new Date(clock.now.getTime() + ms);
        await Promise.all([one.renewDue(), two.renewDue()]);
        const { version, meta } = (await two.read("metadata/timestamp.json")).signed;
        return [version, present(meta["snapshot.json"]).version, one.renewals() + two.renewals()];
      };
      expect(await pass(15 * hour)).toEqual([1, 1, 0]);
      expect(await pass(2 * hour)).toEqual([2, 1, 1]);
      expect(await pass(5 * day)).toEqual([3, 2, 2]);
      expect(await pass(0)).toEqual([3, 2, 2]);
      const { auditLog } = await one.kms.getAuditLog({ operation: "SIGN" });
      expect(auditLog.filter(({ user }) => user === "schedule")).toHaveLength(3);
    });

    it("that cannot be renewed is retried, and succeeds when its key is usable again", async () => {
      const clock = { now: new Date() };
      const domain = await openPublished(clock);
      const { roles } = present((await domain.tuf.getRepository({ repository })).repository);
      const { keyId } = present(roles.find(({ role }) => role === "timestamp"));
      const pass = async (ms: number) => {
        clock.now = new Date(clock.now.getTime() + ms);
        await domain.renewDue();
        return readVersion(domain);
      };
      await domain.kms.disableKey({ keyId });
      expect(await pass(20 * hour)).toBe(1);
      await domain.kms.enableKey({ keyId });
      expect(await pass(hour)).toBe(2);
    });

    it("removes files a week after their successors, but never a root", async () => {
      const clock = { now: new Date() };
      const domain = await openPublished(clock);
      const { has, publish } = domain;
      await publishRoot(domain, await proposeRoot(domain), domain.signers.slice(0, 2));
      for (const content of ["old", "new"]) {
        await domain.upload("a.bin", content);
        await publish();
      }
      const metadata = ["1.root", "2.targets", "3.targets"].map((name) => `metadata/${name}.json`);
      const pass = async (ms: number) => {
        clock.now = new Date(clock.now.getTime() + ms);
        await publish();
        return Promise.all([...metadata, targetPath("a.bin", "old")].map(has));
      };
      expect(await pass(6 * day)).toEqual([true, true, true, true]);
      expect(await pass(2 * day)).toEqual([true, false, true, false]);
      expect(domain.removed).toEqual(["a.bin 1 old"]);
      expect(await has(targetPath("a.bin", "new"))).toBe(true);
    });

    it("serves the newest of equal contents, which stays longest", async () => {
      const domain = await openPublished();
      for (let i = 0; i < 2; i++) {
        await domain.upload("a.bin", "same");
        await domain.publish();
      }
      const read: string[] = [];
      domain.deps.contents.read = async function* (contentId) {
        read.push(contentId);
        yield Buffer.from("same");
      };
      const file = present(await findFile(domain.deps, repository, targetPath("a.bin", "same")));
      await Array.fromAsync(file.read({ from: 0, to: file.length }));
      expect(read).toEqual(["a.bin 2 same"]);
    });

    it("has as many targets as clients read; more are refused", async () => {
      const domain = await openPublished();
      const { tuf, store } = domain.deps;
      const add = (from: number, to: number) =>
        store.write(async (transaction) => {
          const found = await tuf.findRepository(repository, transaction);
          const toRow = (i: number) => ({
            position: i + 1,
            ...tuf.targets.toTaggedRow({
              ...{ repository, owner: found.owner, contentId: String(i), version: "", deviceTypes: [] },
              // 255 characters, so that fewer targets suffice.
              path: `${"x".repeat(200)}/${String(i).padStart(54, "0")}`,
              ...{ length: 1, sha256: new Uint8Array(32), sha512: new Uint8Array(64) },
              ...{ addedSequence: found.sequence + 1, removedSequence: undefined, uploadedAt: new Date() },
            }),
          });
          for (let i = from; i < to; i += 50) {
            const rows = Array.from({ length: 50 }, (_, j) => toRow(i + j));
            await anyTable(transaction.db).insertInto("tuf_targets").values(rows).execute();
          }
          await tuf.change(transaction, found, { sequence: found.sequence + 1 });
        });
      await add(0, 10_000);
      await domain.publish();
      await add(10_000, 10_050);
      expect(await outcomeOf(domain.publish())).toBe("ROLE_TOO_LARGE");
      expect(await domain.has("metadata/3.targets.json")).toBe(false);
    });
  });
});
