/** Where the keys come from (RFC 8446, section 7.1): formulas, and values as far as the key log has them. */
import { Scroller } from "../../parts/scroller.tsx";
import { toHex } from "../../values.ts";
import type { SecretLabel } from "./protection.ts";
import type { Reading } from "./reading.ts";

interface Secret {
  readonly name: string;
  readonly formula: string;
  /** Its line in the key log. */
  readonly label?: SecretLabel;
  /** In place of a value. */
  readonly says?: string;
}

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
  return [
    { name: "(EC)DHE", formula: sharedSecrets[group] ?? `${group} shared secret`, says: hidden },
    {
      name: "Early Secret",
      formula: isResumed ? "HKDF-Extract(0, PSK)" : "HKDF-Extract(0, 0)",
      says: isResumed ? hidden : "no PSK: a constant that anyone can compute",
    },
    {
      name: "Handshake Secret",
      formula: 'HKDF-Extract(Derive-Secret(Early Secret, "derived", ""), (EC)DHE)',
      says: hidden,
    },
    {
      name: "client_handshake_traffic_secret",
      formula: 'Derive-Secret(Handshake Secret, "c hs traffic", ClientHello…ServerHello)',
      label: "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
    },
    {
      name: "server_handshake_traffic_secret",
      formula: 'Derive-Secret(Handshake Secret, "s hs traffic", ClientHello…ServerHello)',
      label: "SERVER_HANDSHAKE_TRAFFIC_SECRET",
    },
    {
      name: "Master Secret",
      formula: 'HKDF-Extract(Derive-Secret(Handshake Secret, "derived", ""), 0)',
      says: hidden,
    },
    {
      name: "client_application_traffic_secret_0",
      formula: 'Derive-Secret(Master Secret, "c ap traffic", ClientHello…server Finished)',
      label: "CLIENT_TRAFFIC_SECRET_0",
    },
    {
      name: "server_application_traffic_secret_0",
      formula: 'Derive-Secret(Master Secret, "s ap traffic", ClientHello…server Finished)',
      label: "SERVER_TRAFFIC_SECRET_0",
    },
  ];
}

export function KeySchedule({ reading }: { readonly reading: Reading }) {
  const { secrets } = reading.opened;
  return (
    <section class="key-schedule" aria-labelledby="key-schedule">
      <h2 id="key-schedule">Where the keys come from</h2>
      <p class="text">
        A key log begins at the traffic secrets. What is above them never leaves the two ends, so nobody can
        compute it from a recording: neither this page nor the server that made it.
      </p>
      <Scroller class="scroll" label="Key schedule">
        <table>
          <thead>
            <tr>
              <th scope="col">Secret</th>
              <th scope="col">Formula (RFC 8446, section 7.1)</th>
              <th scope="col">Value</th>
            </tr>
          </thead>
          <tbody>
            {listSecrets(reading).map(({ name, formula, label, says }) => (
              <tr key={name}>
                <th scope="row">
                  <code>{name}</code>
                </th>
                <td class="wraps">
                  <code>{formula}</code>
                </td>
                <td class="wraps">
                  {label === undefined ? <em>{says}</em> : <code>{showSecret(secrets.get(label))}</code>}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroller>
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
