import java.io.BufferedReader;
import java.io.FileOutputStream;
import java.io.FileReader;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.Security;
import org.bouncycastle.asn1.ASN1Encoding;
import org.bouncycastle.asn1.x509.SubjectPublicKeyInfo;
import org.bouncycastle.cert.X509CertificateHolder;
import org.bouncycastle.cms.CMSProcessableByteArray;
import org.bouncycastle.cms.CMSProcessableFile;
import org.bouncycastle.cms.CMSSignedData;
import org.bouncycastle.cms.CMSSignedDataGenerator;
import org.bouncycastle.cms.SignerInformation;
import org.bouncycastle.cms.SignerInformationVerifier;
import org.bouncycastle.cms.jcajce.JcaSimpleSignerInfoVerifierBuilder;
import org.bouncycastle.cms.jcajce.JcaSignerInfoGeneratorBuilder;
import org.bouncycastle.jce.provider.BouncyCastleProvider;
import org.bouncycastle.openssl.PEMParser;
import org.bouncycastle.openssl.jcajce.JcaPEMKeyConverter;
import org.bouncycastle.openssl.jcajce.JcaPEMWriter;
import org.bouncycastle.operator.jcajce.JcaContentSignerBuilder;
import org.bouncycastle.operator.jcajce.JcaDigestCalculatorProviderBuilder;

/**
 * Verifies and creates detached CMS signatures with BouncyCastle.
 *
 * <p>Each line of standard input is a JSON list: "verify", KEY_OR_CERTIFICATE, FILE, MESSAGE; or "sign", ALGORITHM,
 * PUBLIC_KEY_OUT, FILE, MESSAGE_OUT. All words except ALGORITHM are files. Each is answered by a JSON string.
 */
public class Cms {
  public static void main(String[] args) throws Exception {
    Security.addProvider(new BouncyCastleProvider());
    for (String line : (Iterable<String>) new BufferedReader(new InputStreamReader(System.in)).lines()::iterator) {
      String[] words = line.substring(2, line.length() - 2).split("\",\"");
      System.out.println("\"" + answer(words) + "\"");
    }
  }

  static String answer(String[] words) throws Exception {
    if (words[0].equals("verify")) return verify(words[1], words[2], words[3]);
    sign(words[1], words[2], words[3], words[4]);
    return "";
  }

  static String verify(String trusted, String file, String message) throws Exception {
    byte[] der = Files.readAllBytes(Path.of(message));
    CMSSignedData signed = new CMSSignedData(new CMSProcessableFile(Path.of(file).toFile()), der);
    if (signed.getSignerInfos().size() != 1) return signed.getSignerInfos().size() + " signers";
    SignerInformation signer = signed.getSignerInfos().iterator().next();
    boolean isValid;
    try {
      isValid = signer.verify(readVerifier(trusted));
    } catch (org.bouncycastle.cms.CMSSignerDigestMismatchException e) {
      isValid = false;
    }
    return isValid + " " + signer.getEncryptionAlgOID() + " " + signer.getDigestAlgOID()
        + " " + signed.getCertificates().getMatches(null).size();
  }

  static SignerInformationVerifier readVerifier(String trusted) throws Exception {
    JcaSimpleSignerInfoVerifierBuilder builder = new JcaSimpleSignerInfoVerifierBuilder().setProvider("BC");
    try (PEMParser parser = new PEMParser(new FileReader(trusted))) {
      Object found = parser.readObject();
      if (found instanceof X509CertificateHolder) return builder.build((X509CertificateHolder) found);
      return builder.build(new JcaPEMKeyConverter().setProvider("BC").getPublicKey((SubjectPublicKeyInfo) found));
    }
  }

  static void sign(String algorithm, String publicKeyOut, String file, String messageOut) throws Exception {
    KeyPair pair = KeyPairGenerator.getInstance(algorithm, "BC").generateKeyPair();
    try (JcaPEMWriter writer = new JcaPEMWriter(Files.newBufferedWriter(Path.of(publicKeyOut)))) {
      writer.writeObject(pair.getPublic());
    }
    CMSSignedDataGenerator generator = new CMSSignedDataGenerator();
    generator.addSignerInfoGenerator(
        new JcaSignerInfoGeneratorBuilder(new JcaDigestCalculatorProviderBuilder().setProvider("BC").build())
            .build(
                new JcaContentSignerBuilder(algorithm).setProvider("BC").build(pair.getPrivate()),
                new byte[] {1, 2, 3}));
    CMSSignedData signed = generator.generate(new CMSProcessableByteArray(Files.readAllBytes(Path.of(file))), false);
    try (FileOutputStream out = new FileOutputStream(messageOut)) {
      out.write(signed.toASN1Structure().getEncoded(ASN1Encoding.DER));
    }
  }
}
