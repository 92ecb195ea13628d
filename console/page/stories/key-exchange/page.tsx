/** A key exchange from both sides: the browser generates the key pair, the server the ciphertext. */
import type { ComponentChildren } from "preact";
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { browserLibrary, decapsulateHere, loadKem, nameCode } from "../../algorithms.ts";
import { reportEqual, sayExpected } from "../../checks.ts";
import { classicalExchange } from "../../classical.ts";
import { attack, find, judge, send, withSize } from "../../parts/diagrams/sequence.ts";
import { bytes, change, checks, hint, pair, sizes } from "../../parts/show.tsx";
import { choiceField } from "../../parts/step-fields.tsx";
import { defineStory } from "../../story.tsx";
import { type ResultOf, step } from "../../story-step.ts";
import { areEqual, changeByte, formatBytes, formatMs } from "../../values.ts";

const algorithms = ["ML-KEM-512", "ML-KEM-768", "ML-KEM-1024", "X-Wing"];
const [you, mallory, server] = [0, 1, 2];

export const preparing = step({
  title: "Your browser generates a key pair",
  action: "Generate a key pair",
  why: "The secret key stays in this page. No call is made.",
  fields: { algorithm: choiceField("Algorithm", "ML-KEM-768", algorithms) },
  run: async (_caller, { algorithm }) => {
    const kem = await loadKem(algorithm);
    const seed = crypto.getRandomValues(new Uint8Array(kem.lengths.seed ?? 64));
    const startedAt = performance.now();
    const { publicKey, secretKey } = kem.keygen(seed);
    return { algorithm, seed, publicKey, secretKey, ms: performance.now() - startedAt };
  },
  says: ({ publicKey, ms }) =>
    `The public key has ${formatBytes(publicKey.length)}. It took ${formatMs(ms)}, with ${browserLibrary}.`,
  shows: ({ algorithm, publicKey, secretKey }) =>
    sides(
      [bytes("Public key", publicKey, algorithm), bytes("Secret key", secretKey)],
      hint("The server has nothing yet."),
    ),
  draws: (value) => [find(you, withSize("secret key, which stays here", value?.secretKey))],
});

export const encapsulating = step({
  title: "The server encapsulates a secret",
  action: "Send the public key",
  why: `The server draws 32 random bytes, computes from them a shared secret and a ciphertext for your key, and sends
    the ciphertext. Here it also reveals its secret, so that you can compare; in a real exchange it never would.`,
  after: { preparing },
  run: async ({ call }, { preparing: { algorithm, publicKey } }) => {
    const answer = await call(PqcService.method.exchangeKeys, { algorithm, publicKey });
    return { algorithm, publicKey, ciphertext: answer.encapsulatedKey, sharedSecret: answer.sharedSecret };
  },
  says: ({ ciphertext, sharedSecret }) =>
    `The ciphertext has ${formatBytes(ciphertext.length)}, the secret in it ${formatBytes(sharedSecret.length)}.`,
  shows: ({ algorithm, publicKey, ciphertext, sharedSecret }) => {
    const maxBytes = Math.max(publicKey.length, ciphertext.length);
    const compare = (title: string, { length }: Uint8Array) =>
      sizes(title, [...classicalExchange, { label: algorithm, bytes: length }], maxBytes);
    return [
      sides(bytes("Ciphertext, received", ciphertext), [
        bytes("Ciphertext, sent", ciphertext),
        bytes("Shared secret", sharedSecret),
      ]),
      pair(compare("Browser to server, bytes", publicKey), compare("Server to browser, bytes", ciphertext)),
    ];
  },
  draws: (value) => [
    send(you, server, withSize("public key", value?.publicKey)),
    find(server, "shared secret", undefined, value?.sharedSecret),
    send(server, you, withSize("ciphertext", value?.ciphertext)),
  ],
});

type KeyPair = ResultOf<typeof preparing>;
type Exchange = ResultOf<typeof encapsulating>;

/** Opens the ciphertext and compares the secret with the server's. */
async function decapsulate(
  { algorithm, seed, secretKey }: KeyPair,
  { ciphertext, sharedSecret: theirs }: Exchange,
) {
  const startedAt = performance.now();
  const ours = await decapsulateHere(algorithm, seed, secretKey, ciphertext);
  return { algorithm, ours, theirs, isEqual: areEqual(ours, theirs), ms: performance.now() - startedAt };
}

export const decapsulating = step({
  title: "Your browser opens the ciphertext",
  action: "Decapsulate",
  why: "With the secret key, your browser recovers the same 32 bytes. Both sides can now use them as an encryption key.",
  after: { preparing, encapsulating },
  run: (_caller, given) => decapsulate(given.preparing, given.encapsulating),
  says: ({ isEqual }) =>
    sayExpected(isEqual, "Both sides have the same secret.", "The sides have different secrets"),
  shows: (secrets) => [
    showSecrets(secrets),
    hint(`Your browser took ${formatMs(secrets.ms)}, with ${nameCode(secrets.algorithm)}.`),
  ],
  draws: (value) => [
    find(
      [you, server],
      "shared secret",
      judge(value?.isEqual, "equal", "different"),
      value?.ours,
      value?.theirs,
    ),
  ],
});

export const breaking = step({
  title: "An attacker changes one bit in transit",
  action: "Change and decapsulate",
  why: `An error would reveal something about the secret key to an attacker. So ML-KEM rejects implicitly
    (FIPS 203, section 6.3): a changed ciphertext yields a secret that nobody else has, and the first message
    encrypted with it fails to decrypt.`,
  after: { preparing, encapsulating },
  run: async (_caller, { preparing: keyPair, encapsulating: exchange }) => {
    const change = changeByte(exchange.ciphertext, Math.floor(exchange.ciphertext.length / 2));
    return { change, ...(await decapsulate(keyPair, { ...exchange, ciphertext: change.after })) };
  },
  says: ({ isEqual }) =>
    sayExpected(!isEqual, "Your browser gets a different secret, and no error.", "The secrets are equal"),
  shows: (secrets) => [change(secrets.change), showSecrets(secrets)],
  draws: (value) => [
    attack(mallory, you, "the ciphertext, one bit changed"),
    find(
      [you, server],
      "secret",
      judge(value?.isEqual, "equal", "different: no message opens"),
      value?.ours,
      value?.theirs,
    ),
  ],
});

function showSecrets({ ours, theirs, isEqual }: Awaited<ReturnType<typeof decapsulate>>) {
  return [
    sides(bytes("Shared secret", ours), bytes("Shared secret", theirs)),
    checks(reportEqual("the two secrets", isEqual)),
  ];
}

/** Each side's values, next to each other. */
function sides(browser: ComponentChildren, theirs: ComponentChildren) {
  return (
    <div class="sides">
      <section>
        <h3>Your browser</h3>
        {browser}
      </section>
      <section>
        <h3>The server</h3>
        {theirs}
      </section>
    </div>
  );
}

export const Page = defineStory({
  title: "Key exchange",
  lead: `Two sides need a shared secret that no eavesdropper can get. With ML-KEM, or with X-Wing, its hybrid with
    X25519, one side sends a public key. The other side generates a secret and sends a ciphertext, from which only the
    first side can recover it.`,
  parties: [{ name: "Your browser" }, { name: "Mallory", isAttacker: true }, { name: "Server" }],
  steps: [preparing, encapsulating, decapsulating, breaking],
});
