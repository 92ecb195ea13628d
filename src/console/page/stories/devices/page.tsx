/** A device: it registers, authenticates, sends readings, and accepts firmware only from its vendor. */
import { reportBoth, reportEqual, reportNoSecret, reportServer, sayExpected } from "../../checks.ts";
import { classicalSigningKeys } from "../../classical.ts";
import { Bytes } from "../../parts/bytes-view.tsx";
import { Checks } from "../../parts/checks.tsx";
import { Evidence } from "../../parts/diagrams/evidence.tsx";
import { SequenceDiagram } from "../../parts/diagrams/sequence-diagram.tsx";
import { TextField } from "../../parts/fields.tsx";
import { SignatureSizes, SizeChart } from "../../parts/size-chart.tsx";
import { Step } from "../../step.tsx";
import { Story } from "../../story.tsx";
import { formatBytes } from "../../values.ts";
import { Firmware } from "./firmware.tsx";
import { Readings } from "./readings.tsx";
import { drawDevices, parties, titles } from "./sequence.ts";
import { DeviceToken } from "./token.tsx";
import { type Devices, useDevices } from "./use-devices.ts";

const claim = "the device's signature over the challenge";

export function Page() {
  const devices = useDevices();
  const { form, making, registering } = devices;

  return (
    <Story
      title="Devices"
      lead="A device is small, remote, and in use for twenty years. It has its own secret key, signs with ML-DSA-44, and is identified by its public key. Here your browser acts as the device and as its firmware vendor."
    >
      <SequenceDiagram title="Who sends what" parties={parties} acts={drawDevices(devices)} />
      <Step
        step={making}
        title={titles.making}
        action="Generate two key pairs"
        outcome={({ device, vendor }) =>
          `The device's public key has ${formatBytes(device.publicKey.length)}, the vendor's ${formatBytes(vendor.publicKey.length)}.`
        }
        result={({ device, vendor }) => (
          <>
            <Evidence label="Both public keys">
              <Bytes
                label="Public key of the device, ML-DSA-44"
                value={device.publicKey}
                publicKeyOf={device.algorithm}
              />
              <Bytes
                label="Public key of the vendor, ML-DSA-87"
                value={vendor.publicKey}
                publicKeyOf={vendor.algorithm}
              />
            </Evidence>
            <SizeChart
              title="Public key, bytes"
              rows={[
                ...classicalSigningKeys,
                { label: device.algorithm, bytes: device.publicKey.length },
                { label: vendor.algorithm, bytes: vendor.publicKey.length },
              ]}
            />
          </>
        )}
      >
        <p>
          ML-DSA-44 has the smallest signatures of ML-DSA, which suits slow connections. Firmware must be
          trusted for the life of the device, so the vendor uses the strongest set, ML-DSA-87. The secret keys
          stay in this page. No call is made.
        </p>
      </Step>
      <Step
        step={registering}
        title={titles.registering}
        action="Register"
        fields={<TextField label="Name of the device" {...form.bind("name")} />}
        outcome={({ deviceId, registrationStatus, isSameKey }) =>
          sayExpected(
            isSameKey,
            `${registrationStatus}: the device ID is ${deviceId}.`,
            "The server registered another key",
          )
        }
        result={({ isSameKey, hasNoSecret }) => (
          <Checks
            checks={[
              reportEqual("the registered key, compared with the key of the device", isSameKey),
              reportNoSecret(hasNoSecret),
            ]}
          />
        )}
      >
        <p>
          The server stores the device's public key and the public key of its firmware vendor. It never
          receives a secret key. The device uses signing contexts. It signs challenges and readings with
          different contexts, so that a signature for one is never valid for the other.
        </p>
      </Step>
      <Authentication {...devices} />
      <Imposture {...devices} />
      <DeviceToken step={devices.reading} />
      <Readings {...devices} />
      <Firmware {...devices} />
    </Story>
  );
}

/** The answer of the device to a challenge. */
function Authentication({ authenticating }: Pick<Devices, "authenticating">) {
  return (
    <Step
      step={authenticating}
      title={titles.authenticating}
      action="Request a challenge and sign it"
      outcome={({ verdicts, reason }) =>
        verdicts.server
          ? "The server authenticated the device and issued a token."
          : `The server did not authenticate the device: ${reason}.`
      }
      result={({ challenge, signature, verdicts }) => (
        <>
          <Evidence label="Challenge and signature">
            <Bytes label="Challenge" value={challenge} />
            <Bytes label="Signature" value={signature} />
          </Evidence>
          <Checks checks={reportBoth(claim, verdicts)} />
          <SignatureSizes algorithm="ML-DSA-44" bytes={signature.length} />
        </>
      )}
    >
      <p>
        The challenge is 32 unpredictable bytes. It is valid for this device only, one time, within 60
        seconds. Only the device with the secret key can sign it. There is no password that could leak.
      </p>
    </Step>
  );
}

/** Answers to challenges that do not come from the device. */
function Imposture({ repeating, pretending }: Pick<Devices, "repeating" | "pretending">) {
  return (
    <>
      <Step
        step={repeating}
        title={titles.repeating}
        action="Send it again"
        outcome={({ authenticated, reason }) =>
          sayExpected(!authenticated, `Not authenticated: ${reason}.`, "The server accepted it twice")
        }
        result={({ authenticated }) => (
          <Checks
            checks={[
              reportServer(
                "the challenge, used a second time",
                authenticated,
                authenticated ? "taken" : "refused",
              ),
            ]}
          />
        )}
      >
        <p>
          An attacker recorded the answer and sends it again. The signature is genuine, but the first answer
          used the challenge up.
        </p>
      </Step>
      <Step
        step={pretending}
        title={titles.pretending}
        action="Sign with another key"
        outcome={({ verdicts, reason }) =>
          sayExpected(!verdicts.server, `Not authenticated: ${reason}.`, "The server accepted it")
        }
        result={({ verdicts }) => <Checks checks={reportBoth(claim, verdicts)} />}
      >
        <p>
          The other device requests a challenge for the ID of your device, and signs with its own key. A wrong
          answer also uses the challenge up, which prevents further attempts.
        </p>
      </Step>
    </>
  );
}
