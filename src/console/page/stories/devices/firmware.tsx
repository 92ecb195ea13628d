/** Firmware for a device: from its vendor, older than what it has, from another vendor, and changed. */
import { reportBrowser, reportEqual, reportServer, sayExpected } from "../../checks.ts";
import { ByteChange, Bytes } from "../../parts/bytes-view.tsx";
import { Checks } from "../../parts/checks.tsx";
import { SignatureSizes } from "../../parts/size-chart.tsx";
import { Step, type StepState, useStep } from "../../step.tsx";
import { formatBytes, formatNumber } from "../../values.ts";
import {
  type FirmwareOutcome,
  type FirmwareTarget,
  imageBytes,
  impersonateVendor,
  installFirmware,
  newVersion,
  rollBack,
  sendChangedFirmware,
} from "./firmware-steps.ts";

export function Firmware({ registering }: { readonly registering: StepState<FirmwareTarget> }) {
  const installing = useStep(installFirmware, [registering]);
  const rollingBack = useStep(rollBack, [registering, installing]);
  const impersonating = useStep(impersonateVendor, [registering]);
  const altering = useStep(sendChangedFirmware, [registering, installing]);

  return (
    <>
      <Step
        step={installing}
        title="The vendor sends firmware"
        action="Sign and send"
        outcome={({ result, image, signature }) =>
          `${result}: ${formatBytes(image.length)}, and a signature of ${formatBytes(signature.length)}.`
        }
        result={({ image, digest, signature, ...outcome }) => (
          <>
            <Bytes label="Image" value={image} />
            <Bytes label="SHA-256 of the image, which is signed" value={digest} />
            <Bytes label="Signature of the vendor" value={signature} />
            <FirmwareChecks {...outcome} />
            <SignatureSizes algorithm="ML-DSA-87" bytes={signature.length} />
          </>
        )}
      >
        <p>
          The image is {formatNumber(imageBytes)} random bytes, as version {newVersion}. The vendor signs its
          hash with ML-DSA-87. The server computes the hash of the received image, and accepts only the vendor
          of the registration.
        </p>
      </Step>
      <Step
        step={rollingBack}
        title="Older firmware with a valid signature"
        action={`Send version ${newVersion - 1}`}
        outcome={sayRejected}
        result={(outcome) => <FirmwareChecks {...outcome} />}
      >
        <p>
          The vendor once signed version {newVersion - 1} too, and it had a hole. The signature holds; the
          server refuses all the same, because the device has version {newVersion}. The sender states the
          version; the vendor does not sign it.
        </p>
      </Step>
      <Step
        step={impersonating}
        title="Firmware of another vendor"
        action="Sign with another vendor's key"
        outcome={sayRejected}
        result={({ isOthers, ...outcome }) => (
          <>
            <Checks checks={[reportBrowser("the signature, with the key in the request", isOthers)]} />
            <FirmwareChecks {...outcome} />
          </>
        )}
      >
        <p>
          The request has a valid signature and the matching key. The key in a request proves nothing, because
          the device has a pinned vendor.
        </p>
      </Step>
      <Step
        step={altering}
        title="Firmware with one bit changed"
        action="Change and send"
        outcome={sayRejected}
        result={({ change, ...outcome }) => (
          <>
            <ByteChange {...change} />
            <FirmwareChecks {...outcome} />
          </>
        )}
      >
        <p>The vendor's image and the vendor's signature; one bit of the image is another one.</p>
      </Step>
    </>
  );
}

function sayRejected({ result, reason, isAccepted }: FirmwareOutcome): string {
  return sayExpected(!isAccepted, `${result}: ${reason}.`, result);
}

function FirmwareChecks({ isSameHash, isVendors, isAccepted, reason }: FirmwareOutcome) {
  return (
    <Checks
      checks={[
        reportEqual("the hash that the server computed", isSameHash),
        reportBrowser("the pinned vendor's signature over the hash", isVendors),
        reportServer("vendor, signature and version", isAccepted, isAccepted ? "accepted" : reason),
      ]}
    />
  );
}
