/** Where the keys come from (RFC 8446, section 7.1): formulas, and values as far as the key log has them. */
import { RecordTable } from "../../parts/record-table.tsx";
import { toHex } from "../../values.ts";
import type { SecretLabel } from "./protection.ts";
import type { Reading } from "./reading.ts";

/** A secret's name and formula, and its line in the key log or a remark in place of its value. */
type Secret = readonly [name: string, formula: string, value: { readonly label: SecretLabel } | string];

const hidden = "known only to both ends";

/** What the group's two parts agree on, concatenated (RFC 10024, section 4.3). */
const sharedSecrets: Readonly<Record<string, string>> = {
  X25519MLKEM768: "ML-KEM-768 shared secret (32 bytes) ‖ X25519 shared secret (32 bytes)",
  SecP256r1MLKEM768: "P-256 shared secret (32 bytes) ‖ ML-KEM-768 shared secret (32 bytes)",
  SecP384r1MLKEM1024: "P-384 shared secret (48 bytes) ‖ ML-KEM-1024 shared secret (32 bytes)",
};

function listSecrets({ group = "", messages }: Reading): readonly Secret[] {
  const isResumed = messages.some(
    ({ name, facts }) => name === "ServerHello" && facts.extensions.includes(41),
  );
  const derive = (secret: string, label: string, until: string) =>
    `Derive-Secret(${secret}, "${label}", ClientHello…${until})`;
  const [handshake, main] = ["Handshake Secret", "Master Secret"];
  return [
    ["(EC)DHE", sharedSecrets[group] ?? `${group} shared secret`, hidden],
    isResumed
      ? ["Early Secret", "HKDF-Extract(0, PSK)", hidden]
      : ["Early Secret", "HKDF-Extract(0, 0)", "no PSK: a constant that anyone can compute"],
    [handshake, 'HKDF-Extract(Derive-Secret(Early Secret, "derived", ""), (EC)DHE)', hidden],
    [
      "client_handshake_traffic_secret",
      derive(handshake, "c hs traffic", "ServerHello"),
      { label: "CLIENT_HANDSHAKE_TRAFFIC_SECRET" },
    ],
    [
      "server_handshake_traffic_secret",
      derive(handshake, "s hs traffic", "ServerHello"),
      { label: "SERVER_HANDSHAKE_TRAFFIC_SECRET" },
    ],
    [main, 'HKDF-Extract(Derive-Secret(Handshake Secret, "derived", ""), 0)', hidden],
    [
      "client_application_traffic_secret_0",
      derive(main, "c ap traffic", "server Finished"),
      { label: "CLIENT_TRAFFIC_SECRET_0" },
    ],
    [
      "server_application_traffic_secret_0",
      derive(main, "s ap traffic", "server Finished"),
      { label: "SERVER_TRAFFIC_SECRET_0" },
    ],
  ];
}

export function KeySchedule({ reading }: { readonly reading: Reading }) {
  const { secrets } = reading.opened;
  return (
    <section class="key-schedule" aria-labelledby="key-schedule">
      <h2 id="key-schedule">Where the keys come from</h2>
      <p class="text">
        A key log begins at the traffic secrets. What is above them never leaves the two ends, so nobody can
        compute it from a recording.
      </p>
      <RecordTable
        label="Key schedule"
        rows={listSecrets(reading)}
        identify={([name]) => name}
        columns={[
          { title: "Secret", shows: ([name]) => <code>{name}</code> },
          {
            title: "Formula (RFC 8446, section 7.1)",
            wraps: true,
            shows: ([, formula]) => <code>{formula}</code>,
          },
          {
            title: "Value",
            wraps: true,
            shows: ([, , value]) =>
              typeof value === "string" ? (
                <em>{value}</em>
              ) : (
                <code>{showSecret(secrets.get(value.label))}</code>
              ),
          },
        ]}
      />
      <p class="hint text">
        Records are encrypted with key = HKDF-Expand-Label(secret, "key", "", length) and nonce =
        HKDF-Expand-Label(secret, "iv", "", 12) XOR sequence number (sections 5.3 and 7.3). Finished uses
        HKDF-Expand-Label(handshake traffic secret, "finished", "", length) as its HMAC key (section 4.4.4).
      </p>
    </section>
  );
}

function showSecret(secret: Uint8Array | undefined): string {
  return secret === undefined ? "not in the key log" : toHex(secret);
}
