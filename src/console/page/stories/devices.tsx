/** A device: it registers, proves who it is, sends readings, and takes firmware of its vendor and of nobody else. */
import { useState } from "preact/hooks";
import { IotService } from "#gen/iot/iot_service_pb.ts";
import { loadSigner } from "../algorithms.ts";
import { classicalSignatures, classicalSigningKeys } from "../classical.ts";
import { Bytes } from "../parts/bytes-view.tsx";
import { bothSides, Checks, equality } from "../parts/checks.tsx";
import { TextField } from "../parts/fields.tsx";
import { SizeChart } from "../parts/size-chart.tsx";
import { makeSigningKey, type SigningKey } from "../signing-key.ts";
import { requireResult, Step, useStep } from "../step.tsx";
import { Story } from "../story.tsx";
import { areEqual, formatBytes } from "../values.ts";
import { challengeContext } from "./devices/contexts.ts";
import { Firmware } from "./devices/firmware.tsx";
import { Readings } from "./devices/readings.tsx";
import { DeviceToken } from "./devices/token.tsx";

const { registerDevice, issueChallenge, authenticate } = IotService.method;
const claim = "the device's signature over the challenge";
/** A device has nothing to log in with; that is what the challenge is for. */
const asDevice = { token: null };

export function Page() {
  const [name, setName] = useState("Thermometer, hall 4");

  const making = useStep(async () => {
    const device = await makeSigningKey("ML-DSA-44");
    const vendor = await makeSigningKey("ML-DSA-87");
    return { device, vendor };
  });
  const registering = useStep(
    async ({ call }) => {
      const { device, vendor } = requireResult(making);
      const { deviceId, publicKey, registrationStatus, privateKey } = await call(registerDevice, {
        deviceName: name,
        deviceType: "thermometer",
        publicKey: device.publicKey,
        vendorPublicKey: vendor.publicKey,
        signingContexts: true,
      });
      return {
        deviceId,
        device,
        vendor,
        registrationStatus,
        isSameKey: areEqual(publicKey, device.publicKey),
        isSecretKept: privateKey === undefined,
      };
    },
    [making],
  );
  const authenticating = useStep(
    async ({ call }) => {
      const { deviceId, device } = requireResult(registering);
      const { challenge } = await call(issueChallenge, { deviceId }, asDevice);
      const signature = device.sign(challenge, challengeContext);
      const answer = await call(authenticate, { deviceId, challenge, signature }, asDevice);
      const signer = await loadSigner(device.algorithm);
      const validHere = signer.verify(signature, challenge, device.publicKey, challengeContext);
      return { challenge, signature, ...answer, token: answer.token ?? "", validHere };
    },
    [registering],
  );
  const repeating = useStep(
    async ({ call }) => {
      const { deviceId } = requireResult(registering);
      const { challenge, signature } = requireResult(authenticating);
      return call(authenticate, { deviceId, challenge, signature }, asDevice);
    },
    [registering, authenticating],
  );
  const pretending = useStep(
    async ({ call }) => {
      const { deviceId, device } = requireResult(registering);
      const { challenge } = await call(issueChallenge, { deviceId }, asDevice);
      const other = await makeSigningKey("ML-DSA-44");
      const signature = other.sign(challenge, challengeContext);
      const answer = await call(authenticate, { deviceId, challenge, signature }, asDevice);
      const signer = await loadSigner(device.algorithm);
      const validHere = signer.verify(signature, challenge, device.publicKey, challengeContext);
      return { ...answer, validHere };
    },
    [registering],
  );

  return (
    <Story
      title="Devices"
      lead="A device is small and far away, and lives for twenty years. It keeps one secret key of its own, signs with ML-DSA-44, and is known by its public key alone. Here your browser plays the device and the vendor of its firmware."
    >
      <Step
        step={making}
        title="The device and its vendor make their keys"
        action="Make two key pairs"
        outcome={({ device, vendor }) =>
          `The device's public key has ${formatBytes(device.publicKey.length)}, the vendor's ${formatBytes(vendor.publicKey.length)}.`
        }
        result={({ device, vendor }) => (
          <>
            <Bytes label="Public key of the device, ML-DSA-44" value={device.publicKey} />
            <Bytes label="Public key of the vendor, ML-DSA-87" value={vendor.publicKey} />
            <SizeChart
              title="Public key, bytes"
              rows={[...classicalSigningKeys, ...[device, vendor].map(toSizeRow)]}
            />
          </>
        )}
      >
        <p>
          ML-DSA-44 has the smallest signatures of the three, which suits a slow line. Firmware must be
          trusted for as long as the device lives, so its vendor takes the strongest, ML-DSA-87. The secret
          keys stay in this page. No call is made.
        </p>
      </Step>
      <Step
        step={registering}
        title="Register the device"
        action="Register"
        outcome={({ deviceId, registrationStatus, isSameKey }) =>
          isSameKey
            ? `${registrationStatus}: it is called ${deviceId}.`
            : "The server registered another key, which should not be."
        }
        result={({ isSameKey, isSecretKept }) => (
          <Checks
            checks={[
              equality("the key that the server registered, and the device's own", isSameKey),
              {
                by: "browser",
                claim: "a secret key in the answer",
                holds: isSecretKept,
                found: isSecretKept ? "none" : "there is one",
              },
            ]}
          />
        )}
      >
        <p>
          The server learns the device's public key, and which vendor may sign firmware for it. It never sees
          a secret. The device asks for signing contexts: it signs challenges and readings under different
          names, so that a signature for one is never valid for the other.
        </p>
        <div class="fields">
          <TextField label="Name of the device" value={name} onChange={setName} />
        </div>
      </Step>
      <Step
        step={authenticating}
        title="It proves who it is"
        action="Ask for a challenge and sign it"
        outcome={({ authenticated, reason }) =>
          authenticated
            ? "The server knows the device, and gives it a token."
            : `The server does not know the device: ${reason}.`
        }
        result={({ challenge, signature, authenticated, validHere }) => (
          <>
            <Bytes label="Challenge" value={challenge} />
            <Bytes label="Signature" value={signature} />
            <Checks checks={bothSides(claim, authenticated, validHere)} />
            <SizeChart
              title="Signature, bytes"
              rows={[...classicalSignatures, { label: "ML-DSA-44", bytes: signature.length }]}
            />
          </>
        )}
      >
        <p>
          The challenge is 32 bytes that nobody can guess, for this device alone, once, within 60 seconds.
          Only who has the secret key can sign it. There is no password that could leak.
        </p>
      </Step>
      <Step
        step={repeating}
        title="The same answer again"
        action="Send it again"
        outcome={({ authenticated, reason }) =>
          authenticated ? "The server took it twice, which should not be." : `Not authenticated: ${reason}.`
        }
        result={({ authenticated }) => (
          <Checks
            checks={[
              {
                by: "server",
                claim: "the challenge, used a second time",
                holds: authenticated,
                found: authenticated ? "taken" : "refused",
              },
            ]}
          />
        )}
      >
        <p>
          Somebody listened to the line and sends what they heard. The signature is genuine, but a challenge
          is used up by its first answer.
        </p>
      </Step>
      <Step
        step={pretending}
        title="Another device takes its name"
        action="Sign with another key"
        outcome={({ authenticated, reason }) =>
          authenticated ? "The server took it, which should not be." : `Not authenticated: ${reason}.`
        }
        result={({ authenticated, validHere }) => (
          <Checks checks={bothSides(claim, authenticated, validHere)} />
        )}
      >
        <p>
          It asks for a challenge under the name of yours, and signs with a key of its own. A wrong answer
          uses the challenge up too, so nobody can go on trying.
        </p>
      </Step>
      <DeviceToken registering={registering} authenticating={authenticating} />
      <Readings registering={registering} authenticating={authenticating} />
      <Firmware registering={registering} />
    </Story>
  );
}

function toSizeRow({ algorithm, publicKey }: SigningKey) {
  return { label: algorithm, bytes: publicKey.length };
}
