/** Firmware for a device: from its vendor, older than what it has, from another vendor, and changed. */
import { reportBrowser, reportEqual, reportServer, sayExpected } from "../../checks.ts";
import { ByteChange, Bytes } from "../../parts/bytes-view.tsx";
import { Checks } from "../../parts/checks.tsx";
import { Evidence } from "../../parts/diagrams/evidence.tsx";
import { SignatureSizes } from "../../parts/size-chart.tsx";
import { Step } from "../../step.tsx";
import { formatBytes, formatNumber } from "../../values.ts";
import { type FirmwareOutcome, imageBytes, newVersion } from "./firmware-steps.ts";
import { titles } from "./sequence.ts";
import type { Devices } from "./use-devices.ts";

type FirmwareProps = Pick<Devices, "installing" | "rollingBack" | "impersonating" | "alteringFirmware">;

export function Firmware({ installing, rollingBack, impersonating, alteringFirmware }: FirmwareProps) {
  return (
    <>
      <Step
        step={installing}
        title={titles.installing}
        action="Sign and send"
        outcome={({ result, image, signature }) =>
          `${result}: ${formatBytes(image.length)}, and a signature of ${formatBytes(signature.length)}.`
        }
        result={({ image, digest, signature, ...outcome }) => (
          <>
            <Evidence label="Image, hash and signature">
              <Bytes label="Image" value={image} />
              <Bytes label="SHA-256 of the image, which is signed" value={digest} />
              <Bytes label="Signature of the vendor" value={signature} />
            </Evidence>
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
        title={titles.rollingBack}
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
        title={titles.impersonating}
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
        step={alteringFirmware}
        title={titles.alteringFirmware}
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
