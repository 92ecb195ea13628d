/** The sequence diagram of a tunnel: what you, an attacker and the gateway send, and what each of you finds. */

import type { Findings } from "../../../../client/tunnel-end.ts";
import {
  type Act,
  attack,
  drawAct,
  find,
  judge,
  type Party,
  refuse,
  send,
  type Verdict,
  withSize,
} from "../../parts/diagrams/sequence.ts";
import type { StepViewOf } from "../../parts/diagrams/step-view.ts";
import { isTrusted } from "./handshake.ts";
import type { catchIntermediary, swapKeys } from "./intermediary-steps.ts";
import type {
  changePackets,
  endTunnel,
  meetGateway,
  receiveThrough,
  registerEnd,
  repeatPacket,
  sendThrough,
  shakeHands,
  takeNewKey,
} from "./steps.ts";

/** The steps by name. */
export interface TunnelSteps {
  readonly meeting: StepViewOf<typeof meetGateway>;
  readonly registering: StepViewOf<typeof registerEnd>;
  readonly shaking: StepViewOf<typeof shakeHands>;
  readonly sending: StepViewOf<typeof sendThrough>;
  readonly receiving: StepViewOf<typeof receiveThrough>;
  readonly repeating: StepViewOf<typeof repeatPacket>;
  readonly altering: StepViewOf<typeof changePackets>;
  readonly rekeying: StepViewOf<typeof takeNewKey>;
  readonly swapping: StepViewOf<typeof swapKeys>;
  readonly catching: StepViewOf<typeof catchIntermediary>;
  readonly ending: StepViewOf<typeof endTunnel>;
}

export const parties: readonly Party[] = [
  { name: "Your browser" },
  { name: "Mallory", isAttacker: true },
  { name: "Gateway" },
];
const [you, mallory, gateway] = [0, 1, 2];

/** The titles of the steps, by name. */
export const titles: Readonly<Record<keyof TunnelSteps, string>> = {
  meeting: "Get the gateway's public keys",
  registering: "Register your end",
  shaking: "Agree on a key",
  sending: "Send a packet",
  receiving: "Receive a packet",
  repeating: "The same packet again",
  altering: "A packet with one bit changed",
  rekeying: "Replace the key",
  swapping: "An attacker in the middle swaps the keys",
  catching: "The attack is detected",
  ending: "End the tunnel",
};

/** Draws the steps in their order. */
export function drawTunnel(steps: TunnelSteps): readonly Act[] {
  return [...drawSetup(steps), ...drawPackets(steps), ...drawAttack(steps), drawEnd(steps)];
}

function drawSetup({ meeting, registering, shaking }: TunnelSteps): readonly Act[] {
  return [
    drawAct(titles.meeting, meeting, (value) => [
      send(gateway, you, withSize("ML-KEM key", value?.kemPublicKey)),
      send(gateway, you, withSize("identity", value?.identityPublicKey)),
      find(you, "The identity signed the key.", judge(value?.isVouched, "valid", "not valid")),
    ]),
    drawAct(titles.registering, registering, (value) => [
      send(you, gateway, withSize("your public key", value?.publicKey)),
      send(gateway, you, value ? `address ${value.assignedIp}` : "an address"),
    ]),
    drawAct(titles.shaking, shaking, (value) => [
      send(gateway, you, withSize("ciphertext", value?.ciphertext)),
      send(gateway, you, withSize("signed transcript", value?.signature)),
      find([you, gateway], "shared secret", undefined, value?.sharedSecret),
      find(
        you,
        "It is the gateway, and it has the same key.",
        judgeHandshake(value?.findings, "all checks pass"),
      ),
    ]),
  ];
}

function drawPackets({ sending, receiving, repeating, altering, rekeying }: TunnelSteps): readonly Act[] {
  return [
    drawAct(titles.sending, sending, (value) => [
      send(
        you,
        gateway,
        withSize("packet", value?.packet),
        judge(value?.isSame, "opened", "read differently"),
      ),
    ]),
    drawAct(titles.receiving, receiving, (value) => [
      send(gateway, you, withSize("packet", value?.packet), judge(value?.isSame, "opened", "does not open")),
    ]),
    drawAct(titles.repeating, repeating, (value) => [
      attack(mallory, gateway, "your packet, recorded", refuse(value?.reason)),
    ]),
    drawAct(titles.altering, altering, (value) => [
      attack(
        mallory,
        you,
        "the gateway's packet, one bit changed",
        judge(value?.isOpened, "opened", "refused"),
      ),
      attack(mallory, gateway, "your packet, one bit changed", refuse(value?.refusal.reason)),
    ]),
    drawAct(titles.rekeying, rekeying, (value) => [
      send(you, gateway, withSize("new ciphertext", value?.ciphertext)),
      send(gateway, you, "signed transcript", judgeHandshake(value?.findings, "valid")),
      find([you, gateway], "new secret", undefined, value?.sharedSecret),
      send(you, gateway, "packet under the old key", refuse(value?.refusal.reason)),
      send(gateway, you, "packet under the new key", judge(value?.opensWithNew, "opened", "does not open")),
    ]),
  ];
}

function drawAttack({ swapping, catching }: TunnelSteps): readonly Act[] {
  return [
    drawAct(titles.swapping, swapping, (value) => [
      send(you, mallory, withSize("your public key", value?.yours.publicKey)),
      attack(mallory, gateway, withSize("her public key", value?.hers.publicKey)),
      send(gateway, mallory, withSize("ciphertext for her key", value?.answer.ciphertext)),
      find([mallory, gateway], "secret", undefined, value?.withGateway),
      attack(mallory, you, withSize("her own ciphertext", value?.ciphertext)),
      find([you, mallory], "another secret", undefined, value?.withYou),
    ]),
    drawAct(titles.catching, catching, (value) => [
      attack(mallory, you, "the gateway's transcript", judgeHandshake(value?.passedOn, "accepted")),
      attack(
        mallory,
        you,
        "a transcript of hers, the gateway's signature",
        judgeHandshake(value?.rewritten, "accepted"),
      ),
      attack(mallory, you, "a transcript and signature of hers", judgeHandshake(value?.resigned, "accepted")),
    ]),
  ];
}

function drawEnd({ ending }: TunnelSteps): Act {
  return drawAct(titles.ending, ending, (value) => [
    send(you, gateway, "end the tunnel"),
    find(gateway, "The session key is overwritten."),
    send(you, gateway, "one more packet", refuse(value?.refusal.reason)),
  ]);
}

/** Says what is wrong with a handshake first. */
function judgeHandshake(findings: Findings | undefined, yes: string): Verdict | undefined {
  if (findings === undefined) return undefined;
  const fault = !findings.isOurTranscript
    ? "refused: it is not about your key"
    : !findings.isSigned
      ? "refused: not the gateway's signature"
      : "refused: another session key";
  return judge(isTrusted(findings), yes, fault);
}
