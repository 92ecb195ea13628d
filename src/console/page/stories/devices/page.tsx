/** A device: it registers, authenticates, sends readings, and accepts firmware only from its vendor. */
import { reportBoth, reportEqual, reportNoSecret, reportServer, sayExpected } from "../../checks.ts";
import { classicalSigningKeys } from "../../classical.ts";
import { useForm } from "../../form.ts";
import { Bytes } from "../../parts/bytes-view.tsx";
import { Checks } from "../../parts/checks.tsx";
import { TextField } from "../../parts/fields.tsx";
import { SignatureSizes, SizeChart } from "../../parts/size-chart.tsx";
import { Step, type StepState, useStep } from "../../step.tsx";
import { Story } from "../../story.tsx";
import { formatBytes } from "../../values.ts";
import { Firmware } from "./firmware.tsx";
import { Readings } from "./readings.tsx";
import {
  type Authenticated,
  answerChallenge,
  impersonateDevice,
  makeKeys,
  type Registered,
  registerWithKey,
  repeatAnswer,
} from "./steps.ts";
import { DeviceToken } from "./token.tsx";

const claim = "the device's signature over the challenge";

export function Page() {
  const form = useForm({ name: "Thermometer, hall 4" });
  const making = useStep(makeKeys);
  const registering = useStep((caller, keys) => registerWithKey(caller, keys, form.values.name), [making]);
  const authenticating = useStep((caller, registered) => answerChallenge(caller, registered), [registering]);

  return (
    <Story
      title="Devices"
      lead="A device is small, remote, and in use for twenty years. It has its own secret key, signs with ML-DSA-44, and is identified by its public key. Here your browser acts as the device and as its firmware vendor."
    >
      <Step
        step={making}
        title="The device and its vendor generate their keys"
        action="Generate two key pairs"
        outcome={({ device, vendor }) =>
          `The device's public key has ${formatBytes(device.publicKey.length)}, the vendor's ${formatBytes(vendor.publicKey.length)}.`
        }
        result={({ device, vendor }) => (
          <>
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
        title="Register the device"
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
      <Step
        step={authenticating}
        title="The device authenticates"
        action="Request a challenge and sign it"
        outcome={({ verdicts, reason }) =>
          verdicts.server
            ? "The server authenticated the device and issued a token."
            : `The server did not authenticate the device: ${reason}.`
        }
        result={({ challenge, signature, verdicts }) => (
          <>
            <Bytes label="Challenge" value={challenge} />
            <Bytes label="Signature" value={signature} />
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
      <Imposture registering={registering} authenticating={authenticating} />
      <DeviceToken registering={registering} authenticating={authenticating} />
      <Readings registering={registering} authenticating={authenticating} />
      <Firmware registering={registering} />
    </Story>
  );
}

interface ImpostureProps {
  readonly registering: StepState<Registered>;
  readonly authenticating: StepState<Authenticated>;
}

/** Answers to challenges that do not come from the device. */
function Imposture({ registering, authenticating }: ImpostureProps) {
  const repeating = useStep(repeatAnswer, [registering, authenticating]);
  const pretending = useStep(impersonateDevice, [registering]);
  return (
    <>
      <Step
        step={repeating}
        title="The same answer again"
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
        title="Another device uses its ID"
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
