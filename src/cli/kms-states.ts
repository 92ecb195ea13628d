/** `qsp kms rotate`, `disable`, `enable`, `destroy` and `restore`: change the state of a key. */
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { exitCodes, usageError } from "./exit-codes.ts";
import { describeKey } from "./kms-describe.ts";
import { time } from "./output.ts";
import { readSeconds } from "./time-options.ts";
import type { Verb, VerbInput } from "./verb.ts";

const { method } = KmsService;

export const kmsStateVerbs: readonly Verb[] = [
  {
    name: "kms rotate",
    operands: ["KEY"],
    options: {},
    meaning: "Replaces a key with a new one. The old key then only verifies and decapsulates.",
    example: 'qsp kms rotate "$KEY"',
    async run({ operands: [keyId = ""], output, server }) {
      const answer = await server.ask(method.rotateKey, { keyId });
      output.answer(method.rotateKey.output, answer, () => describeKey(answer.newKey));
      return exitCodes.done;
    },
  },
  {
    name: "kms disable",
    operands: ["KEY"],
    options: {},
    meaning: "Disables a key. It performs no operations until qsp kms enable.",
    example: 'qsp kms disable "$KEY"',
    async run({ operands: [keyId = ""], output, server }) {
      const answer = await server.ask(method.disableKey, { keyId });
      output.answer(method.disableKey.output, answer, () => describeKey(answer.result));
      return exitCodes.done;
    },
  },
  {
    name: "kms enable",
    operands: ["KEY"],
    options: {},
    meaning: "Enables a disabled key. A key that was rotated becomes ROTATED again.",
    example: 'qsp kms enable "$DISABLED_KEY"',
    async run({ operands: [keyId = ""], output, server }) {
      const answer = await server.ask(method.enableKey, { keyId });
      output.answer(method.enableKey.output, answer, () => describeKey(answer.result));
      return exitCodes.done;
    },
  },
  {
    name: "kms destroy",
    operands: ["KEY"],
    options: {
      after: {
        value: "DURATION",
        meaning: "Time to wait, such as 30d; at most 120d; qsp kms restore saves the key in the meantime",
      },
      yes: { meaning: "Required without --after: nothing restores the secret key" },
    },
    meaning: "Erases the secret key permanently: at once with --yes, or after a waiting period.",
    example: 'qsp kms destroy "$KEY" --after 30d',
    run: destroy,
  },
  {
    name: "kms restore",
    operands: ["KEY"],
    options: {},
    meaning:
      "Takes back a scheduled destruction. The key becomes DISABLED; qsp kms enable puts it back into use.",
    example: 'qsp kms restore "$SCHEDULED_KEY"',
    async run({ operands: [keyId = ""], output, server }) {
      const answer = await server.ask(method.restoreKey, { keyId });
      output.answer(method.restoreKey.output, answer, () => describeKey(answer.result));
      return exitCodes.done;
    },
  },
];

async function destroy({ operands: [keyId = ""], options, output, server }: VerbInput): Promise<number> {
  const afterSeconds = readSeconds(options, "after", { max: 120 }) ?? 0;
  if (afterSeconds === 0 && !options.flag("yes"))
    throw usageError(
      `--yes is missing: nothing restores the secret key of ${keyId}; --after 30d leaves time to restore it`,
    );
  const answer = await server.ask(method.destroyKey, { keyId, afterSeconds });
  output.answer(method.destroyKey.output, answer, () => {
    const until = answer.destroyAt === undefined ? "" : ` and will be destroyed at ${time(answer.destroyAt)}`;
    return `${answer.keyId} is ${answer.newStatus}${until}.`;
  });
  return exitCodes.done;
}
