/** A token: issued, taken apart, verified against the published keys, used, and forged in vain. */
import { useState } from "preact/hooks";
import { TokenService } from "#gen/pqc/token_service_pb.ts";
import { planCall } from "../calls.ts";
import {
  computeThumbprint,
  type PublishedKey,
  readToken,
  type TokenParts,
  verifyToken,
  withPayload,
} from "../jwt.ts";
import { Bytes } from "../parts/bytes-view.tsx";
import { Checks, equality } from "../parts/checks.tsx";
import { Facts } from "../parts/facts.tsx";
import { FailureNote } from "../parts/failure-note.tsx";
import { PasswordField, TextField } from "../parts/fields.tsx";
import { SizeChart } from "../parts/size-chart.tsx";
import { useSession } from "../session.ts";
import { settings } from "../settings.ts";
import { requireResult, Step, useStep } from "../step.tsx";
import { Story } from "../story.tsx";
import { formatBytes, formatNumber, shorten } from "../values.ts";

const { issueToken, verifyToken: askServer, getJwks, getSecureData } = TokenService.method;
const claim = "the token's signature";

export function Page() {
  const session = useSession();
  const [username, setUsername] = useState(session?.username ?? "ada");
  const [password, setPassword] = useState("");

  const issuing = useStep(async ({ call }) => {
    const { token } = await call(issueToken, { username, password }, { token: null });
    return { token, parts: readToken(token) };
  });
  const verifying = useStep(
    async ({ call }) => {
      const { token, parts } = requireResult(issuing);
      const { keys } = await call(getJwks, {}, { token: null });
      const key = findKey(keys, parts);
      const thumbprint = await computeThumbprint(key);
      const validHere = await verifyToken(parts, key);
      const { valid } = await call(askServer, { token }, { token: null });
      return { key, count: keys.length, thumbprint, validHere, valid };
    },
    [issuing],
  );
  const using = useStep(
    async ({ call, callRefused }) => {
      const refusal = await callRefused(getSecureData, {}, { token: null });
      const { message, subject } = await call(getSecureData, {}, { token: requireResult(issuing).token });
      return { refusal, message, subject };
    },
    [issuing],
  );
  const forging = useStep(
    async ({ call, callRefused }) => {
      const { token, parts } = requireResult(issuing);
      const forged = withPayload(token, { ...parts.payload, sub: "mallory" });
      const forgedParts = readToken(forged);
      const validHere = await verifyToken(forgedParts, requireResult(verifying).key);
      const { valid, reason } = await call(askServer, { token: forged }, { token: null });
      const refusal = await callRefused(getSecureData, {}, { token: forged });
      return { before: parts.payloadText, after: forgedParts.payloadText, validHere, valid, reason, refusal };
    },
    [issuing, verifying],
  );

  return (
    <Story
      title="Tokens"
      lead="Whoever logs in gets a token, a JSON Web Token that is signed with ML-DSA-65. A service that has the issuer's public key can check it without asking the issuer."
    >
      <Step
        step={issuing}
        title="Log in, and take the token apart"
        action="Get a token"
        plan={planCall(issueToken, { username, password }, { token: null })}
        outcome={({ token, parts }) =>
          `The token has ${formatNumber(token.length)} characters; its signature is ${formatBytes(parts.signature.length)} of it, before base64url.`
        }
        result={({ token, parts }) => (
          <>
            <p class="token">{shorten(token, 160)}</p>
            <h3>Header</h3>
            <pre class="code">{JSON.stringify(parts.header, undefined, 2)}</pre>
            <h3>Payload</h3>
            <pre class="code">{JSON.stringify(parts.payload, undefined, 2)}</pre>
            <Bytes label="Signature" value={parts.signature} />
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
          A token is three texts in base64url, joined by dots: what it is signed with, what it says, and the
          signature over both. Nothing in it is secret from its holder.
        </p>
        <div class="fields">
          <TextField label="User" value={username} onChange={setUsername} autocomplete="username" />
          {settings.wantsToken && <PasswordField label="Password" value={password} onChange={setPassword} />}
        </div>
      </Step>
      <Step
        step={verifying}
        title="Verify it with the published keys"
        action="Fetch the keys and verify"
        plan={planCall(getJwks, {}, { token: null })}
        outcome={({ valid, validHere }) =>
          valid && validHere
            ? "Both sides find the token valid."
            : "The sides do not both find it valid, which should not be."
        }
        result={({ key, count, thumbprint, validHere, valid }) => (
          <>
            <Facts
              facts={{
                "Keys in the set": formatNumber(count),
                "Key of the token": <code>{key.kid}</code>,
                "Its thumbprint, computed here": <code>{thumbprint}</code>,
              }}
            />
            <Checks
              checks={[
                equality("the key's name against its thumbprint (RFC 7638)", thumbprint === key.kid),
                { by: "browser", claim, holds: validHere },
                { by: "server", claim, holds: valid },
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
        outcome={({ validHere, valid, refusal }) =>
          valid || validHere
            ? "One side takes the forged token, which should not be."
            : `Neither side takes it. A call with it is refused: ${refusal.reason}.`
        }
        result={({ before, after, validHere, valid, reason, refusal }) => (
          <>
            <Facts
              facts={{
                "Payload, as issued": <code>{before}</code>,
                "Payload, forged": <code>{after}</code>,
                "The server says": reason ?? "nothing",
              }}
            />
            <Checks
              checks={[
                { by: "browser", claim, holds: validHere },
                { by: "server", claim, holds: valid },
              ]}
            />
            <FailureNote failure={refusal} isExpected />
          </>
        )}
      >
        <p>
          You would rather be somebody else: the payload gets another subject, and keeps the old signature.
        </p>
      </Step>
    </Story>
  );
}

function findKey(keys: readonly PublishedKey[], { header }: TokenParts): PublishedKey {
  const key = keys.find(({ kid }) => kid === header.kid);
  if (key === undefined) throw new Error("the key set does not have the token's key");
  return key;
}
