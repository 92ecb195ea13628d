/** A copy with one changed letter, and the same words by another creator. */
import { areBothInvalid, areBothValid, reportBoth, sayExpected, sayInvalid } from "../../checks.ts";
import { useForm } from "../../form.ts";
import { ByteChange, Bytes } from "../../parts/bytes-view.tsx";
import { Checks } from "../../parts/checks.tsx";
import { Facts } from "../../parts/facts.tsx";
import { NumberField } from "../../parts/fields.tsx";
import { Step, type StepOf, type StepState, useStep } from "../../step.tsx";
import { alterName, type forgeToken, type Minted } from "./steps.ts";

interface ForgeriesProps {
  readonly minting: StepState<Minted>;
  readonly forging: StepOf<typeof forgeToken>;
}

export function Forgeries({ minting, forging }: ForgeriesProps) {
  const form = useForm({ place: "0" });
  const altering = useStep((caller, minted) => alterName(caller, minted, form.values.place), [minting]);
  return (
    <>
      <Step
        step={altering}
        title="Change one letter in a copy"
        action="Change and verify"
        fields={<NumberField label="Letter of the name" {...form.bind("place")} />}
        outcome={({ verdicts, reason }) =>
          sayInvalid(
            verdicts,
            `With one letter changed, neither side finds the signature valid. The server says: ${reason}.`,
          )
        }
        result={({ copy, change, hash, original, verdicts }) => (
          <>
            <Facts facts={{ "Name in the copy": copy.name }} />
            <ByteChange {...change} />
            <Bytes label="Hash of the words as they were minted" value={original} />
            <Bytes label="Hash of the changed words" value={hash} />
            <Checks checks={reportBoth("the creator's signature over the metadata hash", verdicts)} />
          </>
        )}
      >
        <p>
          The copy is yours; the stored token stays as it is. One changed letter gives a hash that has nothing
          in common with the one that the creator signed. Choose a letter; counting begins at 0.
        </p>
      </Step>
      <Step
        step={forging}
        title="Mint the same words with another key"
        action="Forge"
        outcome={({ isSameHash, withOwnKey, withCreatorKey }) =>
          sayExpected(
            isSameHash && areBothValid(withOwnKey) && areBothInvalid(withCreatorKey),
            "The forgery is signed, too, but not by the creator: with the creator's key, neither side finds it valid.",
            "The forgery was not detected",
          )
        }
        result={({ forgerAddress, creatorAddress, withOwnKey, withCreatorKey }) => (
          <>
            <Facts
              facts={{
                "Creator of the work": <code>{creatorAddress}</code>,
                "Creator of the forgery": <code>{forgerAddress}</code>,
              }}
            />
            <Checks
              checks={[
                ...reportBoth("the forger's signature, with the forger's key", withOwnKey),
                ...reportBoth("the forger's signature, with the creator's key", withCreatorKey),
              ]}
            />
          </>
        )}
      >
        <p>
          Anyone can copy the words and the hash, but not the key. The address of the creator shows that this
          token has another creator.
        </p>
      </Step>
    </>
  );
}
