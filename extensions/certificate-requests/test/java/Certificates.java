import java.io.FileReader;
import java.io.Reader;
import java.security.Security;
import java.security.cert.CertPathValidator;
import java.security.cert.CertPathValidatorException;
import java.security.cert.CertificateFactory;
import java.security.cert.PKIXParameters;
import java.security.cert.TrustAnchor;
import java.security.cert.X509Certificate;
import java.util.List;
import java.util.Set;
import javax.security.auth.x500.X500Principal;
import org.bouncycastle.asn1.x509.Extension;
import org.bouncycastle.asn1.x509.Extensions;
import org.bouncycastle.asn1.x509.GeneralName;
import org.bouncycastle.asn1.x509.GeneralNames;
import org.bouncycastle.cert.X509CertificateHolder;
import org.bouncycastle.cert.jcajce.JcaX509CertificateConverter;
import org.bouncycastle.jce.provider.BouncyCastleProvider;
import org.bouncycastle.openssl.PEMParser;
import org.bouncycastle.operator.jcajce.JcaContentVerifierProviderBuilder;
import org.bouncycastle.pkcs.PKCS10CertificationRequest;

/**
 * Reads CSRs and certificates with Bouncy Castle, and prints one line for each.
 *
 * <p>Arguments: "request" and a file, or "chain" and the files of a certificate and its CA, repeated.
 */
class Certificates {
  public static void main(String[] args) throws Exception {
    Security.addProvider(new BouncyCastleProvider());
    for (int i = 0; i < args.length; ) {
      if (args[i].equals("request")) {
        System.out.println(describeRequest((PKCS10CertificationRequest) read(args[i + 1])));
        i += 2;
      } else {
        System.out.println(validate(readCertificate(args[i + 1]), readCertificate(args[i + 2])));
        i += 3;
      }
    }
  }

  private static Object read(String path) throws Exception {
    try (Reader file = new FileReader(path)) {
      return new PEMParser(file).readObject();
    }
  }

  private static X509Certificate readCertificate(String path) throws Exception {
    X509CertificateHolder holder = (X509CertificateHolder) read(path);
    return new JcaX509CertificateConverter().setProvider("BC").getCertificate(holder);
  }

  private static String describeRequest(PKCS10CertificationRequest request) throws Exception {
    var verifier = new JcaContentVerifierProviderBuilder().setProvider("BC");
    boolean signed = request.isSignatureValid(verifier.build(request.getSubjectPublicKeyInfo()));
    String subject = new X500Principal(request.getSubject().getEncoded()).getName(X500Principal.RFC2253);
    Extensions extensions = request.getRequestedExtensions();
    int names = 0;
    if (extensions != null) {
      GeneralName[] all = GeneralNames.fromExtensions(extensions, Extension.subjectAlternativeName).getNames();
      names = all.length;
    }
    return "signed=" + signed + " names=" + names + " subject=" + subject;
  }

  private static String validate(X509Certificate certificate, X509Certificate ca) throws Exception {
    var path = CertificateFactory.getInstance("X.509", "BC").generateCertPath(List.of(certificate));
    var parameters = new PKIXParameters(Set.of(new TrustAnchor(ca, null)));
    parameters.setRevocationEnabled(false);
    try {
      CertPathValidator.getInstance("PKIX", "BC").validate(path, parameters);
      return "valid ca=" + (certificate.getBasicConstraints() >= 0);
    } catch (CertPathValidatorException error) {
      return "invalid";
    }
  }
}
