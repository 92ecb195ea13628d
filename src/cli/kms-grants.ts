/** `qsp kms grant`, `grants` and `revoke`: let other users use a key. */
import type { Grant } from "#gen/kms/grant_pb.ts";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { exitCodes, usageError } from "./exit-codes.ts";
import { facts, time } from "./output.ts";
import { printList } from "./print-list.ts";
import { readTime } from "./time-options.ts";
import type { Verb } from "./verb.ts";

const { method } = KmsService;

const operations = ["SIGN", "VERIFY", "ENCAPSULATE", "DECAPSULATE", "GET_KEY"] as const;

export const kmsGrantVerbs: readonly Verb[] = [
  {
    name: "kms grant",
    operands: ["KEY", "USER"],
    options: {
      operations: {
        value: "LIST",
        meaning: `Operations of the user, separated by commas: ${operations.join(", ")}`,
        offers: operations,
      },
      expires: {
        value: "TIME",
        meaning:
          "End of the grant: a duration such as 30d, or a time such as 2030-01-31T12:00:00Z; default: none",
      },
    },
    meaning: "Allows a user some operations of a key. name/NAME grants all versions, present and future.",
    example: 'qsp kms grant "$KEY" bob --operations SIGN,VERIFY --expires 30d',
    async run({ operands: [keyId = "", grantee = ""], options, output, server }) {
      const expiresAt = readTime(options, "expires", 1);
      const list = options.text("operations");
      if (list === undefined)
        throw usageError(
          `--operations is missing; use one or more of ${operations.join(", ")}, separated by commas`,
        );
      const answer = await server.ask(method.createGrant, {
        keyId,
        grantee,
        operations: list.split(",").map((operation) => operation.trim().toUpperCase()),
        ...(expiresAt && { expiresAt }),
      });
      output.answer(method.createGrant.output, answer, () => describe(answer.grant));
      return exitCodes.done;
    },
  },
  {
    name: "kms grants",
    operands: ["[KEY]"],
    options: { received: { meaning: "Lists the grants that you received, instead of those of your keys" } },
    meaning: "Lists grants in the order of their creation, without revoked and expired ones.",
    example: "qsp kms grants --received",
    async run({ operands: [keyId = ""], options, output, server }) {
      const filter = { keyId, received: options.flag("received") };
      return printList(output, method.listGrants.output, {
        ask: (pageToken) => server.ask(method.listGrants, { ...filter, pageToken }),
        itemsOf: ({ grants }) => grants,
        none: "There are no grants.",
        headers: ["GRANT", "KEY", "OWNER", "USER", "EXPIRES", "OPERATIONS"],
        toCells: (grant) => [
          ...[grant.grantId, nameKey(grant, filter.received), grant.owner, grant.grantee],
          ...[time(grant.expiresAt) || "never", grant.operations.join(",")],
        ],
      });
    },
  },
  {
    name: "kms revoke",
    operands: ["GRANT"],
    options: {},
    meaning: "Ends a grant.",
    example: 'qsp kms revoke "$GRANT"',
    async run({ operands: [grantId = ""], output, server }) {
      const answer = await server.ask(method.revokeGrant, { grantId });
      output.answer(method.revokeGrant.output, answer, () => `${grantId} is revoked.`);
      return exitCodes.done;
    },
  },
];

/** The key as calls take it. Without a user, a name is that of the caller. */
function nameKey({ keyId, name, owner }: Grant, isReceived = false): string {
  return keyId || (isReceived ? `user/${owner}/name/${name}` : `name/${name}`);
}

function describe(grant: Grant | undefined): string {
  if (grant === undefined) return "";
  return facts({
    grant: grant.grantId,
    key: nameKey(grant),
    owner: grant.owner,
    user: grant.grantee,
    operations: grant.operations.join(", "),
    expires: time(grant.expiresAt) || "never",
  });
}
