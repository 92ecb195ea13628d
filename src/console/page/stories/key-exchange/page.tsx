/** A key exchange, from both sides: the browser makes the key pair, the server the ciphertext. */
import type { ComponentChildren } from "preact";
import { browserLibrary } from "../../algorithms.ts";
import { reportEqual, sayExpected } from "../../checks.ts";
import { classicalExchange } from "../../classical.ts";
import { ByteChange, Bytes } from "../../parts/bytes-view.tsx";
import { Checks } from "../../parts/checks.tsx";
import { SequenceDiagram } from "../../parts/diagrams/sequence-diagram.tsx";
import { Choice } from "../../parts/fields.tsx";
import { SizeChart } from "../../parts/size-chart.tsx";
import { Step } from "../../step.tsx";
import { Story } from "../../story.tsx";
import { formatBytes, formatMs } from "../../values.ts";
import { drawExchange, parties, titles } from "./sequence.ts";
import type { Exchange } from "./steps.ts";
import { type KeyExchange, useKeyExchange } from "./use-exchange.ts";

const algorithms = ["ML-KEM-512", "ML-KEM-768", "ML-KEM-1024", "X-Wing"];

export function Page() {
  const exchange = useKeyExchange();
  const { form, preparing, encapsulating } = exchange;

  return (
    <Story
      title="Key exchange"
      lead="Two sides need a shared secret that an eavesdropper cannot learn. With ML-KEM, or with X-Wing, its hybrid with X25519, one side sends a public key. The other side generates a secret, and sends a ciphertext from which only the first side can recover it."
    >
      <SequenceDiagram title="Who sends what" parties={parties} acts={drawExchange(exchange)} />
      <Step
        step={preparing}
        title={titles.preparing}
        action="Generate a key pair"
        fields={<Choice label="Algorithm" {...form.bind("algorithm")} options={algorithms} />}
        outcome={({ publicKey, ms }) =>
          `The public key has ${formatBytes(publicKey.length)}. It took ${formatMs(ms)}, with ${browserLibrary}.`
        }
        result={({ algorithm, publicKey, secretKey }) => (
          <Sides
            browser={
              <>
                <Bytes label="Public key" value={publicKey} publicKeyOf={algorithm} />
                <Bytes label="Secret key" value={secretKey} />
              </>
            }
            server={<p class="hint">Has nothing yet.</p>}
          />
        )}
      >
        <p>The secret key stays in this page. No call is made.</p>
      </Step>
      <Step
        step={encapsulating}
        title={titles.encapsulating}
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
          The server draws 32 random bytes. From them it computes a shared secret and a ciphertext for your
          key, and sends the ciphertext. Here it also shows its secret, so that you can compare. In a real
          exchange, it would not.
        </p>
      </Step>
      <Decapsulation {...exchange} />
      {encapsulating.value && <ExchangeSizes {...encapsulating.value} />}
    </Story>
  );
}

function Decapsulation({ decapsulating, breaking }: Pick<KeyExchange, "decapsulating" | "breaking">) {
  return (
    <>
      <Step
        step={decapsulating}
        title={titles.decapsulating}
        action="Decapsulate"
        outcome={({ isEqual }) =>
          sayExpected(isEqual, "Both sides have the same secret.", "The sides have different secrets")
        }
        result={(secrets) => (
          <>
            <Secrets {...secrets} />
            <p class="hint">Your browser took {formatMs(secrets.ms)}.</p>
          </>
        )}
      >
        <p>
          With the secret key, your browser recovers the same 32 bytes. They can now be the key of a cipher.
        </p>
      </Step>
      <Step
        step={breaking}
        title={titles.breaking}
        action="Change and decapsulate"
        outcome={({ isEqual }) =>
          sayExpected(!isEqual, "Your browser gets another secret, and no error.", "The secrets are equal")
        }
        result={({ change, ...secrets }) => (
          <>
            <ByteChange {...change} />
            <Secrets {...secrets} />
          </>
        )}
      >
        <p>
          An error would tell an attacker something about the secret key. So ML-KEM rejects implicitly (FIPS
          203, section 6.3): a changed ciphertext gives a secret that no one else has. The first message that
          is encrypted with it fails.
        </p>
      </Step>
    </>
  );
}

interface SecretsProps {
  readonly ours: Uint8Array;
  readonly theirs: Uint8Array;
  readonly isEqual: boolean;
}

function Secrets({ ours, theirs, isEqual }: SecretsProps) {
  return (
    <>
      <Sides
        browser={<Bytes label="Shared secret" value={ours} />}
        server={<Bytes label="Shared secret" value={theirs} />}
      />
      <Checks checks={[reportEqual("the two secrets", isEqual)]} />
    </>
  );
}

function ExchangeSizes({ algorithm, publicKey, ciphertext }: Exchange) {
  const maxBytes = Math.max(publicKey.length, ciphertext.length);
  return (
    <li class="step aside">
      <h2>Transferred bytes, compared with X25519</h2>
      <div class="pair">
        <SizeChart
          title="Browser to server, bytes"
          rows={[...classicalExchange, { label: algorithm, bytes: publicKey.length }]}
          maxBytes={maxBytes}
        />
        <SizeChart
          title="Server to browser, bytes"
          rows={[...classicalExchange, { label: algorithm, bytes: ciphertext.length }]}
          maxBytes={maxBytes}
        />
      </div>
    </li>
  );
}

/** The values that each side knows, next to each other. */
function Sides({ browser, server }: Record<"browser" | "server", ComponentChildren>) {
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
