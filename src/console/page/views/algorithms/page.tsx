/** The algorithm explorer: sizes of keys, signatures and ciphertexts. */
import { useEffect, useState } from "preact/hooks";
import type { AlgorithmInfo } from "#gen/pqc/algorithm_pb.ts";
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { makeCall } from "../../calls.ts";
import {
  classicalExchange,
  classicalSignatures,
  classicalSigningKeys,
  type SizeRow,
} from "../../classical.ts";
import type { Failure } from "../../failure.ts";
import { FailureNote } from "../../parts/failure-note.tsx";
import { Scroller } from "../../parts/scroller.tsx";
import { SizeChart } from "../../parts/size-chart.tsx";
import { formatNumber } from "../../values.ts";

export function Page() {
  return (
    <>
      <header class="lead">
        <h1 tabIndex={-1}>Algorithm explorer</h1>
      </header>
      <Sizes />
    </>
  );
}

function Sizes() {
  const [algorithms, setAlgorithms] = useState<readonly AlgorithmInfo[]>();
  const [failure, setFailure] = useState<Failure>();
  useEffect(() => {
    void makeCall(PqcService.method.getAlgorithmInfo, {}).then((made) => {
      setAlgorithms(made.answer?.algorithms);
      setFailure(made.failure);
    });
  }, []);
  return (
    <section aria-labelledby="sizes">
      <h2 id="sizes">Sizes in bytes</h2>
      <p class="text">
        A large quantum computer would break the algorithms in pale colour. Their replacements, in full
        colour, are larger. All bars of a group have the same scale.
      </p>
      {failure && <FailureNote failure={failure} />}
      {algorithms && <SizePictures algorithms={algorithms} />}
      {algorithms && <AllAlgorithms algorithms={algorithms} />}
    </section>
  );
}

function SizePictures({ algorithms }: { readonly algorithms: readonly AlgorithmInfo[] }) {
  const rowsOf = (prefix: string, sizeOf: (algorithm: AlgorithmInfo) => number): SizeRow[] =>
    algorithms
      .filter(({ name }) => name.startsWith(prefix))
      .map((algorithm) => ({ label: algorithm.name, bytes: sizeOf(algorithm) }));
  const signatures = rowsOf("ML-DSA", ({ signatureBytes }) => signatureBytes ?? 0);
  const signingKeys = rowsOf("ML-DSA", ({ publicKeyBytes }) => publicKeyBytes);
  const ciphertexts = rowsOf("ML-KEM", ({ ciphertextBytes }) => ciphertextBytes ?? 0);
  const exchangeKeys = rowsOf("ML-KEM", ({ publicKeyBytes }) => publicKeyBytes);
  return (
    <>
      <h3>To sign</h3>
      <div class="pair">
        <SizeChart title="Signature, bytes" rows={[...classicalSignatures, ...signatures]} maxBytes={4627} />
        <SizeChart
          title="Public key, bytes"
          rows={[...classicalSigningKeys, ...signingKeys]}
          maxBytes={4627}
        />
      </div>
      <h3>To agree on a secret</h3>
      <div class="pair">
        <SizeChart
          title="Sent by the first side, bytes"
          rows={[...classicalExchange, ...exchangeKeys]}
          maxBytes={1568}
        />
        <SizeChart title="Sent back, bytes" rows={[...classicalExchange, ...ciphertexts]} maxBytes={1568} />
      </div>
    </>
  );
}

function AllAlgorithms({ algorithms }: { readonly algorithms: readonly AlgorithmInfo[] }) {
  return (
    <details class="all-algorithms">
      <summary>All {algorithms.length} parameter sets of this server</summary>
      <Scroller class="scroll" label="Parameter sets">
        <table>
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">Standard</th>
              <th scope="col" class="number">
                Category
              </th>
              <th scope="col" class="number">
                Public key
              </th>
              <th scope="col" class="number">
                Secret key
              </th>
              <th scope="col" class="number">
                Signature or ciphertext
              </th>
            </tr>
          </thead>
          <tbody>
            {algorithms.map((algorithm) => (
              <tr key={algorithm.name}>
                <th scope="row">{algorithm.name}</th>
                <td>{algorithm.standard}</td>
                <td class="number">{algorithm.nistLevel}</td>
                <td class="number">{formatNumber(algorithm.publicKeyBytes)}</td>
                <td class="number">{formatNumber(algorithm.secretKeyBytes)}</td>
                <td class="number">
                  {formatNumber(algorithm.signatureBytes ?? algorithm.ciphertextBytes ?? 0)}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroller>
      <p class="hint">
        Sizes are bytes. The category is NIST's: 1 is as hard to break as AES-128, 3 as AES-192, 5 as AES-256.
      </p>
    </details>
  );
}
