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

describe("the algorithms of a new key", () => {
  it("are all those that the server can create, each under at least one usage", () => {
    const chosen = new Set(keys.usages.flatMap((usage) => keys.findKind(usage).algorithms));
    expect([...chosen].sort()).toEqual(
      listAccepted(KmsService.method.createKey.input.field.algorithm).toSorted(),
    );
  });
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
  it("requests one page", async () => {
    const list = await keys.loadKeys(caller, 50);
    expect(list).toMatchObject({ nextPageToken: "50", totalSize: 2500 });
    expect(asked.at(-1)).toMatchObject({ pageSize: 50, pageToken: "" });
  });

  it("continues a list", async () => {
    const known = await keys.loadKeys(caller, 50);
    const list = await keys.loadKeys(caller, 100, known);
    expect(list.items.map(({ keyId }) => keyId)).toEqual(all.slice(0, 100).map(({ keyId }) => keyId));
  });

  it("requests several pages for more keys than fit on a page", async () => {
    expect((await keys.loadKeys(caller, 2100)).items).toHaveLength(2100);
  });

  it("stops at the end of the list", async () => {
    const list = await keys.loadKeys(caller, 9999);
    expect([list.items.length, list.nextPageToken]).toEqual([2500, ""]);
  });
});

describe("groupKeys", () => {
  const makeVersion = (version: number, isPrimary = false, keyId = `key-${version}`) =>
    makeKey({ keyId, name: "release", version, isPrimary });
  const group = (...list: readonly KeyRecord[]) =>
    keys.groupKeys(list).map(({ key, versions }) => [key.keyId, versions.length]);

  it("puts all versions of a name into the row of the primary one", () => {
    const rows = group(makeVersion(1), makeKey({ keyId: "key-9" }), makeVersion(3), makeVersion(2, true));
    expect(rows).toEqual([
      ["key-2", 3],
      ["key-9", 1],
    ]);
  });

  it("shows the newest version if the primary one is not in the list", () => {
    expect(group(makeVersion(1), makeVersion(2))).toEqual([["key-2", 2]]);
  });

  it("keeps the keys of two users with equal names apart", () => {
    const [ada, bob] = [makeVersion(1, true, "key-ada"), makeVersion(2, true, "key-bob")];
    expect(group(ada, { ...bob, owner: "bob" })).toEqual([
      ["key-ada", 1],
      ["key-bob", 1],
    ]);
  });

  for (const [count, text] of [
    [1, "version 1, primary"],
    [2, "version 1, primary, and 1 other version"],
    [3, "version 1, primary, and 2 other versions"],
  ] as const)
    it(`describes ${count} versions`, () => {
      const key = makeVersion(1, true);
      expect(keys.describeRow({ key, versions: Array(count).fill(key) })).toBe(text);
    });
});

describe("searchKeys", () => {
  const release = makeKey({
    keyId: "key-1",
    name: "team/release",
    algorithm: "ML-DSA-65",
    labels: { stage: "live" },
  });
  const invoices = makeKey({ keyId: "key-2", alias: "Invoices", status: "DISABLED" });
  for (const [text, found] of [
    ["", [release, invoices]],
    ["RELEASE", [release]],
    ["invoices", [invoices]],
    ["key-2", [invoices]],
    ["stage=live team", [release]],
    ["ml-dsa-65 active", [release]],
    ["disabled", [invoices]],
    ["live invoices", []],
  ] as const)
    it(`finds ${found.length} of 2 keys for “${text}”`, () => {
      expect(keys.searchKeys([release, invoices], text)).toEqual(found);
    });
});

describe("loadDetails", () => {
  const named = makeKey({ keyId: "key-2", name: "release", version: 2 });
  const getKey = (versions: readonly KeyRecord[]) =>
    serve(KmsService, {
      getKey: ({ keyId }) => (keyId === "name/release" ? { versions: [...versions] } : { result: named }),
    });

  it("lists the name's versions", async () => {
    const versions = [makeKey({ name: "release", version: 1 }), named];
    const details = await keys.loadDetails(getKey(versions), "key-2");
    expect([details.versions.length, details.handle]).toEqual([2, "name/release"]);
  });

  it("lists the versions of another user's name by their full handle", async () => {
    const caller = serve(KmsService, {
      getKey: ({ keyId }) => ({
        ...(keyId === "user/bob/name/release"
          ? { versions: [named] }
          : { result: { ...named, owner: "bob" } }),
      }),
    });
    expect(await keys.loadDetails(caller, "key-2")).toMatchObject({
      ...{ versions: [{ keyId: "key-2" }], handle: "user/bob/name/release" },
    });
  });

  it.each([
    ["fails if the versions cannot be loaded", Code.Unavailable, undefined],
    ["shows a key alone whose owner was removed", Code.NotFound, "key-2"],
  ])("%s", async (_what, code, handle) => {
    const caller = serve(KmsService, {
      getKey({ keyId }) {
        if (keyId === "key-2") return { result: named };
        throw new ConnectError("no versions", code);
      },
    });
    const loaded = keys.loadDetails(caller, "key-2");
    if (handle === undefined) await expect(loaded).rejects.toThrow("no versions");
    else expect(await loaded).toMatchObject({ handle, versions: [] });
  });

  it("fails if the server fails", async () => {
    const caller = serve(KmsService, {
      getKey() {
        throw new ConnectError("damaged", Code.DataLoss);
      },
    });
    await expect(keys.loadDetails(caller, "key-2")).rejects.toThrow("damaged");
  });
});

describe("createNewKey", () => {
  async function createWith(fields: Partial<keys.NewKey>): Promise<CreateKeyRequest | undefined> {
    let asked: CreateKeyRequest | undefined;
    const caller = serve(KmsService, {
      createKey(request) {
        asked = request;
        return { result: makeKey() };
      },
    });
    const blank = {
      name: "",
      alias: "",
      usage: "SIGN",
      algorithm: "ML-DSA-65",
      labels: "",
      rotationDays: "",
    };
    await keys.createNewKey(caller, { ...blank, ...fields });
    return asked;
  }

  it("sends name, labels and the period in seconds", async () => {
    const request = await createWith({ name: "release", labels: "team=a, stage=b", rotationDays: "90" });
    expect(request).toMatchObject({
      name: "release",
      labels: { team: "a", stage: "b" },
      rotationPeriodSeconds: 7_776_000,
    });
  });

  it("sends no period if the field is empty", async () => {
    expect((await createWith({}))?.rotationPeriodSeconds).toBeUndefined();
  });
});

describe("labels", () => {
  for (const [text, labels] of [
    ["", {}],
    [" team = payments , ,stage=", { team: "payments", stage: "" }],
    ["note=a=b", { note: "a=b" }],
    ["alone", { alone: "" }],
  ] as const)
    it(`are parsed from “${text}”`, () => {
      expect(keys.parseLabels(text)).toEqual(labels);
    });

  it("are shown in order", () => {
    expect(keys.formatLabels({ b: "2", a: "1" })).toBe("a=1, b=2");
  });
});

describe("describeAlias", () => {
  const keyId = "key-1f2e3d4c-0000-4000-8000-0123456789ab";
  for (const [alias, shown] of [
    ["invoices", "invoices"],
    [keyId, ""],
    ["invoices-rotated", "invoices-rotated"],
  ] as const)
    it(`shows “${shown}” for ${alias}`, () => {
      expect(keys.describeAlias({ alias, keyId })).toBe(shown);
    });
});

describe("listActions", () => {
  const schedule = "Destroy after 30 days";
  const destroy = "Destroy now";
  for (const [status, labels] of Object.entries({
    ACTIVE: ["Rotate", "Disable", schedule, destroy],
    ROTATED: [schedule, destroy],
    DISABLED: ["Enable", schedule, destroy],
    DESTROY_SCHEDULED: ["Restore", destroy],
    DESTROYED: [],
  }))
    it(`offers for a key that is ${status}: ${labels.join(", ") || "nothing"}`, () => {
      expect(listActions(makeKey({ status })).map(({ label }) => label)).toEqual(labels);
    });

  it("offers nothing for a damaged key", () => {
    expect(listActions(makeKey({ damaged: true }))).toEqual([]);
  });

  it("asks for confirmation only before an immediate destruction", () => {
    const asking = listActions(makeKey()).filter(({ question }) => question !== undefined);
    expect(asking.map(({ label }) => label)).toEqual([destroy]);
  });

  const effectOf = (label: string, fields: MessageInitShape<typeof KeyRecordSchema>) =>
    listActions(makeKey(fields)).find((action) => action.label === label)?.effect;

  it("describes a rotation's effect for each kind of key", () => {
    expect([
      effectOf("Rotate", { name: "release" }),
      effectOf("Rotate", {}),
      effectOf("Rotate", { name: "transport", usage: "KEM" }),
    ]).toEqual([
      "A new version signs from now on; this one only verifies. Programs that use name/release need no change.",
      "A new key with a new ID signs from now on; this one only verifies.",
      "A new version encapsulates from now on; this one only decapsulates. Programs that use name/transport need no change.",
    ]);
  });

  it("states that a replaced key cannot sign again", () => {
    const fields = { status: "DISABLED", replacedBy: "key-2" };
    expect(effectOf("Enable", fields)).toBe("The key only verifies, because a newer key has replaced it.");
  });

  for (const [usage, loss] of [
    ["SIGN", undefined],
    ["KEM", "can no longer be recovered"],
    ["ENCRYPT", "All data that is encrypted with it is lost"],
  ] as const)
    it(`warns before each destruction of a key with usage ${usage} ${loss ? "of the loss" : "of nothing"}`, () => {
      const warnings = listActions(makeKey({ usage })).map(({ warning }) => warning);
      const warned = loss === undefined ? undefined : expect.stringContaining(loss);
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
  for (const [usage, status, operations] of [
    ["SIGN", "ACTIVE", ["SIGN", "VERIFY", "GET_KEY"]],
    ["SIGN", "ROTATED", ["VERIFY", "GET_KEY"]],
    ["KEM", "ACTIVE", ["ENCAPSULATE", "DECAPSULATE", "GET_KEY"]],
    ["ENCRYPT", "ROTATED", ["DECRYPT", "GET_KEY"]],
  ] as const)
    it(`for ${usage} and ${status} can allow ${operations.join(", ")}`, () => {
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

  for (const [end, seconds] of [
    ["2099-01-02T03:04", BigInt(Date.UTC(2099, 0, 2, 3, 4) / 1000)],
    ["", undefined],
  ] as const)
    it(`end at “${end}”, in UTC`, async () => {
      let asked: CreateGrantRequest | undefined;
      const caller = serve(KmsService, {
        createGrant(request) {
          asked = request;
          return {};
        },
      });
      await createNewGrant(caller, { handle: "name/a", grantee: "bob", operations: ["SIGN"], end });
      expect(asked).toMatchObject({ keyId: "name/a", grantee: "bob", operations: ["SIGN"] });
      expect(asked?.expiresAt?.seconds).toBe(seconds);
    });

  it("are not created with an end that is no time", async () => {
    const grant = { handle: "key-1", grantee: "bob", operations: ["SIGN"], end: "12026-01-01T00:00" };
    const caller = serve(KmsService, { createGrant: () => ({}) });
    await expect(createNewGrant(caller, grant)).rejects.toMatchObject({ reason: "TIME_INVALID" });
  });

  for (const [keyId, scope] of [
    ["", "all versions"],
    ["key-2", "version 2"],
    ["key-9", "this key"],
  ] as const)
    it(`for “${keyId}” are for ${scope}`, () => {
      const grant = create(GrantSchema, { keyId, operations: ["SIGN", "VERIFY"] });
      const said = describeGrant(grant, [{ keyId: "key-2", version: 2 }]);
      expect(said).toBe(`may SIGN, VERIFY with ${scope}`);
    });

  it("that are damaged allow nothing", () => {
    expect(describeGrant(create(GrantSchema, { damaged: true }), [])).toContain("may do nothing");
  });
});
