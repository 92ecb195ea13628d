/** Firmware for a device: of its vendor, older than what it has, of another vendor, and changed. */
import { IotService } from "#gen/iot/iot_service_pb.ts";
import { loadSigner, sha256 } from "../../algorithms.ts";
import type { Caller } from "../../caller.ts";
import { classicalSignatures } from "../../classical.ts";
import { ByteChange, Bytes } from "../../parts/bytes-view.tsx";
import { Checks, equality } from "../../parts/checks.tsx";
import { SizeChart } from "../../parts/size-chart.tsx";
import { makeSigningKey, type SigningKey } from "../../signing-key.ts";
import { requireResult, Step, type StepState, useStep } from "../../step.tsx";
import { flipBit, formatBytes, formatNumber, toHex } from "../../values.ts";

const { updateFirmware } = IotService.method;
const claim = "the pinned vendor's signature over the hash";
/** Small enough that the call can be copied into a shell. */
const imageBytes = 4096;
const newVersion = 2;

/** What the steps before it gave. */
export interface FirmwareProps {
  readonly registering: StepState<{ readonly deviceId: string; readonly vendor: SigningKey }>;
}

export function Firmware({ registering }: FirmwareProps) {
  const installing = useStep(
    async (caller) => {
      const { deviceId, vendor } = requireResult(registering);
      const image = makeImage();
      const offer = await signImage(image, vendor);
      const outcome = await install(caller, vendor, { ...offer, deviceId, version: newVersion });
      return { ...outcome, ...offer };
    },
    [registering],
  );
  const rollingBack = useStep(
    async (caller) => {
      const { deviceId, vendor } = requireResult(registering);
      const offer = await signImage(makeImage(), vendor);
      return install(caller, vendor, { ...offer, deviceId, version: newVersion - 1 });
    },
    [registering, installing],
  );
  const impersonating = useStep(
    async (caller) => {
      const { deviceId, vendor } = requireResult(registering);
      const other = await makeSigningKey("ML-DSA-87");
      const offer = await signImage(makeImage(), other);
      const order = { ...offer, deviceId, version: newVersion + 1 };
      const outcome = await install(caller, vendor, { ...order, vendorPublicKey: other.publicKey });
      const signer = await loadSigner(other.algorithm);
      const isOthers = signer.verify(offer.signature, offer.digest, other.publicKey);
      return { ...outcome, isOthers };
    },
    [registering],
  );
  const altering = useStep(
    async (caller) => {
      const { deviceId, vendor } = requireResult(registering);
      const { image, signature } = requireResult(installing);
      const index = imageBytes / 2;
      const changed = flipBit(image, index);
      const order = { image: changed, digest: await sha256(changed), signature, deviceId };
      const outcome = await install(caller, vendor, { ...order, version: newVersion + 1 });
      return { ...outcome, before: image, after: changed, index };
    },
    [registering, installing],
  );

  return (
    <>
      <Step
        step={installing}
        title="The vendor sends firmware"
        action="Sign and send"
        outcome={({ result, image, signature }) =>
          `${result}: ${formatBytes(image.length)}, with a signature of ${formatBytes(signature.length)}.`
        }
        result={({ image, digest, signature, ...outcome }) => (
          <>
            <Bytes label="Image" value={image} />
            <Bytes label="SHA-256 of it, which is signed" value={digest} />
            <Bytes label="Signature of the vendor" value={signature} />
            <FirmwareChecks {...outcome} />
            <SizeChart
              title="Signature, bytes"
              rows={[...classicalSignatures, { label: "ML-DSA-87", bytes: signature.length }]}
            />
          </>
        )}
      >
        <p>
          The image is {formatNumber(imageBytes)} random bytes, as version {newVersion}. The vendor signs its
          hash with ML-DSA-87. The server computes the hash from the image that arrived, and takes no other
          vendor than the one of the registration.
        </p>
      </Step>
      <Step
        step={rollingBack}
        title="Older firmware, well signed"
        action={`Send version ${newVersion - 1}`}
        outcome={describeOutcome}
        result={(outcome) => <FirmwareChecks {...outcome} />}
      >
        <p>
          The vendor once signed version {newVersion - 1} too, and it had a hole. The signature holds; the
          server refuses all the same, because the device has version {newVersion}. The version is the word of
          who sends the update, not a part of what the vendor signs.
        </p>
      </Step>
      <Step
        step={impersonating}
        title="Firmware of somebody else"
        action="Sign with another vendor's key"
        outcome={describeOutcome}
        result={({ isOthers, ...outcome }) => (
          <>
            <Checks
              checks={[
                { by: "browser", claim: "the signature, with the key that came along", holds: isOthers },
              ]}
            />
            <FirmwareChecks {...outcome} />
          </>
        )}
      >
        <p>
          It comes with a valid signature and the key for it. A key that comes along proves nothing: the
          device has one vendor, and this is not it.
        </p>
      </Step>
      <Step
        step={altering}
        title="Firmware with one bit changed"
        action="Change and send"
        outcome={describeOutcome}
        result={({ before, after, index, ...outcome }) => (
          <>
            <ByteChange before={before} after={after} index={index} />
            <FirmwareChecks {...outcome} />
          </>
        )}
      >
        <p>The vendor's image and the vendor's signature; one bit of the image is another one.</p>
      </Step>
    </>
  );
}

interface Outcome {
  readonly result: string;
  readonly reason: string;
  readonly isAccepted: boolean;
  /** Whether both sides computed one hash of the image. */
  readonly isSameHash: boolean;
  /** Whether the browser finds it signed by the vendor that is pinned. */
  readonly validHere: boolean;
}

function describeOutcome({ result, reason, isAccepted }: Outcome): string {
  return isAccepted ? `${result}, which should not be.` : `${result}: ${reason}.`;
}

function FirmwareChecks({ isSameHash, validHere, isAccepted, reason }: Omit<Outcome, "result">) {
  return (
    <Checks
      checks={[
        equality("the hash that the server computed", isSameHash),
        { by: "browser", claim, holds: validHere },
        {
          by: "server",
          claim: "vendor, signature and version",
          holds: isAccepted,
          found: isAccepted ? "accepted" : reason,
        },
      ]}
    />
  );
}

interface SignedImage {
  readonly image: Uint8Array;
  /** SHA-256 of it. */
  readonly digest: Uint8Array;
  readonly signature: Uint8Array;
}

interface FirmwareInput extends SignedImage {
  readonly deviceId: string;
  readonly version: number;
  readonly vendorPublicKey?: Uint8Array;
}

function makeImage(): Uint8Array {
  return crypto.getRandomValues(new Uint8Array(imageBytes));
}

async function signImage(image: Uint8Array, vendor: SigningKey): Promise<SignedImage> {
  const digest = await sha256(image);
  return { image, digest, signature: vendor.sign(digest) };
}

/** Sends firmware to the server, and checks it against the pinned vendor here too. */
async function install(
  { call }: Caller,
  pinned: SigningKey,
  { image, digest, signature, deviceId, version, vendorPublicKey }: FirmwareInput,
): Promise<Outcome> {
  const answer = await call(updateFirmware, {
    firmware: image,
    signature,
    deviceId,
    version,
    ...(vendorPublicKey && { vendorPublicKey }),
  });
  const signer = await loadSigner(pinned.algorithm);
  return {
    result: answer.result,
    reason: answer.reason,
    isAccepted: answer.result === "FIRMWARE_ACCEPTED",
    isSameHash: answer.firmwareHash === toHex(digest),
    validHere: signer.verify(signature, digest, pinned.publicKey),
  };
}
