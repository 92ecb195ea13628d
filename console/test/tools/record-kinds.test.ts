import type { DescField, DescMethod } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { services } from "../../../src/client/services.ts";
import { findRecord, kinds } from "../../page/record-kinds.ts";

const nameFields = (fields: readonly DescField[] = []): string[] => fields.map(({ jsonName }) => jsonName);
const methods: readonly DescMethod[] = Object.values(services).flatMap(({ methods }) => methods);

describe("the calls that create, report and list records", () => {
  for (const { service, id, states = [], creates, reports, list } of kinds)
    for (const [call, inField] of Object.entries({
      ...creates,
      ...reports,
      ...(list && { [list.call]: "*" }),
    }))
      it(`exist on the server, as do the fields that name the records: ${service}/${call}`, () => {
        const method = methods.find(({ name, parent }) => parent.typeName === service && name === call);
        const outer = method?.output.fields ?? [];
        const inner = outer.find(({ jsonName, fieldKind }) =>
          inField === "*" ? fieldKind === "list" : jsonName === inField,
        );
        const fields = nameFields(inField === "" ? outer : inner?.message?.fields);
        expect(fields).toContain(id);
        // A call that reports a state must contain it; others may have none yet.
        const wanted = call in (reports ?? {}) ? states : [];
        expect(wanted.length === 0 || wanted.some((state) => fields.includes(state))).toBe(true);
      });
});

describe("a record in an answer", () => {
  const read = (answer: object) => () => ({ request: { deviceName: "Pump" }, answer: { ...answer } });

  it("has its ID, its state, and the name from the request", () => {
    const answer = { deviceId: "device-1", registrationStatus: "REGISTERED", privateKey: "c2VjcmV0" };
    expect(findRecord("iot.IotService/RegisterDevice", read(answer))).toEqual({
      ...{ kind: "device", isNew: true, id: "device-1", name: "Pump", state: "REGISTERED", createdAt: "" },
    });
  });

  it("has the first name that is set", () => {
    const find = (result: object) => findRecord("kms.KmsService/CreateKey", read({ result }))?.name;
    expect(find({ keyId: "key-1", alias: "old", name: "new" })).toBe("new");
    expect(find({ keyId: "key-1", alias: "old", name: "" })).toBe("old");
  });

  it("has the version of its name", () => {
    const result = { keyId: "key-1", name: "release", version: 2 };
    expect(findRecord("kms.KmsService/CreateKey", read({ result }))?.name).toBe("release, version 2");
  });

  it("is not found in other calls, nor in an answer without an ID", () => {
    for (const call of ["kms.KmsService/Sign", "toString", "__proto__"])
      expect(findRecord(call, read({ keyId: "key-1" }))).toBeUndefined();
    for (const result of [undefined, null, "text", [], { keyId: 5 }])
      expect(findRecord("kms.KmsService/CreateKey", read({ result }))).toBeUndefined();
  });
});
