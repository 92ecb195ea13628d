import { describe, expect, it } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { listAccepted } from "../../src/calls/accepted-values.ts";

const { createGrant, getAuditLog, listKeys } = KmsService.method;

describe("listAccepted", () => {
  it("lists the texts that a field accepts", () => {
    expect(listAccepted(getAuditLog.input.field.outcome)).toEqual(["OK", "REFUSED"]);
  });

  it("lists the texts that the elements of a list accept", () => {
    expect(listAccepted(createGrant.input.field.operations)).toContain("GET_KEY");
  });

  it("lists none for a field that accepts any text", () => {
    expect(listAccepted(listKeys.input.field.name)).toEqual([]);
  });
});
