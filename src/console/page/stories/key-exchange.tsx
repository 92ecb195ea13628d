/** A key exchange, from both sides: the browser makes the key pair, the server the ciphertext. */
import { useState } from "preact/hooks";
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { browserLibrary, loadKem } from "../algorithms.ts";
import { classicalExchange } from "../classical.ts";
import { ByteChange, Bytes } from "../parts/bytes-view.tsx";
import { Checks, equality } from "../parts/checks.tsx";
import { Choice } from "../parts/fields.tsx";
import { SizeChart } from "../parts/size-chart.tsx";
import { requireResult, Step, useStep } from "../step.tsx";
import { Story } from "../story.tsx";
import { areEqual, flipBit, formatBytes, formatMs } from "../values.ts";

const algorithms = ["ML-KEM-512", "ML-KEM-768", "ML-KEM-1024"];
const { exchangeKeys } = PqcService.method;

export function Page() {
  const [algorithm, setAlgorithm] = useState("ML-KEM-768");

  const preparing = useStep(async () => {
    const kem = await loadKem(algorithm);
    const startedAt = performance.now();
    const { publicKey, secretKey } = kem.keygen();
    return { algorithm, publicKey, secretKey, ms: performance.now() - startedAt };
  });
  const encapsulating = useStep(
    async ({ call }) => {
      const { algorithm: name, publicKey } = requireResult(preparing);
      const answer = await call(exchangeKeys, { algorithm: name, publicKey });
      return { name, publicKey, ciphertext: answer.encapsulatedKey, sharedSecret: answer.sharedSecret };
    },
    [preparing],
  );
  const decapsulating = useStep(async () => {
    const { algorithm: name, secretKey } = requireResult(preparing);
    const { ciphertext, sharedSecret: theirs } = requireResult(encapsulating);
    const kem = await loadKem(name);
    const startedAt = performance.now();
    const ours = kem.decapsulate(ciphertext, secretKey);
    return { ours, theirs, ms: performance.now() - startedAt };
  }, [preparing, encapsulating]);
  const breaking = useStep(async () => {
    const { algorithm: name, secretKey } = requireResult(preparing);
    const { ciphertext, sharedSecret: theirs } = requireResult(encapsulating);
    const index = Math.floor(ciphertext.length / 2);
    const changed = flipBit(ciphertext, index);
    const ours = (await loadKem(name)).decapsulate(changed, secretKey);
    return { ours, theirs, index, before: ciphertext, after: changed };
  }, [preparing, encapsulating]);

  return (
    <Story
      title="Key exchange"
      lead="Two sides want one secret that nobody on the line learns. With ML-KEM, one side sends a public key; the other makes a secret and sends it back inside a ciphertext that only the first can open."
    >
      <Step
        step={preparing}
        title="Your browser makes a key pair"
        action="Make a key pair"
        outcome={({ publicKey, ms }) =>
          `The public key has ${formatBytes(publicKey.length)}. It took ${formatMs(ms)}, with ${browserLibrary}.`
        }
        result={({ publicKey, secretKey }) => (
          <Sides
            browser={
              <>
                <Bytes label="Public key" value={publicKey} />
                <Bytes label="Secret key" value={secretKey} />
              </>
            }
            server={<p class="hint">Knows nothing yet.</p>}
          />
        )}
      >
        <p>The secret key stays in this page. No call is made.</p>
        <div class="fields">
          <Choice label="Algorithm" value={algorithm} onChange={setAlgorithm} options={algorithms} />
        </div>
      </Step>
      <Step
        step={encapsulating}
        title="The server encapsulates a secret"
        action="Send the public key"
        outcome={({ ciphertext, sharedSecret }) =>
          `The ciphertext has ${formatBytes(ciphertext.length)}, the secret in it ${formatBytes(sharedSecret.length)}.`
        }
        result={({ ciphertext, sharedSecret }) => (
          <Sides
            browser={<Bytes label="Ciphertext, received" value={ciphertext} />}
            server={
              <>
                <Bytes label="Ciphertext, sent" value={ciphertext} />
                <Bytes label="Shared secret" value={sharedSecret} />
              </>
            }
          />
        )}
      >
        <p>
          The server draws 32 random bytes, makes of them a shared secret and a ciphertext for your key, and
          sends the ciphertext. Here it also shows you its secret, so that you can compare; in earnest it
          would keep it.
        </p>
      </Step>
      <Step
        step={decapsulating}
        title="Your browser opens the ciphertext"
        action="Decapsulate"
        outcome={({ ours, theirs }) =>
          areEqual(ours, theirs)
            ? "Both sides hold the same secret."
            : "The sides hold different secrets, which should not be."
        }
        result={({ ours, theirs, ms }) => (
          <>
            <Sides
              browser={<Bytes label="Shared secret" value={ours} />}
              server={<Bytes label="Shared secret" value={theirs} />}
            />
            <Checks checks={[equality("the two secrets", areEqual(ours, theirs))]} />
            <p class="hint">Your browser took {formatMs(ms)}.</p>
          </>
        )}
      >
        <p>With the secret key your browser finds the same 32 bytes. They can now key a cipher.</p>
      </Step>
      <Step
        step={breaking}
        title="Somebody changes one bit on the way"
        action="Change and decapsulate"
        outcome={({ ours, theirs }) =>
          areEqual(ours, theirs)
            ? "The secrets are equal, which should not be."
            : "Your browser gets another secret, and no error."
        }
        result={({ ours, theirs, index, before, after }) => (
          <>
            <ByteChange before={before} after={after} index={index} />
            <Sides
              browser={<Bytes label="Shared secret" value={ours} />}
              server={<Bytes label="Shared secret" value={theirs} />}
            />
            <Checks checks={[equality("the two secrets", areEqual(ours, theirs))]} />
          </>
        )}
      >
        <p>
          An error would tell an attacker something about the secret key. So ML-KEM rejects implicitly (FIPS
          203, section 6.3): a ciphertext that was changed gives a secret that nobody else has. The first
          message that is encrypted with it will fail.
        </p>
      </Step>
      <SizeNote exchange={encapsulating.value} />
    </Story>
  );
}

interface Exchange {
  readonly name: string;
  readonly publicKey: Uint8Array;
  readonly ciphertext: Uint8Array;
}

function SizeNote({ exchange }: { readonly exchange: Exchange | undefined }) {
  if (exchange === undefined) return null;
  const { name, publicKey, ciphertext } = exchange;
  const maxBytes = Math.max(publicKey.length, ciphertext.length);
  return (
    <li class="step aside">
      <h2>What travelled, against X25519</h2>
      <div class="pair">
        <SizeChart
          title="Browser to server, bytes"
          rows={[...classicalExchange, { label: name, bytes: publicKey.length }]}
          maxBytes={maxBytes}
        />
        <SizeChart
          title="Server to browser, bytes"
          rows={[...classicalExchange, { label: name, bytes: ciphertext.length }]}
          maxBytes={maxBytes}
        />
      </div>
    </li>
  );
}

interface SidesProps {
  readonly browser: preact.ComponentChildren;
  readonly server: preact.ComponentChildren;
}

/** What each side knows, next to each other. */
function Sides({ browser, server }: SidesProps) {
  return (
    <div class="sides">
      <section>
        <h3>Your browser</h3>
        {browser}
      </section>
      <section>
        <h3>The server</h3>
        {server}
      </section>
    </div>
  );
}
