import java.util.Arrays;
import java.util.List;
import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.JSON;
import org.openapitools.client.api.BlockchainBlockchainServiceApi;
import org.openapitools.client.api.KmsKmsServiceApi;
import org.openapitools.client.model.*;

/** Calls the server at args[0] with a client that openapi-generator generated; prints what came of it as JSON. */
public class Story {
  public static void main(String[] args) throws ApiException {
    ApiClient client = new ApiClient();
    client.setBasePath(args[0]).setReadTimeout(60_000);
    KmsKmsServiceApi kms = new KmsKmsServiceApi(client);
    BlockchainBlockchainServiceApi blockchain = new BlockchainBlockchainServiceApi(client);
    byte[] data = new byte[256];
    for (int i = 0; i < data.length; i++) data[i] = (byte) i;

    KmsKeyRecord made = kms.kmsKmsServiceCreateKey(null, new KmsCreateKeyRequest().alias("mine")).getResult();
    String keyId = made.getKeyId();
    byte[] signature =
        kms.kmsKmsServiceSign(new KmsSignRequest().keyId(keyId).data(data).context(new byte[0]))
            .getResult()
            .getSignature();
    boolean valid = verify(kms, keyId, data, signature);
    boolean forged = verify(kms, keyId, new byte[3], signature);
    KmsCreateKeyRequest kem =
        new KmsCreateKeyRequest().alias("inbox").algorithm(KmsCreateKeyRequest.AlgorithmEnum.ML_KEM_768);
    String kemKeyId = kms.kmsKmsServiceCreateKey("once", kem).getResult().getKeyId();
    KmsEncapsulateResult sent =
        kms.kmsKmsServiceEncapsulate(new KmsEncapsulateRequest().keyId(kemKeyId)).getResult();
    KmsDecapsulateResult received =
        kms.kmsKmsServiceDecapsulate(
                new KmsDecapsulateRequest().keyId(kemKeyId).ciphertext(sent.getCiphertext()))
            .getResult();
    KmsListKeysResponse listed = kms.kmsKmsServiceListKeys(null, null, 1, null, null, null, null);
    List<String> sequences =
        kms.kmsKmsServiceGetAuditLog(keyId, null, null, null, null, null, null, null).getAuditLog().stream()
            .map(entry -> String.valueOf(entry.getSequence()))
            .toList();
    List<Object> missing = List.of();
    try {
      kms.kmsKmsServiceGetKey("key of/no-one?");
    } catch (ApiException error) {
      ErrorResponse body = JSON.getGson().fromJson(error.getResponseBody(), ErrorResponse.class);
      missing = List.of(error.getCode(), body.getCode().getValue(), body.getDetails().get(0).getReason());
    }
    blockchain.blockchainBlockchainServiceRegisterNode(null, new BlockchainRegisterNodeRequest().name("node"));
    BlockchainBlock block =
        blockchain
            .blockchainBlockchainServiceAddBlock(new BlockchainAddBlockRequest().data(data), null)
            .getBlock();

    System.out.println(
        JSON.getGson()
            .toJson(
                new Outcome(
                    made.getAlgorithm(),
                    signature.length,
                    valid,
                    forged,
                    Arrays.equals(sent.getSharedSecret(), received.getSharedSecret()),
                    List.of(listed.getKeys().size(), listed.getTotalSize(), !listed.getNextPageToken().isEmpty()),
                    sequences,
                    missing,
                    String.valueOf(block.getIndex()),
                    Arrays.equals(block.getData(), data))));
    // The HTTP client has threads that would keep the program running.
    System.exit(0);
  }

  private static boolean verify(KmsKmsServiceApi kms, String keyId, byte[] data, byte[] signature)
      throws ApiException {
    KmsVerifyRequest request = new KmsVerifyRequest().keyId(keyId).data(data).signature(signature);
    return kms.kmsKmsServiceVerify(request).getResult().getValid();
  }

  /** What the calls came to. */
  private record Outcome(
      String algorithm,
      int signatureBytes,
      boolean valid,
      boolean forged,
      boolean sameSecret,
      List<Object> listed,
      List<String> sequences,
      List<Object> missing,
      String blockIndex,
      boolean sameBytes) {}
}
