/** Reasons specific to TUF repositories. */
import { Code } from "@connectrpc/connect";
import type { NamedReason } from "../../src/errors/reason.ts";

export const reasons = {
  repositoryNotFound: { name: "REPOSITORY_NOT_FOUND", code: Code.NotFound },
  walletUnsuitable: { name: "WALLET_UNSUITABLE", code: Code.FailedPrecondition },
  rootTooLarge: { name: "ROOT_TOO_LARGE", code: Code.FailedPrecondition },
  rootMissing: { name: "ROOT_MISSING", code: Code.FailedPrecondition },
  rootOutdated: { name: "ROOT_OUTDATED", code: Code.FailedPrecondition },
  proposalNotExecuted: { name: "PROPOSAL_NOT_EXECUTED", code: Code.FailedPrecondition },
  delegationNotFound: { name: "DELEGATION_NOT_FOUND", code: Code.NotFound },
  roleTooLarge: { name: "ROLE_TOO_LARGE", code: Code.FailedPrecondition },
  targetNotFound: { name: "TARGET_NOT_FOUND", code: Code.NotFound },
  targetTooLarge: { name: "TARGET_TOO_LARGE", code: Code.ResourceExhausted, httpStatus: 413 },
  fileNotFound: { name: "FILE_NOT_FOUND", code: Code.NotFound },
} as const satisfies Record<string, NamedReason>;

/** All of them. README.md lists each one's cause and remedy. */
export const declaredReasons: readonly NamedReason[] = Object.values(reasons);
