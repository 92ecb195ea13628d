import { expect, it } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { listAccepted } from "../../src/calls/accepted-values.ts";

const { createGrant, getAuditLog, listKeys } = KmsService.method;

it("listAccepted lists the texts that a field or an element accepts, and none if it accepts any", () => {
  expect(listAccepted(getAuditLog.input.field.outcome)).toEqual(["OK", "REFUSED"]);
  expect(listAccepted(createGrant.input.field.operations)).toContain("GET_KEY");
  expect(listAccepted(listKeys.input.field.name)).toEqual([]);
});
