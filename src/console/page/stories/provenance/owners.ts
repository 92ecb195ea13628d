/** The chain of owners of a token: who signed, who owned it, and what was tried. */
import { areBothInvalid } from "../../checks.ts";
import { fromHex, shortHex } from "../../hex.ts";
import type { OwnerItem } from "../../parts/diagrams/owner-chain.tsx";
import { judge, refuse } from "../../parts/diagrams/sequence.ts";
import type { StepView, StepViewOf } from "../../parts/diagrams/step-view.ts";
import type { forgeToken, Minted, sellAgain, traceHistory, transferTwice } from "./steps.ts";

/** The steps that the chain shows. */
export interface OwnerSteps {
  readonly minting: StepView<Minted>;
  readonly transferring: StepViewOf<typeof transferTwice>;
  readonly reselling: StepViewOf<typeof sellAgain>;
  readonly tracing: StepViewOf<typeof traceHistory>;
  readonly forging: StepViewOf<typeof forgeToken>;
}

/** Draws the owners from the creator to the current one, and then what the forger tried. */
export function drawOwners({
  minting,
  transferring,
  reselling,
  tracing,
  forging,
}: OwnerSteps): readonly OwnerItem[] {
  const [creator = minting.value?.token.creatorAddress, second, third] = transferring.value?.owners ?? [];
  const forged = forging.value;
  return [
    {
      kind: "owner",
      name: "Creator",
      ...showAddress(creator),
      verdict: judge(minting.value?.isSigned, "signed the words, checked here", "the signature is not valid"),
    },
    { kind: "link", text: "first transfer", verdict: judgeLink(tracing.value, 0) },
    { kind: "owner", name: "Second owner", ...showAddress(second) },
    { kind: "link", text: "second transfer", verdict: judgeLink(tracing.value, 1) },
    { kind: "owner", name: "Third owner", ...showAddress(third) },
    {
      kind: "link",
      text: "the creator transfers it again",
      isAttack: true,
      verdict: refuse(reselling.value?.reason),
    },
    {
      kind: "owner",
      name: "Forger, with the same words",
      isAttacker: true,
      ...showAddress(forged?.forgerAddress),
      verdict: judge(
        forged && !areBothInvalid(forged.withCreatorKey),
        "the creator's signature",
        "not the creator's signature",
      ),
    },
  ];
}

type Traced = Awaited<ReturnType<typeof traceHistory>>;

/** A link holds if the token came from the owner before. */
function judgeLink(traced: Traced | undefined, at: number) {
  const before = traced?.history[at - 1]?.toAddress ?? traced?.history[0]?.fromAddress;
  const link = traced?.history[at];
  return judge(
    traced && link !== undefined && link.fromAddress === before && traced.isWhole,
    "follows the owner before",
    "does not follow the owner before",
  );
}

function showAddress(address: string | undefined) {
  if (address === undefined) return { detail: undefined, mark: undefined };
  return { detail: shortHex(address), mark: fromHex(address.slice("0x".length)) };
}
