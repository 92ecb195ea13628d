/** The sequence diagram of a key exchange: the messages, and the secrets of each side. */
import {
  type Act,
  attack,
  drawAct,
  find,
  judge,
  type Party,
  send,
  withSize,
} from "../../parts/diagrams/sequence.ts";
import type { StepViewOf } from "../../parts/diagrams/step-view.ts";
import type { decapsulate, decapsulateChanged, encapsulate, makeKeyPair } from "./steps.ts";

/** The steps by name. */
export interface ExchangeSteps {
  readonly preparing: StepViewOf<typeof makeKeyPair>;
  readonly encapsulating: StepViewOf<typeof encapsulate>;
  readonly decapsulating: StepViewOf<typeof decapsulate>;
  readonly breaking: StepViewOf<typeof decapsulateChanged>;
}

export const parties: readonly Party[] = [
  { name: "Your browser" },
  { name: "Mallory", isAttacker: true },
  { name: "Server" },
];
const [you, mallory, server] = [0, 1, 2];

/** The titles of the steps, by name. */
export const titles: Readonly<Record<keyof ExchangeSteps, string>> = {
  preparing: "Your browser generates a key pair",
  encapsulating: "The server encapsulates a secret",
  decapsulating: "Your browser opens the ciphertext",
  breaking: "An attacker changes one bit in transit",
};

/** Draws the steps in their order. */
export function drawExchange({
  preparing,
  encapsulating,
  decapsulating,
  breaking,
}: ExchangeSteps): readonly Act[] {
  return [
    drawAct(titles.preparing, preparing, (value) => [
      find(you, withSize("secret key, which stays here", value?.secretKey)),
    ]),
    drawAct(titles.encapsulating, encapsulating, (value) => [
      send(you, server, withSize("public key", value?.publicKey)),
      find(server, "shared secret", undefined, value?.sharedSecret),
      send(server, you, withSize("ciphertext", value?.ciphertext)),
    ]),
    drawAct(titles.decapsulating, decapsulating, (value) => [
      find(
        [you, server],
        "shared secret",
        judge(value?.isEqual, "equal", "different"),
        value?.ours,
        value?.theirs,
      ),
    ]),
    drawAct(titles.breaking, breaking, (value) => [
      attack(mallory, you, "the ciphertext, one bit changed"),
      find(
        [you, server],
        "secret",
        judge(value?.isEqual, "equal", "different: no message opens"),
        value?.ours,
        value?.theirs,
      ),
    ]),
  ];
}
