import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.security.KeyFactory;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.PrivateKey;
import java.security.PublicKey;
import java.security.Security;
import java.security.Signature;
import java.security.spec.PKCS8EncodedKeySpec;
import java.security.spec.X509EncodedKeySpec;
import java.util.Base64;
import org.bouncycastle.jcajce.spec.ContextParameterSpec;
import org.bouncycastle.jce.provider.BouncyCastleProvider;

/**
 * Signs and verifies with the composite keys of Bouncy Castle.
 *
 * <p>Reads one request per line, and prints one line for each. Bytes are base64, and "-" for none:
 *
 * <ul>
 *   <li>"generate ALGORITHM" prints PKCS#8 and SubjectPublicKeyInfo
 *   <li>"sign ALGORITHM PKCS8 MESSAGE CONTEXT" prints the signature
 *   <li>"verify ALGORITHM SPKI MESSAGE CONTEXT SIGNATURE" prints true or false
 * </ul>
 */
class Composite {
  public static void main(String[] args) throws Exception {
    Security.addProvider(new BouncyCastleProvider());
    var lines = new BufferedReader(new InputStreamReader(System.in));
    for (String line; (line = lines.readLine()) != null; ) System.out.println("\"" + answer(line.substring(2, line.length() - 2).split("\",\"")) + "\"");
  }

  private static String answer(String[] words) throws Exception {
    String algorithm = words[1];
    if (words[0].equals("generate")) {
      KeyPair pair = KeyPairGenerator.getInstance(algorithm, "BC").generateKeyPair();
      return encode(pair.getPrivate().getEncoded()) + " " + encode(pair.getPublic().getEncoded());
    }
    var keys = KeyFactory.getInstance(algorithm, "BC");
    var signature = Signature.getInstance(algorithm, "BC");
    byte[] key = decode(words[2]);
    byte[] context = decode(words[4]);
    if (words[0].equals("sign")) {
      PrivateKey secretKey = keys.generatePrivate(new PKCS8EncodedKeySpec(key));
      signature.initSign(secretKey);
      // Not before init, which Bouncy Castle 1.84 answers with a NullPointerException.
      if (context.length > 0) signature.setParameter(new ContextParameterSpec(context));
      signature.update(decode(words[3]));
      return encode(signature.sign());
    }
    PublicKey publicKey = keys.generatePublic(new X509EncodedKeySpec(key));
    signature.initVerify(publicKey);
    if (context.length > 0) signature.setParameter(new ContextParameterSpec(context));
    signature.update(decode(words[3]));
    return String.valueOf(signature.verify(decode(words[5])));
  }

  private static String encode(byte[] bytes) {
    return Base64.getEncoder().encodeToString(bytes);
  }

  private static byte[] decode(String text) {
    return text.equals("-") ? new byte[0] : Base64.getDecoder().decode(text);
  }
}
