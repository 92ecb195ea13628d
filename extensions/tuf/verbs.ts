/** `qsp tuf`: repositories and their targets. */
import { type Repository, RepositoryService } from "#gen/tuf/repository_service_pb.ts";
import { unaryVerb } from "../../src/cli/call-verbs.ts";
import { theAnswer } from "../../src/cli/connection/api-client.ts";
import { exitCodes } from "../../src/cli/exit-codes.ts";
import { counted, facts, table, time } from "../../src/cli/output/output.ts";
import { readWithProgress } from "../../src/cli/output/progress.ts";
import { declareVerb, type Verb } from "../../src/cli/verb.ts";

const { method } = RepositoryService;

/** Bytes of a message of an upload. */
const messageBytes = 1024 * 1024;

export const repositoryVerbs: readonly Verb[] = [
  declareVerb({
    line: "tuf add REPOSITORY PATH FILE",
    operandFiles: { FILE: "reads" },
    options: {
      version: { value: "TEXT", meaning: "Version of the content, such as 1.2" },
      "device-type": {
        value: "TYPE",
        meaning: "Device type that the content is for; repeatable",
        isMany: true,
      },
    },
    meaning:
      "Uploads a file of any size, - for standard input, as a draft of a target. The next qsp tuf publish publishes it,\n" +
      "and replaces the target that has its path.",
    example: "qsp tuf add firmware sensor/app.bin app.bin --version 1.2",
    async run({ operands: [repository = "", path = "", file = ""], options, output, server }) {
      const facts = {
        repository,
        path,
        version: options.text("version") ?? "",
        deviceTypes: [...options.all("device-type")],
      };
      const answers = server.stream(method.uploadTarget, toParts(facts, readWithProgress(file)));
      const answer = await theAnswer(answers);
      const { path: added = "", length = 0 } = answer.target ?? {};
      const { output: desc } = method.uploadTarget;
      output.answer(desc, answer, () => `${added}: ${counted(length, "byte")}, not published yet`);
      return exitCodes.done;
    },
  }),
  unaryVerb(method.removeTarget, {
    line: "tuf remove REPOSITORY PATH",
    meaning: "Removes a target: a draft at once, a published target with the next qsp tuf publish.",
    example: "qsp tuf remove firmware sensor/app.bin",
    ask: ({ operands: [repository = "", path = ""] }) => ({ repository, path }),
    say: (_answer, { operands: [, path] }) => `${path}: removed, or its removal is due with the next publish`,
  }),
  unaryVerb(method.setDelegation, {
    line: "tuf delegate REPOSITORY TYPE",
    options: { key: { value: "KEY", meaning: "Server-held ML-DSA key; default: creates an ML-DSA-65 key" } },
    meaning:
      "Gives the targets TYPE/… to a role with its own key, or replaces the key of the role. Takes effect with the next\n" +
      "qsp tuf publish.",
    example: "qsp tuf delegate firmware sensor",
    ask: ({ operands: [repository = "", role = ""], options }) => ({
      repository,
      role,
      key: options.text("key") ?? "",
    }),
    say: ({ role }) => ({ role: role?.role, key: role?.keyId }),
  }),
  unaryVerb(method.publish, {
    line: "tuf publish REPOSITORY",
    meaning:
      "Publishes all drafts, removals and delegations at once, and renews the metadata of all roles but root.",
    example: "qsp tuf publish firmware",
    ask: ({ operands: [repository = ""] }) => ({ repository }),
    say: ({ repository, added, removed }) =>
      `${counted(added, "target")} added or replaced, ${removed} removed\n\n${describeRepository(repository)}`,
  }),
  unaryVerb(method.getRepository, {
    line: "tuf status REPOSITORY",
    meaning: "Shows a repository: the version, expiry and key of each role, and what waits to be published.",
    example: "qsp tuf status firmware",
    ask: ({ operands: [repository = ""] }) => ({ repository }),
    say: ({ repository }) => describeRepository(repository),
  }),
];

/** Splits an upload into messages; the first has the facts. */
async function* toParts<Facts extends object>(facts: Facts, chunks: AsyncIterable<Uint8Array>) {
  yield { ...facts };
  for await (const chunk of chunks)
    for (let at = 0; at < chunk.length; at += messageBytes)
      yield { content: { data: Uint8Array.from(chunk.subarray(at, at + messageBytes)) } };
}

/** Formats a repository as text: facts, then a table of roles. */
export function describeRepository(repository: Repository | undefined): string {
  if (repository === undefined) throw new Error("the answer has no repository");
  const { walletId, targetCount, changeCount, rootProposalIds, roles } = repository;
  const about = facts({
    repository: repository.repository,
    wallet: walletId,
    targets: String(targetCount),
    "to publish": String(changeCount),
    "root proposals": rootProposalIds.join(" "),
  });
  const rows = roles.map(
    ({ role, version, expiresAt, keyId, keyState, threshold, tufKeyIds, hasChanged }) => [
      role,
      version === 0 ? "" : String(version),
      time(expiresAt) ?? "",
      keyId === "" ? `${threshold} of ${tufKeyIds.length || "the wallet's"} signers` : keyId,
      keyState,
      hasChanged ? "with the next publish" : "",
    ],
  );
  return `${about}\n\n${table(["ROLE", "VERSION", "EXPIRES", "KEY", "STATE", "CHANGES"], rows)}`;
}
