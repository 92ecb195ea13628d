/** `qsp kms grant`, `grants` and `revoke`: let other users use a key. */
import type { Grant } from "#gen/kms/grant_pb.ts";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { listAccepted } from "../../../calls/accepted-values.ts";
import { listVerb, unaryVerb } from "../../call-verbs.ts";
import { readTime } from "../../command-line/time-options.ts";
import { usageError } from "../../exit-codes.ts";
import { time } from "../../output/output.ts";
import type { Verb } from "../../verb.ts";

const { method } = KmsService;

const operations = listAccepted(method.createGrant.input.field.operations);

export const kmsGrantVerbs: readonly Verb[] = [
  unaryVerb(method.createGrant, {
    line: "kms grant KEY USER",
    options: {
      operations: {
        value: "LIST",
        meaning: `Operations that the user may call, separated by commas: ${operations.join(", ")}`,
        offers: operations,
      },
      expires: {
        value: "TIME",
        meaning:
          "Expiry of the grant: a duration such as 30d, or a time such as 2030-01-31T12:00:00Z; default: none",
      },
    },
    meaning: "Allows a user some operations on a key. name/NAME covers all versions, present and future.",
    example: 'qsp kms grant "$KEY" bob --operations SIGN,VERIFY --expires 30d',
    ask({ operands: [keyId = "", grantee = ""], options }) {
      const expiresAt = readTime(options, "expires", 1);
      const list = options.text("operations");
      if (list === undefined)
        throw usageError(
          `--operations is missing; use one or more of ${operations.join(", ")}, separated by commas`,
        );
      return {
        keyId,
        grantee,
        operations: list.split(",").map((operation) => operation.trim().toUpperCase()),
        ...(expiresAt && { expiresAt }),
      };
    },
    say: ({ grant }) => describe(grant),
  }),
  listVerb(method.listGrants, {
    line: "kms grants [KEY]",
    options: {
      received: { meaning: "Lists the grants that you received, instead of the grants on your keys" },
    },
    meaning: "Lists grants in creation order, without revoked and expired ones.",
    example: "qsp kms grants --received",
    ask: ({ operands: [keyId = ""], options }) => ({ keyId, received: options.flag("received") }),
    items: ({ grants }) => grants,
    none: "There are no grants.",
    columns: {
      GRANT: "grantId",
      KEY: (grant, { options }) => nameKey(grant, options.flag("received")),
      OWNER: "owner",
      USER: "grantee",
      EXPIRES: ({ expiresAt }) => time(expiresAt) || "never",
      OPERATIONS: "operations",
    },
  }),
  unaryVerb(method.revokeGrant, {
    line: "kms revoke GRANT",
    meaning: "Revokes a grant.",
    example: 'qsp kms revoke "$GRANT"',
    ask: ({ operands: [grantId = ""] }) => ({ grantId }),
    say: (_, { operands: [grantId] }) => `${grantId} is revoked.`,
  }),
];

/** Formats the key as calls accept it. Without a user, a name belongs to the caller. */
function nameKey({ keyId, name, owner }: Grant, isReceived = false): string {
  return keyId || (isReceived ? `user/${owner}/name/${name}` : `name/${name}`);
}

function describe(grant: Grant | undefined) {
  if (grant === undefined) return "";
  const { grantId, owner, grantee: user, operations, expiresAt } = grant;
  return {
    ...{ grant: grantId, key: nameKey(grant), owner, user, operations: operations.join(", ") },
    expires: time(expiresAt) || "never",
  };
}
