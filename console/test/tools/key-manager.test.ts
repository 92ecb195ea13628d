import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { GrantSchema } from "#gen/kms/grant_pb.ts";
import { type KeyRecord, KeyRecordSchema } from "#gen/kms/key_pb.ts";
import {
  type CreateGrantRequest,
  type CreateKeyRequest,
  type DestroyKeyRequest,
  KmsService,
  type ListKeysRequest,
} from "#gen/kms/kms_service_pb.ts";
import { listAccepted } from "../../../src/calls/accepted-values.ts";
import { listActions } from "../../page/tools/key-manager/actions.ts";
import { createNewGrant, describeGrant, loadGrants } from "../../page/tools/key-manager/grants.ts";
import * as keys from "../../page/tools/key-manager/keys.ts";
import { serve } from "../steps/fake-caller.ts";

function makeKey(fields: MessageInitShape<typeof KeyRecordSchema> = {}): KeyRecord {
  return create(KeyRecordSchema, { keyId: "key-1", status: "ACTIVE", usage: "SIGN", ...fields });
}

it("the algorithms of a new key are all those that the server can create, each under at least one usage", () => {
  const chosen = new Set(keys.usages.flatMap((usage) => keys.findKind(usage).algorithms));
  const accepted = listAccepted(KmsService.method.createKey.input.field.algorithm).toSorted();
  expect([...chosen].sort()).toEqual(accepted);
});

describe("loadKeys", () => {
  const asked: ListKeysRequest[] = [];
  const all = Array.from({ length: 2500 }, (_none, at) => makeKey({ keyId: `key-${at}` }));
  const caller = serve(KmsService, {
    listKeys(request) {
      asked.push(request);
      const start = Number(request.pageToken);
      const end = start + request.pageSize;
      return {
        keys: all.slice(start, end),
        nextPageToken: end < all.length ? String(end) : "",
        totalSize: all.length,
      };
    },
  });
  it("requests one page, and continues it", async () => {
    const before = asked.length;
    const first = await keys.loadKeys(caller, 50);
    expect(first).toMatchObject({ nextPageToken: "50", totalSize: 2500 });
    expect(asked.slice(before)).toMatchObject([{ pageSize: 50, pageToken: "" }]);
    expect((await keys.loadKeys(caller, 100, first)).items).toEqual(all.slice(0, 100));
  });

  it("requests several pages for more keys than fit on a page, up to the end of the list", async () => {
    expect((await keys.loadKeys(caller, 2100)).items).toHaveLength(2100);
    const { items, nextPageToken } = await keys.loadKeys(caller, 9999);
    expect([items.length, nextPageToken]).toEqual([2500, ""]);
  });
});

describe("groupKeys", () => {
  const makeVersion = (version: number, isPrimary = false, keyId = `key-${version}`) =>
    makeKey({ keyId, name: "release", version, isPrimary });
  const group = (...list: readonly KeyRecord[]) =>
    keys.groupKeys(list).map(({ key, versions }) => [key.keyId, versions.length]);

  it("puts all versions of a name into the row of the primary one", () => {
    const rows = group(makeVersion(1), makeKey({ keyId: "key-9" }), makeVersion(3), makeVersion(2, true));
    expect(Object.fromEntries(rows)).toEqual({ "key-2": 3, "key-9": 1 });
  });

  it("shows the newest version if the primary one is not in the list", () => {
    expect(group(makeVersion(1), makeVersion(2))).toEqual([["key-2", 2]]);
  });

  it("keeps the keys of two users with equal names apart", () => {
    const [ada, bob] = [makeVersion(1, true, "key-ada"), makeVersion(2, true, "key-bob")];
    const rows = group(ada, { ...bob, owner: "bob" });
    expect(Object.fromEntries(rows)).toEqual({ "key-ada": 1, "key-bob": 1 });
  });

  it.each([
    [1, "version 1, primary"],
    [2, "version 1, primary, and 1 other version"],
    [3, "version 1, primary, and 2 other versions"],
  ])("describes %i versions as %s", (count, text) => {
    const key = makeVersion(1, true);
    expect(keys.describeRow({ key, versions: Array(count).fill(key) })).toBe(text);
  });
});

describe("searchKeys", () => {
  const labels = { stage: "live" };
  const release = makeKey({ keyId: "key-1", name: "team/release", algorithm: "ML-DSA-65", labels });
  const invoices = makeKey({ keyId: "key-2", alias: "Invoices", status: "DISABLED" });
  it.each([
    ["", [release, invoices]],
    ["RELEASE", [release]],
    ["invoices", [invoices]],
    ["key-2", [invoices]],
    ["stage=live team", [release]],
    ["ml-dsa-65 active", [release]],
    ["disabled", [invoices]],
    ["live invoices", []],
  ])("finds the keys of which every word is known: “%s”", (text, found) => {
    expect(keys.searchKeys([release, invoices], text)).toEqual(found);
  });
});

describe("loadDetails", () => {
  const named = makeKey({ keyId: "key-2", name: "release", version: 2 });
  const ofBob = { ...named, owner: "bob" };

  it.each([
    ["name/release", named],
    ["user/bob/name/release", ofBob],
  ])("lists the versions of %s", async (handle, result) => {
    const versions = [makeKey({ version: 1 }), result];
    const caller = serve(KmsService, {
      getKey: ({ keyId }) => (keyId === handle ? { versions } : { result }),
    });
    const details = await keys.loadDetails(caller, "key-2");
    expect([details.versions.length, details.handle]).toEqual([2, handle]);
  });

  const failing = (code: Code, known?: KeyRecord) =>
    serve(KmsService, {
      getKey({ keyId }) {
        if (keyId === known?.keyId) return { result: known };
        throw new ConnectError("not loaded", code);
      },
    });

  it("shows a key alone whose owner was removed", async () => {
    const loaded = await keys.loadDetails(failing(Code.NotFound, named), "key-2");
    expect(loaded).toMatchObject({ handle: "key-2", versions: [] });
  });

  it.each([
    ["the versions", failing(Code.Unavailable, named)],
    ["the key", failing(Code.DataLoss)],
  ])("fails if %s cannot be loaded", async (_what, caller) => {
    await expect(keys.loadDetails(caller, "key-2")).rejects.toThrow("not loaded");
  });
});

describe("createNewKey", () => {
  async function createWith(fields: Partial<keys.NewKey>): Promise<CreateKeyRequest | undefined> {
    const asked: CreateKeyRequest[] = [];
    const caller = serve(KmsService, {
      createKey(request) {
        asked.push(request);
        return { result: makeKey() };
      },
    });
    const given = {
      name: "",
      alias: "",
      usage: "SIGN",
      algorithm: "ML-DSA-65",
      labels: "",
      rotationDays: "",
    };
    await keys.createNewKey(caller, { ...given, ...fields });
    return asked[0];
  }

  it("sends name, labels and the period in seconds, and no period if the field is empty", async () => {
    const request = await createWith({ name: "release", labels: "team=a, stage=b", rotationDays: "90" });
    const labels = { team: "a", stage: "b" };
    expect(request).toMatchObject({ name: "release", labels, rotationPeriodSeconds: 7_776_000 });
    expect((await createWith({}))?.rotationPeriodSeconds).toBeUndefined();
  });
});

describe("labels", () => {
  it.each([
    ["", {}],
    [" team = payments , ,stage=", { team: "payments", stage: "" }],
    ["note=a=b", { note: "a=b" }],
    ["alone", { alone: "" }],
  ])("are parsed from “%s”", (text, labels) => {
    expect(keys.parseLabels(text)).toEqual(labels);
  });

  it("are shown in order", () => {
    expect(keys.formatLabels({ b: "2", a: "1" })).toBe("a=1, b=2");
  });
});

it("describeAlias hides an alias that is only the key's ID", () => {
  const keyId = "key-1f2e3d4c-0000-4000-8000-0123456789ab";
  const shown = ["invoices", keyId, "invoices-rotated"].map((alias) => keys.describeAlias({ alias, keyId }));
  expect(shown).toEqual(["invoices", "", "invoices-rotated"]);
});

describe("listActions", () => {
  const schedule = "Destroy after 30 days";
  const destroy = "Destroy now";
  it.each([
    [{ status: "ACTIVE" }, ["Rotate", "Disable", schedule, destroy]],
    [{ status: "ROTATED" }, [schedule, destroy]],
    [{ status: "DISABLED" }, ["Enable", schedule, destroy]],
    [{ status: "DESTROY_SCHEDULED" }, ["Restore", destroy]],
    [{ status: "DESTROYED" }, []],
    [{ damaged: true }, []],
  ])("offers for a key that is %o: %j", (fields, labels) => {
    expect(listActions(makeKey(fields)).map(({ label }) => label)).toEqual(labels);
  });

  it("asks for confirmation only before an immediate destruction", () => {
    const asking = listActions(makeKey()).filter(({ question }) => question !== undefined);
    expect(asking.map(({ label }) => label)).toEqual([destroy]);
  });

  const effectOf = (label: string, fields: MessageInitShape<typeof KeyRecordSchema>) =>
    listActions(makeKey(fields)).find((action) => action.label === label)?.effect;

  it.each([
    ["Rotate", { name: "release" }, /A new version signs from now on; this one only verifies.*name\/release/],
    ["Rotate", {}, /^A new key with a new ID signs from now on; this one only verifies\.$/],
    ["Rotate", { name: "transport", usage: "KEM" }, /encapsulates from now on; this one only decapsulates/],
    ["Enable", { status: "DISABLED", replacedBy: "key-2" }, /because a newer key has replaced it/],
  ])("describes the effect: %s %o", (label, fields, effect) => {
    expect(effectOf(label, fields)).toMatch(effect);
  });

  it.each([
    ["SIGN", undefined],
    ["KEM", "can no longer be recovered"],
    ["ENCRYPT", "All data that is encrypted with it is lost"],
  ])("warns before each destruction of a key with usage %s of the loss: %s", (usage, loss) => {
    const warnings = listActions(makeKey({ usage })).map(({ warning }) => warning);
    const warned = loss && expect.stringContaining(loss);
    expect(warnings).toEqual([undefined, undefined, warned, warned]);
  });

  it("states that the end of a primary version is the end of its name", () => {
    const end = expect.stringContaining("Calls with name/release fail from now on");
    const [, , later, now] = listActions(makeKey({ name: "release", isPrimary: true }));
    expect([later?.effect, now?.question]).toEqual([end, end]);
    expect(effectOf(schedule, { name: "release" })).not.toContain("name/release");
  });

  it("destroys after 30 days, or immediately", async () => {
    const asked: DestroyKeyRequest[] = [];
    const caller = serve(KmsService, {
      destroyKey(request) {
        asked.push(request);
        return { newStatus: "DESTROYED" };
      },
    });
    for (const action of listActions(makeKey({ status: "ROTATED" }))) await action.run(caller);
    expect(asked.map(({ afterSeconds }) => afterSeconds)).toEqual([2_592_000, 0]);
  });
});

describe("grants", () => {
  it.each([
    ["SIGN", "ACTIVE", ["SIGN", "VERIFY", "GET_KEY"]],
    ["SIGN", "ROTATED", ["VERIFY", "GET_KEY"]],
    ["KEM", "ACTIVE", ["ENCAPSULATE", "DECAPSULATE", "GET_KEY"]],
    ["ENCRYPT", "ROTATED", ["DECRYPT", "GET_KEY"]],
  ])("for %s and %s can allow %j", (usage, status, operations) => {
    expect(keys.listOperations({ usage, status })).toEqual(operations);
  });

  it("are loaded to the last page", async () => {
    const caller = serve(KmsService, {
      listGrants: ({ pageToken }) => ({
        grants: [{ grantId: `grant-${pageToken}` }],
        nextPageToken: pageToken === "" ? "2" : "",
      }),
    });
    const grants = await loadGrants(caller, "name/release");
    expect(grants.map(({ grantId }) => grantId)).toEqual(["grant-", "grant-2"]);
  });

  it.each([
    ["2099-01-02T03:04", BigInt(Date.UTC(2099, 0, 2, 3, 4) / 1000)],
    ["", undefined],
  ])("end at “%s”, in UTC", async (end, seconds) => {
    const asked: CreateGrantRequest[] = [];
    const caller = serve(KmsService, {
      createGrant(request) {
        asked.push(request);
        return {};
      },
    });
    const grant = { handle: "name/a", grantee: "bob", operations: ["SIGN"] };
    await createNewGrant(caller, { ...grant, end });
    expect(asked).toMatchObject([{ keyId: "name/a", grantee: "bob", operations: ["SIGN"] }]);
    expect(asked[0]?.expiresAt?.seconds).toBe(seconds);
    const wrong = createNewGrant(caller, { ...grant, end: "12026-01-01T00:00" });
    await expect(wrong).rejects.toMatchObject({ reason: "TIME_INVALID" });
  });

  it.each([
    [{ keyId: "" }, "may SIGN, VERIFY with all versions"],
    [{ keyId: "key-2" }, "may SIGN, VERIFY with version 2"],
    [{ keyId: "key-9" }, "may SIGN, VERIFY with this key"],
    [{ damaged: true }, "may do nothing"],
  ])("%o are described: %s", (fields, described) => {
    const grant = create(GrantSchema, { operations: ["SIGN", "VERIFY"], ...fields });
    expect(describeGrant(grant, [{ keyId: "key-2", version: 2 }])).toContain(described);
  });
});
