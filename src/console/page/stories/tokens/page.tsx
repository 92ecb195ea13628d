/** A token: issued, taken apart, verified with the published keys, used, and forged in vain. */
import { TokenService } from "#gen/pqc/token_service_pb.ts";
import { withoutToken } from "../../caller.ts";
import { planCall } from "../../calls.ts";
import {
  areBothInvalid,
  reportBrowser,
  reportEqual,
  reportServer,
  sayExpected,
  sayValid,
} from "../../checks.ts";
import { useForm } from "../../form.ts";
import { Checks } from "../../parts/checks.tsx";
import { Facts } from "../../parts/facts.tsx";
import { FailureNote } from "../../parts/failure-note.tsx";
import { PasswordField, TextField } from "../../parts/fields.tsx";
import { SizeChart } from "../../parts/size-chart.tsx";
import { TokenView } from "../../parts/token-view.tsx";
import { useSession } from "../../session.ts";
import { settings } from "../../settings.ts";
import { Step, type StepState, useStep } from "../../step.tsx";
import { Story } from "../../story.tsx";
import { formatBytes, formatNumber } from "../../values.ts";
import { forgeToken, type IssuedToken, logIn, presentToken, verifyOnBothSides } from "./steps.ts";

const { issueToken, getJwks } = TokenService.method;
const claim = "the token's signature";

export function Page() {
  const form = useForm({ username: useSession()?.username ?? "ada", password: "" });
  const issuing = useStep((caller) => logIn(caller, form.values));
  return (
    <Story
      title="Tokens"
      lead="A log-in returns a JSON Web Token that is signed with ML-DSA-65. A service that has the issuer's public key can verify it without a call to the issuer."
    >
      <Step
        step={issuing}
        title="Log in and decode the token"
        action="Get a token"
        plan={planCall(issueToken, form.values, withoutToken)}
        fields={
          <>
            <TextField label="User" {...form.bind("username")} autocomplete="username" />
            {settings.wantsToken && <PasswordField label="Password" {...form.bind("password")} />}
          </>
        }
        outcome={({ token, parts }) =>
          `The token has ${formatNumber(token.length)} characters; its signature is ${formatBytes(parts.signature.length)} of it, before base64url.`
        }
        result={({ token, parts }) => (
          <>
            <TokenView token={token} parts={parts} label="Signature" />
            <SizeChart
              title="A token of this payload, characters"
              rows={[
                // ES256 (RFC 7518, section 3.4): 64 bytes are 86 characters of base64url.
                { label: "ES256", bytes: parts.signedText.length + 1 + 86, isClassical: true },
                { label: "ML-DSA-65", bytes: token.length },
              ]}
            />
          </>
        )}
      >
        <p>
          A token is three texts in base64url, joined by dots: the header, the payload, and the signature over
          both. Anyone who has the token can read it.
        </p>
      </Step>
      <Use issuing={issuing} />
    </Story>
  );
}

function Use({ issuing }: { readonly issuing: StepState<IssuedToken> }) {
  const verifying = useStep(verifyOnBothSides, [issuing]);
  const using = useStep(presentToken, [issuing]);
  const forging = useStep(forgeToken, [issuing, verifying]);
  return (
    <>
      <Step
        step={verifying}
        title="Verify it with the published keys"
        action="Fetch the keys and verify"
        plan={planCall(getJwks, {}, withoutToken)}
        outcome={({ verdicts }) => sayValid(verdicts, "Both sides find the token valid.")}
        result={({ key, count, thumbprint, verdicts }) => (
          <>
            <Facts
              facts={{
                "Keys in the set": formatNumber(count),
                "Key of the token": <code>{key.kid}</code>,
                "Its thumbprint, computed in your browser": <code>{thumbprint}</code>,
              }}
            />
            <Checks
              checks={[
                reportEqual("the key ID, compared with the thumbprint (RFC 7638)", thumbprint === key.kid),
                reportBrowser(claim, verdicts.browser),
                reportServer(claim, verdicts.server),
              ]}
            />
          </>
        )}
      >
        <p>
          The issuer publishes its public keys as a key set. The token's header names one of them; with it
          your browser checks the signature. That is all a service needs to know its callers.
        </p>
      </Step>
      <Step
        step={using}
        title="Use it"
        action="Call with and without it"
        outcome={({ refusal, subject }) =>
          `Without it: ${refusal.reason}. With it, the server knows you as ${subject}.`
        }
        result={({ refusal, message }) => (
          <>
            <FailureNote failure={refusal} isExpected />
            <p class="note">
              With the token: <q>{message}</q>
            </p>
          </>
        )}
      >
        <p>
          The token goes in the header <code>authorization: Bearer …</code>, over REST as well as gRPC. The
          first call here leaves it out.
        </p>
      </Step>
      <Step
        step={forging}
        title="Forge it"
        action="Change the subject"
        outcome={({ verdicts, refusal }) =>
          sayExpected(
            areBothInvalid(verdicts),
            `Neither side accepts it. A call with it is refused: ${refusal.reason}.`,
            "One side accepts the forged token",
          )
        }
        result={({ before, after, verdicts, reason, refusal }) => (
          <>
            <Facts
              facts={{
                "Payload, as issued": <code>{before}</code>,
                "Payload, forged": <code>{after}</code>,
                "The server says": reason ?? "nothing",
              }}
            />
            <Checks checks={[reportBrowser(claim, verdicts.browser), reportServer(claim, verdicts.server)]} />
            <FailureNote failure={refusal} isExpected />
          </>
        )}
      >
        <p>An attacker wants another identity. The payload gets another subject, with the old signature.</p>
      </Step>
    </>
  );
}
