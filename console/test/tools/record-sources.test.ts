import type { DescField, DescMethod } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { services } from "../../../src/client/services.ts";
import { findRecord, sources } from "../../page/record-sources.ts";

const nameFields = (fields: readonly DescField[] = []): string[] => fields.map(({ jsonName }) => jsonName);
const methods: readonly DescMethod[] = Object.values(services).flatMap(({ methods }) => methods);

describe("the calls that create records", () => {
  for (const [name, source] of Object.entries(sources))
    it(`are calls of the server, and so are the fields that name the records: ${name}`, () => {
      const method = methods.find((method) => `${method.parent.typeName}/${method.name}` === name);
      const { inField, id, name: names = [], state, requestName } = source;
      const outer = method?.output.fields ?? [];
      const inner = outer.find(({ jsonName }) => jsonName === inField)?.message?.fields;
      expect(nameFields(inField === undefined ? outer : inner)).toEqual(
        expect.arrayContaining([...id, ...names, ...(state === undefined ? [] : [state])]),
      );
      const requestNames = requestName === undefined ? [] : [requestName];
      expect(nameFields(method?.input.fields)).toEqual(expect.arrayContaining(requestNames));
    });
});

describe("a record in an answer", () => {
  const read = (answer: object) => () => ({ request: { deviceName: "Pump" }, answer: { ...answer } });

  it("has its ID, its state, and the name of the request", () => {
    const answer = { deviceId: "device-1", registrationStatus: "REGISTERED", privateKey: "c2VjcmV0" };
    expect(findRecord("iot.IotService/RegisterDevice", read(answer))).toEqual({
      ...{ kind: "device", isNew: true, id: "device-1", name: "Pump", state: "REGISTERED" },
    });
  });

  it("has the first name that is set", () => {
    const find = (result: object) => findRecord("kms.KmsService/CreateKey", read({ result }))?.name;
    expect(find({ keyId: "key-1", alias: "old", name: "new" })).toBe("new");
    expect(find({ keyId: "key-1", alias: "old", name: "" })).toBe("old");
  });

  it("is not found in other calls, nor in an answer without an ID", () => {
    for (const call of ["kms.KmsService/Sign", "toString", "__proto__"])
      expect(findRecord(call, read({ keyId: "key-1" }))).toBeUndefined();
    for (const result of [undefined, null, "text", [], { keyId: 5 }])
      expect(findRecord("kms.KmsService/CreateKey", read({ result }))).toBeUndefined();
  });
});
