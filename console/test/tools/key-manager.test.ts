import { readFileSync } from "node:fs";
import { join } from "node:path";
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
import { listActions } from "../../page/tools/key-manager/actions.ts";
import { createNewGrant, describeScope, loadGrants } from "../../page/tools/key-manager/grants.ts";
import * as keys from "../../page/tools/key-manager/keys.ts";
import { createFakeCaller } from "../steps/fake-caller.ts";

const proto = readFileSync(join(import.meta.dirname, "../../../proto/kms/kms_service.proto"), "utf8");

function makeKey(fields: MessageInitShape<typeof KeyRecordSchema> = {}): KeyRecord {
  return create(KeyRecordSchema, { keyId: "key-1", status: "ACTIVE", usage: "SIGN", ...fields });
}

/** The values that a request field accepts. */
function readValues(request: string, field: string): string[] {
  const message = proto.slice(proto.indexOf(`message ${request} {`));
  const list = message.slice(message.indexOf(` ${field} = `));
  return list
    .slice(list.indexOf("in: ["), list.indexOf("]\n"))
    .match(/(?<=")[^"]+/g)
    ?.filter((value) => /^\w/.test(value)) as string[];
}

describe("the filter values", () => {
  for (const [field, values] of [
    ["status", keys.statuses],
    ["algorithm", keys.algorithms],
    ["usage", keys.usages],
  ] as const)
    it(`match ListKeys: ${field}`, () => {
      expect(values).toEqual(readValues("ListKeysRequest", field));
    });
});

describe("loadKeys", () => {
  const asked: ListKeysRequest[] = [];
  const all = Array.from({ length: 2500 }, (_none, at) => makeKey({ keyId: `key-${at}` }));
  const caller = createFakeCaller(({ service }) =>
    service(KmsService, {
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
    }),
  );
  const filters = { status: "ACTIVE", algorithm: "", usage: "SIGN", label: "team=payments" };

  it("requests one page with the filters", async () => {
    const list = await keys.loadKeys(caller, filters, 50);
    expect(list).toMatchObject({ nextPageToken: "50", totalSize: 2500 });
    expect(asked.at(-1)).toMatchObject({ ...filters, pageSize: 50, pageToken: "" });
  });

  it("continues a list", async () => {
    const known = await keys.loadKeys(caller, filters, 50);
    const list = await keys.loadKeys(caller, filters, 100, known);
    expect(list.keys.map(({ keyId }) => keyId)).toEqual(all.slice(0, 100).map(({ keyId }) => keyId));
  });

  it("requests several pages for more keys than fit on a page", async () => {
    expect((await keys.loadKeys(caller, filters, 2100)).keys).toHaveLength(2100);
  });

  it("stops at the end of the list", async () => {
    const list = await keys.loadKeys(caller, filters, 9999);
    expect([list.keys.length, list.nextPageToken]).toEqual([2500, ""]);
  });
});

describe("searchKeys", () => {
  const release = makeKey({ keyId: "key-1", name: "team/release", labels: { stage: "live" } });
  const invoices = makeKey({ keyId: "key-2", alias: "Invoices" });
  for (const [text, found] of [
    ["", [release, invoices]],
    ["RELEASE", [release]],
    ["invoices", [invoices]],
    ["key-2", [invoices]],
    ["stage=live team", [release]],
    ["live invoices", []],
  ] as const)
    it(`finds ${found.length} of 2 keys for “${text}”`, () => {
      expect(keys.searchKeys([release, invoices], text)).toEqual(found);
    });
});

describe("loadDetails", () => {
  const named = makeKey({ keyId: "key-2", name: "release", version: 2 });
  const getKey = (versions: readonly KeyRecord[]) =>
    createFakeCaller(({ service }) =>
      service(KmsService, {
        getKey: ({ keyId }) => (keyId === "name/release" ? { versions: [...versions] } : { result: named }),
      }),
    );

  it("lists the name's versions", async () => {
    const versions = [makeKey({ name: "release", version: 1 }), named];
    const details = await keys.loadDetails(getKey(versions), "key-2");
    expect([details.versions.length, details.handle]).toEqual([2, "name/release"]);
  });

  it("lists no versions of another user's name", async () => {
    const details = await keys.loadDetails(getKey([makeKey({ keyId: "key-9" })]), "key-2");
    expect([details.versions, details.handle]).toEqual([[], "key-2"]);
  });

  it("fails if the server fails", async () => {
    const caller = createFakeCaller(({ service }) =>
      service(KmsService, {
        getKey() {
          throw new ConnectError("damaged", Code.DataLoss);
        },
      }),
    );
    await expect(keys.loadDetails(caller, "key-2")).rejects.toThrow("damaged");
  });
});

describe("createNewKey", () => {
  async function createWith(fields: Partial<keys.NewKey>): Promise<CreateKeyRequest | undefined> {
    let asked: CreateKeyRequest | undefined;
    const caller = createFakeCaller(({ service }) =>
      service(KmsService, {
        createKey(request) {
          asked = request;
          return { result: makeKey() };
        },
      }),
    );
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
    expect(keys.formatLabels({ b: "2", a: "1" })).toEqual(["a=1", "b=2"]);
  });
});

describe("describeAlias", () => {
  const keyId = "key-1f2e3d4c-0000-4000-8000-0123456789ab";
  for (const [alias, shown] of [
    ["invoices", "invoices"],
    [keyId, ""],
    [`${keyId}-rotated-rotated`, ""],
  ] as const)
    it(`shows “${shown}” for ${alias}`, () => {
      expect(keys.describeAlias(alias)).toBe(shown);
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
      "A new version signs from now on; this one only verifies.",
      "A new key with a new ID signs from now on; this one only verifies.",
      "A new version encapsulates from now on; this one only decapsulates.",
    ]);
  });

  it("states that a replaced key cannot sign again", () => {
    const fields = { status: "DISABLED", replacedBy: "key-2" };
    expect(effectOf("Enable", fields)).toBe("The key only verifies, because a newer key has replaced it.");
  });

  it("destroys after 30 days, or immediately", async () => {
    const asked: DestroyKeyRequest[] = [];
    const caller = createFakeCaller(({ service }) =>
      service(KmsService, {
        destroyKey(request) {
          asked.push(request);
          return { newStatus: "DESTROYED" };
        },
      }),
    );
    for (const action of listActions(makeKey({ status: "ROTATED" }))) await action.run(caller);
    expect(asked.map(({ afterSeconds }) => afterSeconds)).toEqual([2_592_000, 0]);
  });
});

describe("grants", () => {
  it("allow the usage's operations", () => {
    expect(keys.findKind("SIGN").operations).toEqual(["SIGN", "VERIFY", "GET_KEY"]);
    expect(keys.findKind("KEM").operations).toEqual(["ENCAPSULATE", "DECAPSULATE", "GET_KEY"]);
    expect(keys.findKind("ENCRYPT").operations).toEqual(["ENCRYPT", "DECRYPT", "GET_KEY"]);
  });

  it("are loaded to the last page", async () => {
    const caller = createFakeCaller(({ service }) =>
      service(KmsService, {
        listGrants: ({ pageToken }) => ({
          grants: [{ grantId: `grant-${pageToken}` }],
          nextPageToken: pageToken === "" ? "2" : "",
        }),
      }),
    );
    const grants = await loadGrants(caller, "name/release");
    expect(grants.map(({ grantId }) => grantId)).toEqual(["grant-", "grant-2"]);
  });

  for (const [end, seconds] of [
    ["2099-01-02T03:04", BigInt(Date.UTC(2099, 0, 2, 3, 4) / 1000)],
    ["", undefined],
  ] as const)
    it(`end at “${end}”, in UTC`, async () => {
      let asked: CreateGrantRequest | undefined;
      const caller = createFakeCaller(({ service }) =>
        service(KmsService, {
          createGrant(request) {
            asked = request;
            return {};
          },
        }),
      );
      await createNewGrant(caller, { handle: "name/a", grantee: "bob", operations: ["SIGN"], end });
      expect(asked).toMatchObject({ keyId: "name/a", grantee: "bob", operations: ["SIGN"] });
      expect(asked?.expiresAt?.seconds).toBe(seconds);
    });

  for (const [keyId, scope] of [
    ["", "all versions"],
    ["key-2", "version 2"],
    ["key-9", "this key"],
  ] as const)
    it(`for “${keyId}” are for ${scope}`, () => {
      const grant = create(GrantSchema, { keyId });
      expect(describeScope(grant, [{ keyId: "key-2", version: 2 }])).toBe(scope);
    });
});
